// Painting of the close-up, the image and its histogram; all numbers come from Python.
import type { At, Look, One, Plane } from "./types.ts";
import type { Context, Theme } from "../../kit/types.ts";
import { Pen } from "../../kit/chart/pen.ts";
import { INK, niceStep } from "../../kit/colours.ts";
import { CLASS, DASHES, PICKED, arrow, boxView, points } from "./draw.ts";

const PAD = { left: 34, right: 2, top: 8, bottom: 16 }; // of the histogram

// Draw the bound: circles about the average with the mean distance (dashed) and with delta as radii;
// the combination lies in both.
export function paintClose(
  ctx: Context,
  size: number,
  plane: Plane,
  image: One,
  view: Look,
  theme: Theme,
) {
  const ink = INK[theme],
    { pooled, combination, mean_distance, radius, error } = image.image,
    half = 1.16 * Math.max(radius, mean_distance, error, 1e-9);
  const { to, scale: k } = boxView([pooled[0] - half, pooled[1] - half, 2 * half], size),
    at: At = (x, y) => to([x, y]),
    centre = at(...pooled);
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, size, size);
  points(ctx, plane, view, at, CLASS[theme], ink, 3);
  for (const [r, dash] of [
    [mean_distance, [6, 4]],
    [radius, []],
  ] as const) {
    ctx.strokeStyle = ink.text;
    ctx.lineWidth = 1.4;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.arc(...centre, r * k, 0, 7);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  arrow(ctx, centre, at(...combination), ink, 6);
}

// Draw the image enlarged, with the prototype assigned to each position; positions of the hovered
// prototype are highlighted.
export function paintImage(
  ctx: Context,
  size: number,
  image: One,
  pixels: HTMLCanvasElement,
  plane: Plane,
  hover: number,
  theme: Theme,
) {
  const ink = INK[theme],
    [rows, columns] = plane.grid,
    side = pixels.width,
    unit = size / side,
    window = plane.window;
  ctx.imageSmoothingEnabled = side > 16;
  ctx.drawImage(pixels, 0, 0, size, size);
  if (hover < 0) return;
  const stride = rows === side - window + 1 ? 1 : side / rows;
  image.assigned.forEach((i, j) => {
    if (i !== hover) return;
    const row = Math.floor(j / columns),
      column = j % columns,
      w = stride === 1 ? window : stride;
    ctx.strokeStyle = ink.page;
    ctx.lineWidth = 4;
    ctx.strokeRect(column * stride * unit + 1, row * stride * unit + 1, w * unit - 2, w * unit - 2);
    ctx.strokeStyle = PICKED[theme];
    ctx.lineWidth = 2;
    ctx.strokeRect(column * stride * unit + 1, row * stride * unit + 1, w * unit - 2, w * unit - 2);
  });
}

// Draw the histogram of the image over all prototypes, one step line per shown class, and tau.
export function paintBars(
  ctx: Context,
  width: number,
  height: number,
  plane: Plane,
  image: One,
  view: Look,
  theme: Theme,
) {
  const m = image.histogram.length,
    highest = Math.max(...image.histogram, ...plane.share),
    unit = niceStep(highest, 3),
    high = Math.ceil(highest / unit - 1e-9) * unit,
    axes = { x: { low: 0, high: m }, y: { low: 0, high } },
    pen = new Pen(ctx, { width, height, pad: PAD, ...axes }, theme);
  pen.yAxis();
  image.histogram.forEach((share, i) => {
    const x = pen.x(i) + 0.5,
      y = pen.y(share);
    ctx.beginPath();
    ctx.rect(x, y, Math.max(1, pen.x(i + 1) - x - 0.5), pen.base - y);
    pen.fill(PICKED[theme], view.hover < 0 || view.hover === i ? 0.85 : 0.35);
  });
  const ends = Array.from({ length: 2 * m }, (_, i) => (i + 1) >> 1);
  for (const slot of view.shown.keys()) {
    const shares = ends.map((_, i) => plane.share[slot * m + (i >> 1)]),
      dash = DASHES[slot].map((d) => d * 0.6);
    pen.curve(ends, shares, CLASS[theme][slot], { width: 1.5, dash });
  }
  pen.across(plane.tau, pen.ink.text, { width: 1.5, dash: [2, 2] });
  ctx.fillStyle = pen.ink.text;
  ctx.textAlign = "left";
  ctx.fillText("prototype 1", pen.left, height - 3);
  ctx.textAlign = "right";
  ctx.fillText(String(m), pen.right, height - 3);
}

// Return the prototype at a pixel of the histogram, -1 if there is none.
export function barAt(px: number, width: number, count: number) {
  const i = Math.floor(((px - PAD.left) / (width - PAD.left - PAD.right)) * count);
  return i >= 0 && i < count ? i : -1;
}
