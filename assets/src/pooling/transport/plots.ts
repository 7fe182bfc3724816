// Small charts with axes: curves, dots and markers computed by Python.
import type { Axis, Pen } from "./types.ts";
import type { Context, Theme } from "../../kit/types.ts";
import { INK, halo, niceStep } from "../../kit/colours.ts";

const PAD = { left: 40, right: 12, top: 10, bottom: 34 };
const tick = (v: number) =>
  Math.abs(v) >= 1e4 ? v.toExponential(0) : String(Number(v.toPrecision(6)));

// x, y: {low, high, log, name}. Layers are drawn in order by draw(pen); pen.at(x, y) gives pixels.
export function plot(
  ctx: Context,
  w: number,
  h: number,
  x: Axis,
  y: Axis,
  theme: Theme,
  draw: (pen: Pen) => void,
) {
  const ink = INK[theme],
    to = (axis: Axis, v: number) =>
      axis.log
        ? Math.log(v / axis.low) / Math.log(axis.high / axis.low)
        : (v - axis.low) / (axis.high - axis.low);
  const at: Pen["at"] = (u: number, v: number) => [
    PAD.left + (w - PAD.left - PAD.right) * to(x, u),
    h - PAD.bottom - (h - PAD.top - PAD.bottom) * to(y, v),
  ];
  ctx.clearRect(0, 0, w, h);
  ctx.font = "11px system-ui, sans-serif";
  ctx.lineWidth = 1;
  for (const v of ticks(x, Math.max(3, Math.floor((w - 60) / 62)))) {
    const [px] = at(v, y.low);
    line(
      ctx,
      [
        [px, PAD.top],
        [px, h - PAD.bottom],
      ],
      ink.grid,
    );
    ctx.textAlign = "center";
    ctx.fillStyle = ink.text;
    ctx.fillText(label(x, v), px, h - PAD.bottom + 14);
  }
  for (const v of ticks(y, 5)) {
    const [, py] = at(x.low, v);
    line(
      ctx,
      [
        [PAD.left, py],
        [w - PAD.right, py],
      ],
      ink.grid,
    );
    ctx.textAlign = "right";
    ctx.fillStyle = ink.text;
    ctx.fillText(label(y, v), PAD.left - 5, py + 3.5);
  }
  ctx.textAlign = "center";
  ctx.fillText(x.name ?? "", PAD.left + (w - PAD.left - PAD.right) / 2, h - 4);
  ctx.save();
  ctx.beginPath();
  ctx.rect(PAD.left, PAD.top - 6, w - PAD.left - PAD.right + 6, h - PAD.top - PAD.bottom + 12);
  ctx.clip();
  draw({
    ink,
    at,
    curve: (
      xs,
      ys,
      colour: string,
      { dash = [], width = 1.8 }: { dash?: number[]; width?: number } = {},
    ) =>
      line(
        ctx,
        Array.from(xs, (u, k) => at(u, y.log ? Math.max(ys[k], y.low / 1e3) : ys[k])),
        colour,
        width,
        dash,
      ),
    across: (v: number, colour: string, dash) =>
      line(ctx, [at(x.low, v), at(x.high, v)], colour, 1.2, dash),
    down: (u: number, colour: string, dash) =>
      line(ctx, [at(u, y.low), at(u, y.high)], colour, 1.2, dash),
    dot: (u: number, v: number, colour: string, radius = 3.2, rim = ink.rim) => {
      const [px, py] = at(u, y.log ? Math.max(v, y.low) : v);
      ctx.beginPath();
      ctx.arc(px, py, radius, 0, 7);
      ctx.fillStyle = colour;
      ctx.fill();
      ctx.strokeStyle = rim;
      ctx.lineWidth = 0.9;
      ctx.stroke();
    },
    square: (u: number, v: number, colour: string, r = 3.4) => {
      const [px, py] = at(u, y.log ? Math.max(v, y.low) : v);
      ctx.fillStyle = colour;
      ctx.fillRect(px - r, py - r, 2 * r, 2 * r);
      ctx.strokeStyle = ink.rim;
      ctx.strokeRect(px - r, py - r, 2 * r, 2 * r);
    },
    text: (
      words: string,
      u: number,
      v: number,
      { dx = 0, dy = 0, align = "left", colour = ink.text } = {},
    ) => {
      const [px, py] = at(u, v),
        wide = ctx.measureText(words).width;
      ctx.textAlign = "left";
      const left = px + dx - (align === "right" ? wide : align === "center" ? wide / 2 : 0);
      halo(
        ctx,
        words,
        Math.min(Math.max(left, PAD.left + 2), w - PAD.right - wide),
        py + dy,
        colour,
        ink.page,
      );
    },
  });
  ctx.restore();
}

// Return the value of the x axis at a pixel.
export function valueAt(px: number, w: number, x: Axis) {
  const t = Math.min(Math.max((px - PAD.left) / (w - PAD.left - PAD.right), 0), 1);
  return x.log ? x.low * (x.high / x.low) ** t : x.low + t * (x.high - x.low);
}

function ticks(axis: Axis, most: number) {
  if (axis.log) {
    const first = Math.ceil(Math.log10(axis.low) - 1e-9),
      last = Math.floor(Math.log10(axis.high) + 1e-9),
      by = Math.ceil((last - first + 1) / Math.max(most, 2));
    return Array.from(
      { length: Math.floor((last - first) / by) + 1 },
      (_, k) => 10 ** (last - k * by),
    );
  }
  const step = niceStep(axis.high - axis.low, most);
  const found: number[] = [];
  for (let v = Math.ceil(axis.low / step - 1e-9) * step; v <= axis.high + 1e-9; v += step)
    found.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return found;
}
const label = (axis: Axis, v: number) =>
  axis.log && (v < 0.01 || v > 999) ? `1e${Math.round(Math.log10(v))}` : tick(v);

function line(ctx: Context, points: number[][], colour: string, width = 1, dash = [] as number[]) {
  ctx.beginPath();
  points.forEach(([px, py], k) => (k ? ctx.lineTo(px, py) : ctx.moveTo(px, py)));
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.stroke();
  ctx.setLineDash([]);
}
