// Marks shared by circle and sphere: the three points, and numbers that avoid each other.
import type { Label } from "./types.ts";
import type { Context, Ink, Point } from "../../../kit/types.ts";
import { LETTER, halo } from "../../../kit/colours.ts";

// Draw a point: filled in front of the sphere, hollow behind.
export function mark(ctx: Context, name: Point, [x, y, z = 1]: number[], probe: boolean, ink: Ink) {
  const shape = (r: number) => {
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
export function write(ctx: Context, labels: Label[], size: number, ink: Ink) {
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const taken: number[][] = [];
  for (const [text, at, height, colour] of labels) {
    const x = Math.min(Math.max(at, 20), size - 20),
      step = height < size - 60 ? 15 : -15;
    let y = Math.min(Math.max(height, 9), size - 9);
    while (taken.some(([u, v]) => Math.abs(u - x) < 38 && Math.abs(v - y) < 14)) y += step;
    taken.push([x, y]);
    halo(ctx, text, x, y, colour, ink.rim, 4);
  }
}
