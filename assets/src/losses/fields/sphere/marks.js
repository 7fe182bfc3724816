// Marks shared by circle and sphere: the three points, and numbers that avoid each other.
/** @import { Label } from "./types.js" */
/** @import { Context, Ink, Point } from "../../../kit/types.js" */
import { LETTER, halo } from "../../../kit/colours.js";

// Draw a point: filled in front of the sphere, hollow behind.
/**
 * @param {Context} ctx
 * @param {Point} name
 * @param {number[]} xy
 * @param {boolean} probe
 * @param {Ink} ink
 */
export function mark(ctx, name, [x, y, z = 1], probe, ink) {
  const shape = (/** @type {number} */ r) => {
    ctx.beginPath();
    if (name === "negative") ctx.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2);
    else ctx.arc(x, y, r, 0, 2 * Math.PI);
  };
  ctx.save();
  ctx.lineWidth = 2.5;
  if (z < 0) {
    shape(9);
    ctx.globalAlpha = 0.75;
    ctx.fillStyle = ink.rim;
    ctx.fill();
    ctx.setLineDash([3, 2.5]);
    ctx.lineWidth = 2;
    ctx.strokeStyle = ink[name];
    ctx.stroke();
  } else {
    shape(10);
    ctx.fillStyle = ink[name];
    ctx.strokeStyle = ink.rim;
    ctx.fill();
    ctx.stroke();
  }
  if (probe) {
    ctx.setLineDash([]);
    ctx.strokeStyle = ink[name];
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.arc(x, y, 15, 0, 2 * Math.PI);
    ctx.stroke();
  }
  ctx.font = "700 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = z < 0 ? ink[name] : ink.rim;
  ctx.fillText(LETTER[name], x, y + 0.5);
  ctx.restore();
}

// Draw labels [text, x, y, colour]; overlapping ones are moved, and all stay inside.
/**
 * @param {Context} ctx
 * @param {Label[]} labels
 * @param {number} size
 * @param {Ink} ink
 */
export function write(ctx, labels, size, ink) {
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  /** @type {number[][]} */
  const taken = [];
  for (const [text, at, height, colour] of labels) {
    const x = Math.min(Math.max(at, 20), size - 20),
      step = height < size - 60 ? 15 : -15;
    let y = Math.min(Math.max(height, 9), size - 9);
    while (taken.some(([u, v]) => Math.abs(u - x) < 38 && Math.abs(v - y) < 14)) y += step;
    taken.push([x, y]);
    halo(ctx, text, x, y, colour, ink.rim, 4);
  }
}
