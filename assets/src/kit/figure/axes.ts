// Grid, numbers and names of the axes of a figure, drawn from its view.
import type { Tick } from "../chart/axis.ts";
import type { Context, Ink } from "../types.ts";
import type { View } from "./view.ts";
import { ticks } from "../chart/axis.ts";
import { halo } from "../colours.ts";

/** Greatest number of steps between the ticks of each axis; 6 by default. */
export interface Marks {
  x?: number;
  y?: number;
}

const FONT = "11px system-ui, sans-serif",
  MOST = 6,
  EDGE = 16; // pixels at both ends of a plane's axis that are kept free of numbers

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

/** Draw the numbers of a plane along its lower and left edge, legible over any field. */
export function numbers(ctx: Context, view: View, ink: Ink, most?: Marks): void {
  const { width, height } = view,
    { x, y } = marked(view, most);
  ctx.font = FONT;
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  for (const { text, pixel } of x)
    if (pixel >= EDGE && pixel <= width - EDGE)
      halo(ctx, text, pixel, height - 5, ink.text, ink.rim);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { text, pixel } of y)
    if (pixel >= EDGE && pixel <= height - EDGE) halo(ctx, text, 5, pixel, ink.text, ink.rim);
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
