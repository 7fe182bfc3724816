// A picture that moves, as a film for slides: what is drawn on the canvases of a page, frame by
// frame where a motion returns to where it began, so that the film repeats without a seam.
/** @import { Filmed, Motion } from "../types.js" */
/** @import { Kind } from "./film.js" */
import { drawing, el } from "../dom.js";
import { LARGEST, RATE, after, writer } from "./film.js";

const STEP = 1000 / RATE, // ms
  PATIENCE = 600, // frames
  WAITS = 2; // frames without anything on its way, until a pose counts as drawn

/** @typedef {(share: number, what: string) => void} Tell */

const frame = () =>
  new Promise((resolve) => {
    requestAnimationFrame(resolve);
  });

// What belongs to the picture, as it lies on the window.
/** @param {HTMLElement} whole */
function layers(whole) {
  const seen = (/** @type {Element} */ node) => node.getBoundingClientRect().width > 0;
  return /** @type {(HTMLCanvasElement | HTMLImageElement | HTMLHeadingElement)[]} */ ([
    ...whole.querySelectorAll(".frame canvas, .frame img.thumb, .view .strip, .view h4"),
  ]).filter(seen);
}

export class Recorder {
  /** @param {Filmed} app */
  constructor(app) {
    this.app = app;
    this.canvas = el("canvas");
    this.stopped = false;
    this.scale = 0;
  }

  cancel() {
    this.stopped = true;
  }

  // The picture of this moment on the canvas that is filmed.
  draw() {
    const { app, canvas } = this,
      shown = layers(app.whole),
      boxes = shown.map((node) => node.getBoundingClientRect()),
      left = Math.min(...boxes.map((b) => b.left)),
      top = Math.min(...boxes.map((b) => b.top)),
      width = Math.max(...boxes.map((b) => b.right)) - left,
      height = Math.max(...boxes.map((b) => b.bottom)) - top,
      first = !this.scale,
      scale = (this.scale ||= Math.min(LARGEST / width, LARGEST / height, 2));
    if (first) {
      canvas.width = 2 * Math.round((width * scale) / 2); // films have even sides
      canvas.height = 2 * Math.round((height * scale) / 2);
    }
    const ctx = drawing(canvas),
      style = getComputedStyle(app.whole);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = style.getPropertyValue("--st-background-color") || "#fff";
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
    app.paint?.(); // a canvas of WebGL holds its picture only now
    shown.forEach((node, i) => {
      const { left: x, top: y, width: w, height: h } = boxes[i];
      if (node instanceof HTMLHeadingElement) {
        const own = getComputedStyle(node),
          enlarged = node.currentCSSZoom ?? 1;
        ctx.fillStyle = own.color;
        ctx.font = `${own.fontWeight} ${parseFloat(own.fontSize) * enlarged}px ${own.fontFamily}`;
        ctx.textBaseline = "middle";
        ctx.fillText([...node.childNodes].map((n) => n.textContent).join("  "), x, y + h / 2, w);
      } else {
        ctx.drawImage(node, x, y, w, h);
        if (node instanceof HTMLImageElement) {
          ctx.strokeStyle = getComputedStyle(node).borderColor;
          ctx.lineWidth = 3;
          ctx.strokeRect(x, y, w, h);
        }
      }
    });
  }

  // Whether nothing that a pose has asked for is still on its way.
  get still() {
    const { link, frameRequest, asked, wanted } = this.app,
      painting = frameRequest || (typeof asked === "number" && asked);
    return !link?.busy && !link?.waiting && !painting && wanted === undefined;
  }

  // Until nothing is on its way any more, or a picture moves by itself and never rests.
  /** @returns {Promise<void>} */
  async drawn(quiet = 0, waited = 0) {
    await frame();
    const now = this.still ? quiet + 1 : 0;
    if (now < WAITS && waited < PATIENCE && !this.stopped) await this.drawn(now, waited + 1);
  }

  // A loop: every frame is waited for. Null where it was cancelled.
  /**
   * @param {Motion} motion
   * @param {number} seconds
   * @param {Kind} kind
   * @param {Tell} tell
   */
  async loop(motion, seconds, kind, tell) {
    const count = Math.round(seconds * RATE),
      film = this.begun(kind);
    try {
      for await (const i of this.turns(count)) {
        await motion.pose(i / count);
        await this.drawn();
        this.draw();
        await film.add(i * STEP);
        tell((i + 1) / count, `frame ${i + 1} of ${count}`);
      }
      return this.stopped ? null : await film.end(count * STEP);
    } finally {
      film.drop();
      await motion.end?.();
    }
  }

  // What moves by itself, or under the hand, for so long.
  /**
   * @param {number} seconds
   * @param {Kind} kind
   * @param {Tell} tell
   */
  async live(seconds, kind, tell) {
    const film = this.begun(kind),
      began = performance.now();
    const passed = () => Math.round(performance.now() - began);
    try {
      for await (const ms of this.clock(1000 * seconds, passed)) {
        this.draw();
        await film.add(ms);
        tell(ms / 1000 / seconds, `${(ms / 1000).toFixed(1)} s`);
        await after(Math.max(STEP - (passed() % STEP), 4));
      }
      return this.stopped ? null : await film.end(1000 * seconds);
    } finally {
      film.drop();
    }
  }

  // The first picture says how large all are.
  /** @param {Kind} kind */
  begun(kind) {
    this.draw();
    return writer(this.canvas, kind);
  }

  // One after the other, until the film is cancelled.
  /** @param {number} count */
  async *turns(count) {
    for (let i = 0; i < count && !this.stopped; i++) yield i;
  }

  /**
   * @param {number} length
   * @param {() => number} passed
   */
  async *clock(length, passed) {
    for (let ms = 0; ms < length && !this.stopped; ms = passed()) yield ms;
  }
}
