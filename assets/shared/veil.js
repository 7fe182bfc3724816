// The look of places where nothing is felt: veiled and hatched.

const tiles = new Map();

// A pattern to fill with, one per theme.
export function stripes(ctx, ink) {
  if (!tiles.has(ink)) {
    const tile = new OffscreenCanvas(9, 9),
      t = tile.getContext("2d");
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
  return ctx.createPattern(tiles.get(ink), "repeat");
}

let overlay;
// Over a square canvas of `size` CSS pixels, wherever `mask`, drawn at left, top with this side, is
// opaque.
export function veiled(ctx, size, mask, { left, top, side }, ink) {
  const scale = ctx.getTransform().a,
    pixels = Math.round(size * scale);
  if (!overlay || overlay.width !== pixels) overlay = new OffscreenCanvas(pixels, pixels);
  const o = overlay.getContext("2d");
  o.setTransform(scale, 0, 0, scale, 0, 0);
  o.globalCompositeOperation = "copy";
  o.fillStyle = stripes(o, ink);
  o.fillRect(0, 0, size, size);
  o.globalCompositeOperation = "destination-in";
  o.drawImage(mask, left, top, side, side);
  ctx.drawImage(overlay, 0, 0, size, size);
}
