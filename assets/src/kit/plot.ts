// Markers of classes, and short forms of numbers.
import type { Context } from "./types.ts";

export const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "star", "plus"];

// kind: one of SHAPES
export function shape(ctx: Context, kind: string, x: number, y: number, r: number) {
  const ring = (n: number, turn: number, inner = 0) => {
    for (let i = 0; i < n; i++) {
      const a = turn + (2 * Math.PI * i) / n,
        k = inner && i % 2 ? inner * r : r;
      ctx[i ? "lineTo" : "moveTo"](x + k * Math.cos(a), y + k * Math.sin(a));
    }
    ctx.closePath();
  };
  const bars = (turn: number) => {
    const w = r * 0.38,
      c = Math.cos(turn),
      s = Math.sin(turn);
    [
      [w, w],
      [w, r],
      [-w, r],
      [-w, w],
      [-r, w],
      [-r, -w],
      [-w, -w],
      [-w, -r],
      [w, -r],
      [w, -w],
      [r, -w],
      [r, w],
    ].forEach(([u, v], i) => ctx[i ? "lineTo" : "moveTo"](x + u * c - v * s, y + u * s + v * c));
    ctx.closePath();
  };
  ctx.beginPath();
  if (kind === "circle") ctx.arc(x, y, r * 0.9, 0, 7);
  else if (kind === "square") ctx.rect(x - 0.8 * r, y - 0.8 * r, 1.6 * r, 1.6 * r);
  else if (kind === "triangle") ring(3, -Math.PI / 2);
  else if (kind === "down") ring(3, Math.PI / 2);
  else if (kind === "diamond") ring(4, 0);
  else if (kind === "star") ring(10, -Math.PI / 2, 0.45);
  else bars(kind === "cross" ? Math.PI / 4 : 0);
}

// Return a number in the shortest form that shows three digits; – if it was not measured.
export const brief = (v: number) =>
  !Number.isFinite(v)
    ? "–"
    : v === 0
      ? "0"
      : Math.abs(v) < 0.001 || Math.abs(v) >= 10000
        ? v.toExponential(1)
        : String(Number(v.toPrecision(3)));
