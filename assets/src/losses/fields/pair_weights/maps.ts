// Painting of the maps; all numbers come from Python. Similarities run from -1 to 1, to the right
// and upwards.
import type { WeightMap, PairWeightsAnswer } from "./types.ts";
import type { View } from "../../../kit/figure/view.ts";
import type { Context, Ink, Theme } from "../../../kit/types.ts";
import { bitmap, polylines } from "../../../kit/figure/raster.ts";
import { chart } from "../../../kit/figure/view.ts";
import { rampColour, signedColour } from "../../../kit/colours.ts";

const RANGE = { low: -1, high: 1 },
  MARGIN = { left: 30, top: 6, right: 6, bottom: 30 };

/** Return the view of a map. */
export const mapView = (width: number, height: number): View =>
  chart({ x: RANGE, y: RANGE }, width, height, MARGIN);

/** Return the colours of one map; transparent where no triplet exists. */
export function rasterise(
  { n, exists, signed }: PairWeightsAnswer,
  weight: Uint8Array,
  theme: Theme,
): OffscreenCanvas {
  const table = Array.from({ length: 256 }, (_, i) =>
    signed ? signedColour(Math.max((i - 128) / 127, -1), theme) : rampColour(i / 255, theme),
  );
  return bitmap(n, (data, from, to) => data.set([...table[weight[from]], exists[from]], to));
}

/** Draw a map with its boundaries, the diagonal, and the crosses of the triplet and the pointer. */
export function paintMap(
  ctx: Context,
  view: View,
  ink: Ink,
  { raster, lines, corners, at, hover }: WeightMap,
): void {
  const { left, top, right } = view.area,
    square = { left, top, side: right - left },
    { side } = square;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, side, side);
  ctx.clip();
  ctx.strokeStyle = ink.hatch;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let x = -side; x < side; x += 8) {
    ctx.moveTo(left + x, top + side);
    ctx.lineTo(left + x + side, top);
  }
  ctx.stroke();
  if (raster && lines && corners) {
    ctx.imageSmoothingEnabled = true;
    ctx.drawImage(raster, left, top, side, side);
    ctx.strokeStyle = ink.outer;
    ctx.lineWidth = 1.75;
    const next = polylines(ctx, corners, lines.outer, 0, square);
    ctx.setLineDash([6, 4]);
    polylines(ctx, corners, lines.inner, next, square);
  }
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.setLineDash([1, 4]);
  ctx.beginPath();
  ctx.moveTo(...view.to([-1, -1]));
  ctx.lineTo(...view.to([1, 1])); // P and N equally similar to A
  ctx.stroke();
  ctx.setLineDash([]);
  if (hover) cross(ctx, view.to(hover), ink, false);
  cross(ctx, view.to(at), ink, true);
  ctx.restore();
  axes(ctx, view, side, ink);
}

function cross(ctx: Context, [x, y]: number[], ink: Ink, pinned: boolean): void {
  for (const [colour, width] of [
    [ink.rim, 4],
    [ink.text, 1.75],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    if (pinned) ctx.arc(x, y, 7, 0, 2 * Math.PI);
    for (const [dx, dy] of [
      [-1, 0],
      [1, 0],
      [0, -1],
      [0, 1],
    ]) {
      ctx.moveTo(x + 4 * dx, y + 4 * dy);
      ctx.lineTo(x + 12 * dx, y + 12 * dy);
    }
    ctx.stroke();
  }
}

function axes(ctx: Context, { area: { left, top }, height, to }: View, side: number, ink: Ink) {
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.strokeRect(left + 0.5, top + 0.5, side, side);
  ctx.fillStyle = ink.text;
  ctx.font = "11px system-ui, sans-serif";
  for (const v of [-1, -0.5, 0.5, 1]) {
    const [x, y] = to([v, v]),
      label = String(v).replace("-", "−");
    ctx.textAlign = v === -1 ? "left" : v === 1 ? "right" : "center";
    ctx.textBaseline = "alphabetic";
    ctx.fillText(label, x, height - 10);
    ctx.textAlign = "right";
    ctx.textBaseline = v === -1 ? "bottom" : v === 1 ? "top" : "middle";
    ctx.fillText(label, left - 5, y);
  }
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  similarity(ctx, "ap", left + side / 2, height - 10);
  similarity(ctx, "an", left - 15, top + side / 2 + 4);
}

function similarity(ctx: Context, pair: string, x: number, y: number): void {
  ctx.font = "italic 13px Georgia, serif";
  ctx.fillText("S", x - 5, y);
  ctx.font = "italic 9px Georgia, serif";
  ctx.fillText(pair, x + 5, y + 4);
}
