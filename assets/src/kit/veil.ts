// Veil and hatching over places without a force.

import type { Context, Ink } from "./types.ts";
import { drawing } from "./dom.ts";

const tiles: Map<Ink, OffscreenCanvas> = new Map();

// Return the hatching pattern of a theme.
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
// Draw the veil on a square canvas of `size` CSS pixels wherever `mask`, placed at left, top with
// the given side, is opaque.
export function veiled(
  ctx: Context,
  size: number,
  mask: CanvasImageSource,
  { left, top, side }: { left: number; top: number; side: number },
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
