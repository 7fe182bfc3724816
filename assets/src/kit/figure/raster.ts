// Values that Python computes on a square grid of nodes, as images; masks, as a hatched veil; and
// lines between its places. Rows run upwards, as in the plane.
import type { Context, Ink, Theme } from "../types.ts";
import { rampColour, signedColour } from "../colours.ts";
import { drawing } from "../dom.ts";

const scalesOf = (theme: Theme) => ({
  ramp: (t: number) => rampColour(t, theme), // from zero
  signed: (t: number) => signedColour(2 * t - 1, theme), // either side of zero
  half: (t: number) => signedColour(t, theme), // the positive half of `signed`
});
/** Colours of the scales of figures, by a share 0..1 of their range. */
export const SCALES = { light: scalesOf("light"), dark: scalesOf("dark") };

/** A square of a canvas, in pixels. */
export interface Square {
  left: number;
  top: number;
  side: number;
}

/** Return an image of n x n nodes; `fill` sets the pixel at `to` of `data` from node `from`. */
export function bitmap(
  n: number,
  fill: (data: Uint8ClampedArray, from: number, to: number) => void,
): OffscreenCanvas {
  const image = new ImageData(n, n),
    canvas = new OffscreenCanvas(n, n);
  for (let row = 0; row < n; row++)
    for (let col = 0; col < n; col++)
      fill(image.data, row * n + col, ((n - 1 - row) * n + col) * 4);
  drawing(canvas).putImageData(image, 0, 0);
  return canvas;
}

/** Return a `fill` for opaque colours, by value 0..255. */
export const coloured =
  (values: Uint8Array, table: readonly (readonly number[])[]) =>
  (data: Uint8ClampedArray, from: number, to: number): void => {
    const [r, g, b] = table[values[from]];
    data[to] = r;
    data[to + 1] = g;
    data[to + 2] = b;
    data[to + 3] = 255;
  };

/** Return a `fill` that is opaque where a bit of the mask is not set. */
export const masked =
  (bits: Uint8Array) =>
  (data: Uint8ClampedArray, from: number, to: number): void => {
    data[to + 3] = bits[from >> 3] & (128 >> (from & 7)) ? 0 : 255;
  };

/**
 * Stroke polylines of `counts` corners each (0..65535 across the square), from corner `first` on;
 * return the index of the next corner. Midpoints of long lines are passed to visit(x, y).
 */
export function polylines(
  ctx: Context,
  corners: Uint16Array,
  counts: readonly number[],
  first: number,
  { left, top, side }: Square,
  visit?: (x: number, y: number) => void,
): number {
  let at = first;
  ctx.beginPath();
  for (const count of counts)
    for (let i = 0; i < count; i++, at++) {
      const x = left + (corners[2 * at] / 65535) * side,
        y = top + side - (corners[2 * at + 1] / 65535) * side;
      if (i) ctx.lineTo(x, y);
      else ctx.moveTo(x, y);
      if (visit && i === count >> 1 && count > 12) visit(x, y);
    }
  ctx.stroke();
  return at;
}

const tiles: Map<Ink, OffscreenCanvas> = new Map();

/** Return the pattern that hatches places without a force. */
export function stripes(ctx: Context, ink: Ink) {
  let tile = tiles.get(ink);
  if (!tile) {
    tile = new OffscreenCanvas(9, 9);
    const t = drawing(tile);
    t.fillStyle = ink.veil;
    t.fillRect(0, 0, 9, 9);
    t.strokeStyle = ink.hatch;
    t.beginPath();
    for (const x of [-9, 0, 9]) {
      t.moveTo(x - 1, 10);
      t.lineTo(x + 10, -1);
    }
    t.stroke();
    tiles.set(ink, tile);
  }
  return ctx.createPattern(tile, "repeat") as CanvasPattern;
}

let overlay: OffscreenCanvas | undefined;

/** Veil and hatch a canvas of `size` CSS pixels where `mask`, placed in a square, is opaque. */
export function veiled(
  ctx: Context,
  size: number,
  mask: CanvasImageSource,
  { left, top, side }: Square,
  ink: Ink,
) {
  const scale = ctx.getTransform().a,
    pixels = Math.round(size * scale);
  if (!overlay || overlay.width !== pixels) overlay = new OffscreenCanvas(pixels, pixels);
  const o = drawing(overlay);
  o.setTransform(scale, 0, 0, scale, 0, 0);
  o.globalCompositeOperation = "copy";
  o.fillStyle = stripes(o, ink);
  o.fillRect(0, 0, size, size);
  o.globalCompositeOperation = "destination-in";
  o.drawImage(mask, left, top, side, side);
  ctx.drawImage(overlay, 0, 0, size, size);
}
