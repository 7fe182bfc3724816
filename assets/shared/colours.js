// Colours by theme (Okabe-Ito roles), colour ramps, and text that stays legible over any field.

/** @import { Context, Point, Rgb, Theme } from "./types.js" */

/** @type {Point[]} */
export const POINTS = ["anchor", "positive", "negative"];
export const LETTER = { anchor: "A", positive: "P", negative: "N" };

const RAMPS = {
  light: [
    [247, 246, 252],
    [214, 208, 236],
    [160, 147, 210],
    [104, 86, 172],
    [58, 40, 120],
  ],
  dark: [
    [24, 28, 36],
    [46, 42, 86],
    [84, 70, 150],
    [138, 122, 204],
    [206, 198, 244],
  ],
};
// Ramp of signed values: -1 blue, 0 background, +1 vermillion.
const SIGNED = {
  light: [
    [0, 84, 140],
    [96, 160, 206],
    [246, 246, 248],
    [232, 150, 90],
    [168, 70, 0],
  ],
  dark: [
    [120, 190, 240],
    [46, 98, 142],
    [24, 28, 36],
    [140, 76, 30],
    [250, 160, 90],
  ],
};
export const INK = {
  light: {
    text: "#1b2430",
    faint: "rgba(27,36,48,.45)",
    arrow: "rgba(20,24,40,.8)",
    glow: "rgba(255,255,255,.4)",
    grid: "rgba(27,36,48,.07)",
    hatch: "rgba(90,100,115,.34)",
    veil: "rgba(236,239,243,.72)",
    rim: "#ffffff",
    outer: "#1b2430",
    page: "#ffffff",
    anchor: "#000000",
    positive: "#0072B2",
    negative: "#D55E00",
    force: "#009E73",
    forceText: "#00694D",
    disc: "#B35C00",
    contour: "#3a2878",
    residual: "#6b7480",
    axis: "rgba(27,36,48,.16)",
    positiveText: "#005a8e",
    negativeText: "#a84700",
  },
  dark: {
    text: "#e6eaf0",
    faint: "rgba(230,234,240,.5)",
    arrow: "rgba(240,244,255,.8)",
    glow: "rgba(12,14,20,.4)",
    grid: "rgba(230,234,240,.07)",
    hatch: "rgba(160,172,190,.30)",
    veil: "rgba(18,22,28,.62)",
    rim: "#12161c",
    outer: "#e6eaf0",
    page: "#12161c",
    anchor: "#ffffff",
    positive: "#3D9BD6",
    negative: "#F07A2B",
    force: "#22C495",
    forceText: "#22C495",
    disc: "#E69F00",
    contour: "#cec6f4",
    residual: "#9aa6b5",
    axis: "rgba(230,234,240,.16)",
    positiveText: "#7cc0ea",
    negativeText: "#ffa56b",
  },
};

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
