// Recording of a moving figure as a film for slides: the canvases of a page are drawn frame by
// frame. Motions return to their start, so that the film loops without a seam.
import type { Filmed, Motion } from "../types.ts";
import type { Kind } from "./film.ts";
import { drawing, el } from "../dom.ts";
import { LARGEST, RATE, after, writer } from "./film.ts";

const STEP = 1000 / RATE, // ms per frame
  PATIENCE = 600, // frames to wait at most
  WAITS = 2; // frames without pending work until a pose counts as drawn

export type Tell = (share: number, what: string) => void;

const frame = () =>
  new Promise((resolve) => {
    requestAnimationFrame(resolve);
  });

// Return the elements of the figure with their positions in the window.
function layers(whole: HTMLElement) {
  const seen = (node: Element) => node.getBoundingClientRect().width > 0;
  return (
    [...whole.querySelectorAll(".frame canvas, .frame img.thumb, .view .strip, .view h4")] as (
      HTMLCanvasElement | HTMLImageElement | HTMLHeadingElement
    )[]
  ).filter(seen);
}

export class Recorder {
  app: Filmed;
  canvas: HTMLCanvasElement;
  stopped: boolean;
  scale: number;
  constructor(app: Filmed) {
    this.app = app;
    this.canvas = el("canvas");
    this.stopped = false;
    this.scale = 0;
  }

  cancel() {
    this.stopped = true;
  }

  // Draw the current figure onto the recorded canvas.
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
      canvas.width = 2 * Math.round((width * scale) / 2); // video encoders need even sides
      canvas.height = 2 * Math.round((height * scale) / 2);
    }
    const ctx = drawing(canvas),
      style = getComputedStyle(app.whole);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = style.getPropertyValue("--st-background-color") || "#fff";
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
    app.paint?.(); // WebGL canvases can be read only right after painting
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

  // True if no request of a pose is pending.
  get still() {
    const { link, frameRequest, asked, wanted } = this.app,
      painting = frameRequest || (typeof asked === "number" && asked);
    return !link?.busy && !link?.waiting && !painting && wanted === undefined;
  }

  // Wait until nothing is pending; a figure that moves by itself never comes to rest.
  async waitUntilDrawn(quiet = 0, waited = 0): Promise<void> {
    await frame();
    const now = this.still ? quiet + 1 : 0;
    if (now < WAITS && waited < PATIENCE && !this.stopped)
      await this.waitUntilDrawn(now, waited + 1);
  }

  // Record a loop and wait for every frame. Return null if cancelled.
  async loop(motion: Motion, seconds: number, kind: Kind, tell: Tell) {
    const count = Math.round(seconds * RATE),
      film = this.startFilm(kind);
    try {
      for await (const i of this.turns(count)) {
        await motion.pose(i / count);
        await this.waitUntilDrawn();
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

  // Record a figure that moves by itself or is being used, for a given duration.
  async live(seconds: number, kind: Kind, tell: Tell) {
    const film = this.startFilm(kind),
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

  // Start a film; its first frame determines the size.
  startFilm(kind: Kind) {
    this.draw();
    return writer(this.canvas, kind);
  }

  // Yield `count` frame numbers, or fewer if the film is cancelled.
  async *turns(count: number) {
    for (let i = 0; i < count && !this.stopped; i++) yield i;
  }

  async *clock(length: number, passed: () => number) {
    for (let ms = 0; ms < length && !this.stopped; ms = passed()) yield ms;
  }
}
