// Painting of charges, curves and phase portrait; all numbers come from Python.
import type { History } from "./history.ts";
import type { Frame, Portrait, Shown } from "./types.ts";
import type { Context, Ink, Theme } from "../../kit/types.ts";
import { drawing } from "../../kit/dom.ts";
import { INK, LISTS, niceStep, rampColour } from "../../kit/colours.ts";
import { SHAPES, brief as label, shape } from "../../kit/plot.ts";

// Okabe-Ito colour and marker shape by class, so that colour is not the only cue.
export const CLASS = LISTS.classes;

// Return half the width of the view, in steps, so that it does not jitter.
export function halfWidth(positions: Float32Array) {
  let most = 0;
  for (const v of positions) most = Math.max(most, Math.abs(v));
  return (
    [0.06, 0.12, 0.25, 0.5, 0.8, 1.15, 1.5, 2, 2.6, 3.4, 4.5, 6, 8].find((h) => h >= most * 1.06) ??
    10.5
  );
}

export const toPixels = (half: number, size: number) => (x: number, y: number) => [
  ((x + half) / (2 * half)) * size,
  ((half - y) / (2 * half)) * size,
];
export const fromPixels = (half: number, size: number) => (px: number, py: number) => [
  (px / size) * 2 * half - half,
  half - (py / size) * 2 * half,
];

// Paint a step. history.at(step) -> {positions, forces, means, radii}; show = {trails, arrows,
// circles}
export function paintCharges(
  ctx: Context,
  size: number,
  history: History,
  step: number,
  labels: ArrayLike<number>,
  show: Shown,
  theme: Theme,
  { half, chosen, circle }: { half: number; chosen: number | null; circle: boolean },
) {
  const ink = INK[theme],
    colours = CLASS[theme],
    at = toPixels(half, size),
    frame = history.at(step),
    n = labels.length;
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, size, size);
  grid(ctx, size, half, ink);
  if (circle) {
    ctx.strokeStyle = ink.faint;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.arc(size / 2, size / 2, size / (2 * half), 0, 7);
    ctx.stroke();
  }
  if (show.trails) trails(ctx, history, step, labels, colours, at);
  if (show.circles) {
    for (let c = 0; c < frame.radii.length; c++) {
      const [x, y] = at(frame.means[2 * c], frame.means[2 * c + 1]);
      ctx.strokeStyle = colours[c];
      ctx.lineWidth = 1.4;
      ctx.setLineDash([5, 4]);
      ctx.beginPath();
      ctx.arc(x, y, (frame.radii[c] / (2 * half)) * size, 0, 7);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(x - 5, y);
      ctx.lineTo(x + 5, y);
      ctx.moveTo(x, y - 5);
      ctx.lineTo(x, y + 5);
      ctx.stroke();
    }
  }
  if (show.arrows) arrows(ctx, frame, at, ink, n);
  const r = (n > 160 ? 4.6 : n > 80 ? 5.6 : 6.6) * Math.max(0.75, Math.min(size / 560, 1.2));
  ctx.lineWidth = 1.1;
  ctx.strokeStyle = ink.rim;
  for (let i = 0; i < n; i++) {
    const [x, y] = at(frame.positions[2 * i], frame.positions[2 * i + 1]);
    shape(ctx, SHAPES[labels[i]], x, y, r);
    ctx.fillStyle = colours[labels[i]];
    ctx.fill();
    ctx.stroke();
  }
  if (chosen !== null) {
    const [x, y] = at(frame.positions[2 * chosen], frame.positions[2 * chosen + 1]);
    ctx.strokeStyle = INK.light.selected;
    ctx.lineWidth = 2.5;
    ctx.beginPath();
    ctx.arc(x, y, r + 6, 0, 7);
    ctx.stroke();
  }
}

function grid(ctx: Context, size: number, half: number, ink: Ink) {
  const step = niceStep(2 * half, 6),
    to = (v: number) => ((v + half) / (2 * half)) * size;
  ctx.strokeStyle = ink.grid;
  ctx.lineWidth = 1;
  ctx.font = "11px system-ui, sans-serif";
  ctx.fillStyle = ink.text;
  for (let v = Math.ceil(-half / step) * step; v <= half; v += step) {
    const p = Math.round(to(v)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(p, 0);
    ctx.lineTo(p, size);
    ctx.moveTo(0, size - p);
    ctx.lineTo(size, size - p);
    ctx.stroke();
    if (p <= 14 || p >= size - 14) continue;
    const text = label(Number(v.toFixed(3))).replace("-", "−");
    ctx.textAlign = "center";
    ctx.fillText(text, p, size - 5);
    ctx.textAlign = "left";
    if (p > 22) ctx.fillText(text, 5, size - p + 4); // above the numbers of the other axis
  }
}

const TAIL = 40;
function trails(
  ctx: Context,
  history: History,
  step: number,
  labels: ArrayLike<number>,
  colours: string[],
  at: (x: number, y: number) => number[],
) {
  const from = Math.max(0, step - TAIL);
  ctx.lineWidth = 1.2;
  ctx.globalAlpha = 0.32;
  for (let c = 0; c <= labels[labels.length - 1]; c++) {
    ctx.strokeStyle = colours[c];
    ctx.beginPath();
    for (let i = 0; i < labels.length; i++) {
      if (labels[i] !== c) continue;
      for (let k = from; k <= step; k++) {
        const p = history.at(k).positions,
          [x, y] = at(p[2 * i], p[2 * i + 1]);
        ctx[k === from ? "moveTo" : "lineTo"](x, y);
      }
    }
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

// Draw an arrow of length 34 |F| / (|F| + 1) px, which approaches 34 px.
function arrows(
  ctx: Context,
  frame: Frame,
  at: (x: number, y: number) => number[],
  ink: Ink,
  n: number,
) {
  ctx.strokeStyle = ink.force;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  for (let i = 0; i < n; i++) {
    const fx = frame.forces[2 * i],
      fy = frame.forces[2 * i + 1],
      f = Math.hypot(fx, fy);
    if (f < 1e-3) continue;
    const [x, y] = at(frame.positions[2 * i], frame.positions[2 * i + 1]),
      k = 34 / (f + 1),
      u = fx * k,
      v = -fy * k,
      h = 0.28;
    ctx.moveTo(x, y);
    ctx.lineTo(x + u, y + v);
    ctx.moveTo(x + u - h * (u + v * 0.6), y + v - h * (v - u * 0.6));
    ctx.lineTo(x + u, y + v);
    ctx.lineTo(x + u - h * (u - v * 0.6), y + v - h * (v + u * 0.6));
  }
  ctx.stroke();
}

const NAME = 18; // width in px of the vertical axis title
const GAP = 5; // px between an axis and its numbers

// Return the left margin of a plot for the vertical axis title and the numbers.
export const leftMargin = (ctx: Pick<CanvasText, "measureText">, numbers: string[]) =>
  NAME + GAP + Math.ceil(Math.max(...numbers.map((text) => ctx.measureText(text).width)));

// Draw the density of all triplets over (d_ap, d_an), with the clamp lines of the loss.
export function paintPortrait(
  ctx: Context,
  width: number,
  height: number,
  portrait: Portrait,
  theme: Theme,
) {
  ctx.font = "11.5px system-ui, sans-serif";
  const { density, reach, corners, outer, inner } = portrait,
    ticks = [0, reach / 2, reach],
    ink = INK[theme],
    left = leftMargin(ctx, ticks.map(label)),
    down = height - 32,
    up = 6,
    right = width - 8;
  const bins = Math.sqrt(density.length),
    image = new ImageData(bins, bins),
    X = (v: number) => left + ((right - left) * v) / reach,
    Y = (v: number) => down - ((down - up) * v) / reach;
  for (let row = 0; row < bins; row++)
    for (let column = 0; column < bins; column++) {
      const to = 4 * ((bins - 1 - row) * bins + column),
        value = density[row * bins + column];
      const [r, g, b] = value
        ? rampColour(0.12 + (0.88 * value) / 255, theme)
        : rampColour(0, theme);
      image.data.set([r, g, b, 255], to);
    }
  const small = Object.assign(document.createElement("canvas"), { width: bins, height: bins });
  drawing(small).putImageData(image, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(small, left, up, right - left, down - up);
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.strokeRect(left + 0.5, up + 0.5, right - left - 1, down - up - 1);
  const line = (dash: number[], colour: string, wide: number, draw: () => void) => {
    for (const [w, c] of [
      [wide + 2, ink.page],
      [wide, colour],
    ] as const) {
      ctx.setLineDash(dash);
      ctx.lineWidth = w;
      ctx.strokeStyle = c;
      ctx.beginPath();
      draw();
      ctx.stroke();
    }
    ctx.setLineDash([]);
  };
  line([2, 4], ink.text, 1.2, () => {
    ctx.moveTo(X(0), Y(0));
    ctx.lineTo(X(reach), Y(reach));
  });
  let at = 0;
  const poly = (lengths: number[]) => {
    for (const length of lengths) {
      for (let i = 0; i < length; i++, at++)
        ctx[i ? "lineTo" : "moveTo"](X(corners[2 * at]), Y(corners[2 * at + 1]));
    }
  };
  const start = at;
  line([], ink.negative, 2, () => {
    at = start;
    poly(outer);
  });
  const second = outer.reduce((a, b) => a + b, 0);
  line([7, 4], ink.negative, 2, () => {
    at = second;
    poly(inner);
  });
  ctx.fillStyle = ink.text;
  for (const v of ticks) {
    ctx.textAlign = v === reach ? "right" : "center";
    ctx.fillText(label(v), X(v), down + 14);
    ctx.textAlign = "right";
    ctx.fillText(label(v), left - GAP, Y(v) + (v === reach ? 9 : 4));
  }
  ctx.textAlign = "center";
  ctx.fillText("d(a, p), to the positive", (left + right) / 2, down + 28);
  ctx.save();
  ctx.translate(11, (up + down) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.fillText("d(a, n), to the negative", 0, 0);
  ctx.restore();
}
