// Axes: scales, round numbers with their labels, and the drawing of grid, numbers and names.
import type { Context, Ink } from "../types.ts";
import type { View } from "./view.ts";
import { halo, niceStep } from "../colours.ts";

export interface Axis {
  low: number;
  high: number;
  scale?: "linear" | "log" | "sqrt"; // linear by default
  name?: string;
}
export interface Tick {
  value: number;
  text: string;
}

const SCALES: Record<string, [to: (v: number) => number, back: (v: number) => number]> = {
  linear: [(v) => v, (v) => v],
  log: [Math.log, Math.exp],
  sqrt: [Math.sqrt, (v) => v * v],
};

// Return the function from values to pixels; `from` and `to` are the pixels of both ends.
export function position({ low, high, scale = "linear" }: Axis, from: number, to: number) {
  const [f] = SCALES[scale],
    start = f(low),
    unit = (to - from) / (f(high) - start);
  return scale === "linear"
    ? (value: number) => from + unit * (value - start)
    : (value: number) => from + unit * (f(value) - start);
}

// Return the value at a share of the length of an axis; shares are limited to 0..1.
export function valueAt({ low, high, scale = "linear" }: Axis, share: number) {
  const [f, back] = SCALES[scale],
    inside = Math.min(Math.max(share, 0), 1);
  return back(f(low) + inside * (f(high) - f(low)));
}

// Return about `most` round values of an axis, powers of ten if it is logarithmic.
export function ticks({ low, high, scale }: Axis, most: number): Tick[] {
  if (scale === "log") {
    const first = Math.ceil(Math.log10(low) - 1e-9),
      last = Math.floor(Math.log10(high) + 1e-9),
      by = Math.ceil((last - first + 1) / Math.max(most, 2)),
      count = Math.floor((last - first) / by) + 1;
    return Array.from({ length: count }, (_, i) => powerOfTen(last - i * by));
  }
  const step = niceStep(high - low, most),
    first = Math.ceil(low / step - 1e-9),
    count = Math.floor(high / step + 1e-9) - first + 1,
    digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: count }, (_, i) => {
    const value = (first + i) * step;
    return { value, text: value === 0 ? "0" : value.toFixed(digits).replace("-", "−") };
  });
}

function powerOfTen(exponent: number): Tick {
  const value = 10 ** exponent;
  return { value, text: Math.abs(exponent) < 3 ? String(value) : `1e${exponent}` };
}

// ---- drawing

/** Greatest number of steps between the ticks of each axis, 6 by default; and where a plane's
 * numbers are. */
export interface Marks {
  x?: number;
  y?: number;
  corner?: readonly [x: number, y: number]; // place whose left and lower lines the numbers follow
  below?: boolean; // below what the figure draws
}

const FONT = "11px system-ui, sans-serif",
  MOST = 6,
  EDGE = 16, // pixels at both ends of a plane's axis that are kept free of numbers
  CORNER = 44; // the same where both axes start

/** Return the ticks of both axes, each with its pixel. */
export function marked(view: View, { x = MOST, y = MOST }: Marks = {}) {
  const sharp = (pixel: number) => Math.round(pixel) + 0.5,
    at = (axis: 0 | 1) => (tick: Tick) => ({
      ...tick,
      pixel: sharp(view.to(axis ? [view.x.low, tick.value] : [tick.value, view.y.low])[axis]),
    });
  return { x: ticks(view.x, x).map(at(0)), y: ticks(view.y, y).map(at(1)) };
}

/** Draw the lines of the grid over the area of a view. */
export function grid(ctx: Context, view: View, ink: Ink, most?: Marks): void {
  const { left, right, top, bottom } = view.area,
    { x, y } = marked(view, most);
  ctx.lineWidth = 1;
  ctx.strokeStyle = ink.grid;
  ctx.beginPath();
  for (const { pixel } of x) {
    ctx.moveTo(pixel, top);
    ctx.lineTo(pixel, bottom);
  }
  for (const { pixel } of y) {
    ctx.moveTo(left, pixel);
    ctx.lineTo(right, pixel);
  }
  ctx.stroke();
}

/** Draw the numbers of a plane along its lower and left edge, or along the lines through `corner`,
 * legible over any field. */
export function numbers(ctx: Context, view: View, ink: Ink, most: Marks = {}): void {
  const { width, height } = view,
    [left, bottom] = most.corner ? view.to(most.corner) : [0, height],
    gap = most.corner ? 10 : 5, // marks of the figure may stand on the lines
    { x, y } = marked(view, most);
  ctx.font = FONT;
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  for (const { text, pixel } of x)
    if (pixel >= CORNER && pixel <= width - EDGE)
      halo(ctx, text, pixel, bottom - gap, ink.text, ink.rim);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { text, pixel } of y)
    if (pixel >= EDGE && pixel <= height - CORNER)
      halo(ctx, text, left + gap, pixel, ink.text, ink.rim);
}

/** Draw the numbers and names of a chart's axes in the margin around its area. */
export function labels(ctx: Context, view: View, ink: Ink, most?: Marks): void {
  const { left, right, top, bottom } = view.area,
    { x, y } = marked(view, most);
  ctx.font = FONT;
  ctx.fillStyle = ink.text;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "center";
  for (const { text, pixel } of x) ctx.fillText(text, pixel, bottom + 13);
  ctx.fillText(view.x.name ?? "", (left + right) / 2, view.height - 4);
  ctx.save();
  ctx.translate(10, (top + bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.fillText(view.y.name ?? "", 0, 0);
  ctx.restore();
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const { text, pixel } of y) ctx.fillText(text, left - 5, pixel);
}
