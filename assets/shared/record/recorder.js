// A picture that moves, as a film for slides: what is drawn on the canvases of a page, frame by
// frame where a motion returns to where it began, so that the film repeats without a seam.
/** @import { Filmed, Motion } from "../types.js" */
import { drawing, el } from "../dom.js";

export const RATE = 25; // frames a second
const LARGEST = 1440, // pixels across
  BITS = 10e6, // a second
  AHEAD = 6, // frames that are unpacked before their time comes
  ENCODED = 400, // ms for the encoder to come to the last frame: what it has not begun is lost
  WAITS = 2; // frames without anything on its way, until a pose counts as drawn
// What the browser can write; PowerPoint and Keynote play MP4, all browsers WebM. Not VP8, which
// loses most frames on a busy machine.
const KINDS = ["video/mp4;codecs=avc1.42E01E", "video/webm;codecs=vp9"];

/** @typedef {(share: number, what: string) => void} Tell */

export const kinds = () => KINDS.filter((kind) => MediaRecorder.isTypeSupported(kind));
/** @param {string} kind */
export const suffix = (kind) => kind.replace(/^video\//, "").replace(/;.*/, "");

const frame = () =>
  new Promise((resolve) => {
    requestAnimationFrame(resolve);
  });
/** @param {number} ms */
const after = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
/**
 * @param {HTMLCanvasElement} canvas
 * @returns {Promise<Blob | null>}
 */
const png = (canvas) =>
  new Promise((resolve) => {
    canvas.toBlob(resolve, "image/png");
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
      scale = (this.scale ||= Math.min(LARGEST / width, 2));
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

  // One after the other, until the film is cancelled.
  /** @param {number} count */
  async *turns(count) {
    for (let i = 0; i < count && !this.stopped; i++) yield i;
  }

  /** @returns {Promise<void>} */
  async drawn(quiet = 0) {
    await frame();
    const now = this.still ? quiet + 1 : 0;
    if (now < WAITS && !this.stopped) await this.drawn(now);
  }

  // A loop: every frame is waited for, then all are played to the encoder in time. Null where it
  // was cancelled.
  /**
   * @param {Motion} motion
   * @param {number} seconds
   * @param {string} kind
   * @param {Tell} tell
   */
  async loop(motion, seconds, kind, tell) {
    const count = Math.round(seconds * RATE),
      /** @type {Blob[]} */
      frames = [];
    try {
      for await (const i of this.turns(count)) {
        await motion.pose(i / count);
        await this.drawn();
        this.draw();
        const picture = await png(this.canvas);
        if (!picture) throw new Error("there is no room for the picture");
        frames.push(picture);
        tell((0.6 * (i + 1)) / count, `frame ${i + 1} of ${count}`);
      }
    } finally {
      await motion.end?.();
    }
    await this.drawn(); // what comes now is played in time
    if (this.stopped) return null;
    const ready = (/** @type {number} */ i) => (i < count ? createImageBitmap(frames[i]) : null);
    const ahead = Array.from({ length: AHEAD }, (_, i) => ready(i));
    return this.film(kind, async (show) => {
      for await (const i of this.turns(count)) {
        const picture = /** @type {ImageBitmap} */ (await ahead.shift()),
          ctx = drawing(this.canvas);
        ahead.push(ready(i + AHEAD));
        ctx.setTransform(1, 0, 0, 1, 0, 0);
        ctx.drawImage(picture, 0, 0);
        picture.close();
        await show(i);
        tell(0.6 + (0.4 * (i + 1)) / count, "writing the film");
      }
    });
  }

  // What moves by itself, or under the hand, for so long.
  /**
   * @param {number} seconds
   * @param {string} kind
   * @param {Tell} tell
   */
  live(seconds, kind, tell) {
    this.draw();
    const count = Math.round(seconds * RATE);
    return this.film(kind, async (show) => {
      for await (const i of this.turns(count)) {
        this.draw();
        await show(i);
        tell((i + 1) / count, `${((i + 1) / RATE).toFixed(1)} s`);
      }
    });
  }

  /**
   * @param {string} kind
   * @param {(show: (i: number) => Promise<void>) => Promise<void>} play
   * @returns {Promise<Blob | null>}
   */
  async film(kind, play) {
    if (this.stopped) return null;
    const stream = this.canvas.captureStream(0),
      [track] = /** @type {CanvasCaptureMediaStreamTrack[]} */ (stream.getVideoTracks()),
      recorder = new MediaRecorder(stream, { mimeType: kind, videoBitsPerSecond: BITS }),
      /** @type {Blob[]} */
      pieces = [];
    recorder.ondataavailable = ({ data }) => pieces.push(data);
    const ended = new Promise((done) => {
      recorder.onstop = done;
    });
    recorder.start();
    const began = performance.now();
    try {
      await play(async (i) => {
        track.requestFrame();
        await after(Math.max(began + ((i + 1) * 1000) / RATE - performance.now(), 4));
      });
      await after(ENCODED);
    } finally {
      recorder.stop();
      await ended;
      track.stop();
    }
    return this.stopped ? null : new Blob(pieces, { type: kind });
  }
}
