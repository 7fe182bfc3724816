// Recording of a moving figure as a film for slides: the canvases of a page are drawn frame by
// frame. Motions return to their start, so that the film loops without a seam.
import type { Filmed, Motion } from "../types.ts";
import type { Kind } from "./formats.ts";
import { drawing } from "../dom.ts";
import { LONGEST_SIDE, RATE, after } from "./formats.ts";

const STEP = 1000 / RATE, // ms per frame
  PATIENCE = 600, // frames to wait at most
  WAITS = 2; // frames without pending work until a pose counts as drawn

export interface Recording {
  app: Filmed;
  seconds: number;
  kind: Kind;
  report: (share: number, text: string) => void; // share of the film that is recorded, in 0..1
  signal: AbortSignal;
}

// Record a loop, waiting for every frame. Return null if it is cancelled.
export async function recordLoop(recording: Recording, motion: Motion) {
  const { app, seconds, report, signal } = recording,
    count = Math.round(seconds * RATE),
    film = await openFilm(recording);
  try {
    for await (const i of frames(count, signal)) {
      await motion.pose(i / count);
      await waitUntilDrawn(app, signal);
      await film.add(i * STEP);
      report((i + 1) / count, `frame ${i + 1} of ${count}`);
    }
    return signal.aborted ? null : await film.end(count * STEP);
  } finally {
    await film.cancel();
    await motion.end?.();
  }
}

// Record a figure that moves by itself or is being used. Return null if it is cancelled.
export async function recordLive(recording: Recording) {
  const { seconds, report, signal } = recording,
    film = await openFilm(recording),
    began = performance.now(),
    passed = () => Math.round(performance.now() - began);
  try {
    for await (const ms of clock(1000 * seconds, passed, signal)) {
      await film.add(ms);
      report(ms / 1000 / seconds, `${(ms / 1000).toFixed(1)} s`);
      await after(Math.max(STEP - (passed() % STEP), 4));
    }
    return signal.aborted ? null : await film.end(1000 * seconds);
  } finally {
    await film.cancel();
  }
}

function* frames(count: number, signal: AbortSignal) {
  for (let i = 0; i < count && !signal.aborted; i++) yield i;
}

function* clock(length: number, passed: () => number, signal: AbortSignal) {
  for (let ms = 0; ms < length && !signal.aborted; ms = passed()) yield ms;
}

// Open a file; the first drawing determines its size.
async function openFilm({ app, kind }: Recording) {
  const { openWriter } = await import("./writers.ts"),
    canvas = document.createElement("canvas"),
    draw = painter(app, canvas);
  draw();
  const writer = await openWriter(canvas, kind);
  return {
    ...writer,
    add(ms: number) {
      draw();
      return writer.add(ms);
    },
  };
}

// Return true if no request of a pose is pending.
function isDrawn({ link, frameRequest, asked, wanted }: Filmed) {
  const painting = frameRequest || (typeof asked === "number" && asked);
  return !link?.busy && !link?.waiting && !painting && wanted === undefined;
}

// Wait until nothing is pending; a figure that moves by itself never comes to rest.
async function waitUntilDrawn(app: Filmed, signal: AbortSignal, quiet = 0, waited = 0) {
  await new Promise(requestAnimationFrame);
  const now = isDrawn(app) ? quiet + 1 : 0;
  if (now < WAITS && waited < PATIENCE && !signal.aborted)
    await waitUntilDrawn(app, signal, now, waited + 1);
}

// Return a function that draws the figure of a page onto a canvas, in the scale of its first call.
function painter(app: Filmed, canvas: HTMLCanvasElement) {
  const ctx = drawing(canvas);
  let scale = 0;
  return () => {
    const shown = layers(app.whole),
      boxes = shown.map((node) => node.getBoundingClientRect()),
      left = Math.min(...boxes.map((b) => b.left)),
      top = Math.min(...boxes.map((b) => b.top)),
      width = Math.max(...boxes.map((b) => b.right)) - left,
      height = Math.max(...boxes.map((b) => b.bottom)) - top;
    if (!scale) {
      scale = Math.min(LONGEST_SIDE / width, LONGEST_SIDE / height, 2);
      canvas.width = 2 * Math.round((width * scale) / 2); // video encoders need even sides
      canvas.height = 2 * Math.round((height * scale) / 2);
    }
    ctx.resetTransform();
    ctx.fillStyle = getComputedStyle(app.whole).getPropertyValue("--st-background-color") || "#fff";
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
    app.paint?.(); // WebGL canvases can be read only right after painting
    shown.forEach((node, i) => drawLayer(ctx, node, boxes[i]));
  };
}

type Layer = HTMLCanvasElement | HTMLImageElement | HTMLHeadingElement;

// Return the visible canvases, thumbnails and headings of a figure.
const layers = (whole: HTMLElement) =>
  [
    ...whole.querySelectorAll<Layer>(".frame canvas, .frame img.thumb, .view .strip, .view h4"),
  ].filter((node) => node.getBoundingClientRect().width > 0);

function drawLayer(ctx: CanvasRenderingContext2D, node: Layer, box: DOMRect) {
  const { left, top, width, height } = box,
    style = getComputedStyle(node);
  if (node instanceof HTMLHeadingElement) {
    const size = parseFloat(style.fontSize) * (node.currentCSSZoom ?? 1);
    ctx.fillStyle = style.color;
    ctx.font = `${style.fontWeight} ${size}px ${style.fontFamily}`;
    ctx.textBaseline = "middle";
    const text = [...node.childNodes].map((child) => child.textContent).join("  ");
    ctx.fillText(text, left, top + height / 2, width);
    return;
  }
  ctx.drawImage(node, left, top, width, height);
  if (node instanceof HTMLCanvasElement) return;
  ctx.strokeStyle = style.borderColor;
  ctx.lineWidth = 3;
  ctx.strokeRect(left, top, width, height);
}
