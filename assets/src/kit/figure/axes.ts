// Grid, ticks and names of axes, drawn from the view of a figure.
import type { Context, Ink } from "../types.ts";
import type { View } from "./view.ts";
import { halo, niceStep } from "../colours.ts";
import { ranges } from "./view.ts";

/** What a figure says of its axes. Values are numbers unless `text` says otherwise. */
export interface Axis {
  label?: string; // name with its unit
  most?: number; // at most so many steps between ticks; default 6
  text?(value: number): string;
}
export interface Axes {
  x?: Axis;
  y?: Axis;
}

/** One line of the grid: its value, its text, and its pixel along the axis. */
export interface Tick {
  value: number;
  text: string;
  pixel: number;
}

const FONT = "11px system-ui, sans-serif";

/** Return the ticks of one axis (0: x, 1: y) at round values within the area of a view. */
export function ticks(view: View, axis: 0 | 1, { most = 6, text }: Axis = {}): Tick[] {
  const [low, high] = ranges(view)[axis ? "y" : "x"],
    step = niceStep(high - low, most),
    digits = Math.max(0, -Math.floor(Math.log10(step))),
    slack = step * 1e-9,
    all: Tick[] = [];
  for (let k = Math.ceil((low - slack) / step); k * step <= high + slack; k++) {
    const value = k * step;
    all.push({
      value,
      text: text?.(value) ?? value.toFixed(digits),
      pixel: Math.round(view.to(axis ? [low, value] : [value, low])[axis]) + 0.5,
    });
  }
  return all;
}

/** Draw the lines of the grid over the area of a view. */
export function grid(ctx: Context, view: View, ink: Ink, { x = {}, y = {} }: Axes = {}): void {
  const { left, right, top, bottom } = view.area;
  ctx.lineWidth = 1;
  ctx.strokeStyle = ink.grid;
  ctx.beginPath();
  for (const { pixel } of ticks(view, 0, x)) {
    ctx.moveTo(pixel, top);
    ctx.lineTo(pixel, bottom);
  }
  for (const { pixel } of ticks(view, 1, y)) {
    ctx.moveTo(left, pixel);
    ctx.lineTo(right, pixel);
  }
  ctx.stroke();
}

/** Draw the numbers of a plane along its lower and left edge, legible over any field. */
export function numbers(ctx: Context, view: View, ink: Ink, { x = {}, y = {} }: Axes = {}): void {
  const { width, height } = view;
  ctx.font = FONT;
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  for (const { text, pixel } of ticks(view, 0, x))
    if (pixel >= 16 && pixel <= width - 16) halo(ctx, text, pixel, height - 5, ink.text, ink.rim);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { text, pixel } of ticks(view, 1, y))
    if (pixel >= 16 && pixel <= height - 16) halo(ctx, text, 5, pixel, ink.text, ink.rim);
}

/** Draw the numbers and names of a chart's axes in the margin around its area. */
export function labels(ctx: Context, view: View, ink: Ink, { x, y }: Axes): void {
  const { left, right, top, bottom } = view.area;
  ctx.font = FONT;
  ctx.fillStyle = ink.text;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "center";
  if (x) {
    for (const { text, pixel } of ticks(view, 0, x)) ctx.fillText(text, pixel, bottom + 13);
    ctx.fillText(x.label ?? "", (left + right) / 2, view.height - 4);
  }
  if (!y) return;
  ctx.save();
  ctx.translate(10, (top + bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.fillText(y.label ?? "", 0, 0);
  ctx.restore();
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const { text, pixel } of ticks(view, 1, y)) ctx.fillText(text, left - 5, pixel);
}
