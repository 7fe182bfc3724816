// Colours by theme (Okabe-Ito roles), colour ramps, and text that stays legible over any field.

import palette from "./palette.json" with { type: "json" };

/** @import { Context, Point, Rgb, Theme } from "./types.js" */
/** @typedef {keyof typeof palette.light.ink} Role */

/** @type {Point[]} */
export const POINTS = ["anchor", "positive", "negative"];
export const LETTER = { anchor: "A", positive: "P", negative: "N" };

// The palette is shared with the figures for print (dmlcore/figures/palette.json): roles, a ramp of
// energies, and a ramp of signed values from blue through the background to vermillion.
/** @type {Record<Theme, Record<Role, string>>} */
export const INK = { light: palette.light.ink, dark: palette.dark.ink };

/**
 * @param {string} colour "#rrggbb"
 * @returns {Rgb}
 */
const rgb = (colour) =>
  /** @type {Rgb} */ ([1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)));
/** @param {"energy" | "signed"} name */
const ramps = (name) => ({
  light: palette.light[name].map(rgb),
  dark: palette.dark[name].map(rgb),
});
const RAMPS = ramps("energy"),
  SIGNED = ramps("signed");

/**
 * @param {Rgb[]} ramp
 * @param {number} t in 0..1
 * @returns {Rgb}
 */
function along(ramp, t) {
  const x = Math.min(Math.max(t, 0), 1) * (ramp.length - 1),
    i = Math.min(Math.floor(x), ramp.length - 2),
    f = x - i;
  return ramp[i].map((v, c) => Math.round(v + (ramp[i + 1][c] - v) * f));
}
/**
 * @param {number} t in 0..1
 * @param {Theme} theme
 */
export const rampColour = (t, theme) => along(RAMPS[theme], t);
/**
 * @param {number} t in -1..1
 * @param {Theme} theme
 */
export const signedColour = (t, theme) => along(SIGNED[theme], (t + 1) / 2);

/**
 * @param {Context} ctx
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {string} colour
 * @param {string} rim
 * @param {number} [width]
 */
export function halo(ctx, text, x, y, colour, rim, width = 3) {
  ctx.lineJoin = "round";
  ctx.lineWidth = width;
  ctx.strokeStyle = rim;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
}

/**
 * @param {number} span above 0
 * @param {number} [most]
 */
export function niceStep(span, most = 6) {
  const raw = span / most,
    power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
}
