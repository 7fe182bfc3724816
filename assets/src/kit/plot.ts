// Markers of classes, and curves over the steps of a history.
import type { Context, Theme } from "./types.ts";
import { INK, niceStep } from "./colours.ts";

export interface Chart {
  title?: string;
  lines: Line[];
  top?: number;
  last: number;
  step: number;
  marks?: number[];
}

export interface Line {
  name?: string;
  colour: string;
  dash?: number[];
  value: (step: number) => number;
  noisy?: (step: number) => number;
}

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

// Draw a chart of curves over steps 0..last. lines = [{name, colour, dash, value(step)}], where
// value may be the mean of noisy(step), which is drawn faint below it. The cursor is at `step`;
// dotted lines mark changes (`marks`).
// Returns function that returns the step at a position
export function paintCurves(
  ctx: CanvasRenderingContext2D,
  width: number,
  height: number,
  { title, lines, top, last, step, marks = [] }: Chart,
  theme: Theme,
): (px: number) => number {
  const ink = INK[theme],
    left = 40,
    right = width - 6,
    up = 17,
    down = height - 6,
    stride = Math.max(1, Math.ceil((last + 1) / 500));
  ctx.clearRect(0, 0, width, height);
  ctx.font = "11.5px system-ui, sans-serif";
  let highest = top ?? 0;
  if (!top)
    for (const line of lines)
      for (let k = 0; k <= last; k += stride) {
        const v = line.value(k),
          w = line.noisy?.(k) ?? NaN; // NaN: not measured
        if (v > highest) highest = v;
        if (w > highest) highest = w;
      }
  highest ||= 1;
  if (!top) {
    const unit = niceStep(highest, 3);
    highest = Math.ceil(highest / unit - 1e-9) * unit;
  }
  const X = (k: number) => left + ((right - left) * k) / Math.max(last, 10),
    Y = (v: number) => down - ((down - up) * Math.min(v, highest)) / highest;
  ctx.strokeStyle = ink.grid;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const v of [0, highest / 2, highest]) {
    ctx.moveTo(left, Math.round(Y(v)) + 0.5);
    ctx.lineTo(right, Math.round(Y(v)) + 0.5);
  }
  ctx.stroke();
  ctx.fillStyle = ink.text;
  ctx.globalAlpha = 0.75;
  ctx.textAlign = "right";
  ctx.fillText(brief(highest), left - 5, up + 5);
  ctx.fillText("0", left - 5, down + 3);
  ctx.globalAlpha = 1;
  ctx.textAlign = "left";
  let x = left;
  if (title) {
    ctx.fillText(title, x, 10);
    x += ctx.measureText(title).width + 12;
  }
  for (const line of lines) {
    ctx.strokeStyle = line.colour;
    if (line.noisy) {
      ctx.lineWidth = 0.8;
      ctx.globalAlpha = 0.3;
      ctx.beginPath();
      for (let k = 0; k <= last; k += stride) ctx[k ? "lineTo" : "moveTo"](X(k), Y(line.noisy(k)));
      ctx.stroke();
      ctx.globalAlpha = 1;
    }
    ctx.lineWidth = 1.7;
    ctx.setLineDash(line.dash ?? []);
    ctx.beginPath();
    for (let k = 0; k <= last; k += stride) ctx[k ? "lineTo" : "moveTo"](X(k), Y(line.value(k)));
    ctx.stroke();
    if (line.name) {
      ctx.beginPath();
      ctx.moveTo(x, 6.5);
      ctx.lineTo(x + 14, 6.5);
      ctx.stroke();
      const text = `${line.name} ${brief(line.value(Math.min(step, last)))}`;
      ctx.fillText(text, x + 18, 10);
      x += 28 + ctx.measureText(text).width;
    }
    ctx.setLineDash([]);
  }
  ctx.lineWidth = 1;
  if (marks.length) {
    ctx.strokeStyle = ink.faint;
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    for (const k of marks) {
      ctx.moveTo(Math.round(X(k)) + 0.5, up);
      ctx.lineTo(Math.round(X(k)) + 0.5, down);
    }
    ctx.stroke();
    ctx.setLineDash([]);
  }
  ctx.strokeStyle = ink.text;
  ctx.beginPath();
  ctx.moveTo(Math.round(X(step)) + 0.5, up - 2);
  ctx.lineTo(Math.round(X(step)) + 0.5, down);
  ctx.stroke();
  return (px: number) => Math.round(((px - left) / (right - left)) * Math.max(last, 10));
}

export const brief = (v: number) =>
  !Number.isFinite(v)
    ? "–"
    : v === 0
      ? "0"
      : Math.abs(v) < 0.001 || Math.abs(v) >= 10000
        ? v.toExponential(1)
        : String(Number(v.toPrecision(3)));
