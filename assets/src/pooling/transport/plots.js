// Small charts with axes: curves, dots and markers computed by Python.
/** @import { Axis, Pen } from "./types.js" */
/** @import { Context, Theme } from "../../kit/types.js" */
import { INK, halo, niceStep } from "../../kit/colours.js";

const PAD = { left: 40, right: 12, top: 10, bottom: 34 };
/** @param {number} v */
const tick = (v) => (Math.abs(v) >= 1e4 ? v.toExponential(0) : String(Number(v.toPrecision(6))));

// x, y: {low, high, log, name}. Layers are drawn in order by draw(pen); pen.at(x, y) gives pixels.
/**
 * @param {Context} ctx
 * @param {number} w
 * @param {number} h
 * @param {Axis} x
 * @param {Axis} y
 * @param {Theme} theme
 * @param {(pen: Pen) => void} draw
 */
export function plot(ctx, w, h, x, y, theme, draw) {
  const ink = INK[theme],
    to = (/** @type {Axis} */ axis, /** @type {number} */ v) =>
      axis.log
        ? Math.log(v / axis.low) / Math.log(axis.high / axis.low)
        : (v - axis.low) / (axis.high - axis.low);
  /** @type {Pen["at"]} */
  const at = (/** @type {number} */ u, /** @type {number} */ v) => [
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
      /** @type {string} */ colour,
      /** @type {{ dash?: number[], width?: number }} */ { dash = [], width = 1.8 } = {},
    ) =>
      line(
        ctx,
        Array.from(xs, (u, k) => at(u, y.log ? Math.max(ys[k], y.low / 1e3) : ys[k])),
        colour,
        width,
        dash,
      ),
    across: (/** @type {number} */ v, /** @type {string} */ colour, dash) =>
      line(ctx, [at(x.low, v), at(x.high, v)], colour, 1.2, dash),
    down: (/** @type {number} */ u, /** @type {string} */ colour, dash) =>
      line(ctx, [at(u, y.low), at(u, y.high)], colour, 1.2, dash),
    dot: (
      /** @type {number} */ u,
      /** @type {number} */ v,
      /** @type {string} */ colour,
      radius = 3.2,
      rim = ink.rim,
    ) => {
      const [px, py] = at(u, y.log ? Math.max(v, y.low) : v);
      ctx.beginPath();
      ctx.arc(px, py, radius, 0, 7);
      ctx.fillStyle = colour;
      ctx.fill();
      ctx.strokeStyle = rim;
      ctx.lineWidth = 0.9;
      ctx.stroke();
    },
    square: (
      /** @type {number} */ u,
      /** @type {number} */ v,
      /** @type {string} */ colour,
      r = 3.4,
    ) => {
      const [px, py] = at(u, y.log ? Math.max(v, y.low) : v);
      ctx.fillStyle = colour;
      ctx.fillRect(px - r, py - r, 2 * r, 2 * r);
      ctx.strokeStyle = ink.rim;
      ctx.strokeRect(px - r, py - r, 2 * r, 2 * r);
    },
    text: (
      /** @type {string} */ words,
      /** @type {number} */ u,
      /** @type {number} */ v,
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
/**
 * @param {number} px
 * @param {number} w
 * @param {Axis} x
 */
export function valueAt(px, w, x) {
  const t = Math.min(Math.max((px - PAD.left) / (w - PAD.left - PAD.right), 0), 1);
  return x.log ? x.low * (x.high / x.low) ** t : x.low + t * (x.high - x.low);
}

/**
 * @param {Axis} axis
 * @param {number} most
 */
function ticks(axis, most) {
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
  /** @type {number[]} */
  const found = [];
  for (let v = Math.ceil(axis.low / step - 1e-9) * step; v <= axis.high + 1e-9; v += step)
    found.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return found;
}
/**
 * @param {Axis} axis
 * @param {number} v
 */
const label = (axis, v) =>
  axis.log && (v < 0.01 || v > 999) ? `1e${Math.round(Math.log10(v))}` : tick(v);

/**
 * @param {Context} ctx
 * @param {number[][]} points
 * @param {string} colour
 */
function line(ctx, points, colour, width = 1, dash = /** @type {number[]} */ ([])) {
  ctx.beginPath();
  points.forEach(([px, py], k) => (k ? ctx.lineTo(px, py) : ctx.moveTo(px, py)));
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.stroke();
  ctx.setLineDash([]);
}
