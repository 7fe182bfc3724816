// Colours by theme (Okabe-Ito roles), colour ramps, and text that stays legible over any field.

import palette from "./palette.json" with { type: "json" };

import type { Context, Point, Rgb, Theme } from "./types.ts";
export type Role = keyof typeof palette.light.ink;

export const POINTS: Point[] = ["anchor", "positive", "negative"];
export const LETTER = { anchor: "A", positive: "P", negative: "N" };

// The palette is shared with the figures for print (dmlcore/figures/palette.json): roles, a ramp of
// energies, and a ramp of signed values from blue through the background to vermillion.
export const INK: Record<Theme, Record<Role, string>> = {
  light: palette.light.ink,
  dark: palette.dark.ink,
};

// colour: "#rrggbb"
const rgb = (colour: string): Rgb =>
  [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)) as Rgb;
const ramps = (name: "energy" | "signed") => ({
  light: palette.light[name].map(rgb),
  dark: palette.dark[name].map(rgb),
});
const RAMPS = ramps("energy"),
  SIGNED = ramps("signed");

// t: in 0..1
function along(ramp: Rgb[], t: number): Rgb {
  const x = Math.min(Math.max(t, 0), 1) * (ramp.length - 1),
    i = Math.min(Math.floor(x), ramp.length - 2),
    f = x - i;
  return ramp[i].map((v, c) => Math.round(v + (ramp[i + 1][c] - v) * f));
}
// t: in 0..1
export const rampColour = (t: number, theme: Theme) => along(RAMPS[theme], t);
// t: in -1..1
export const signedColour = (t: number, theme: Theme) => along(SIGNED[theme], (t + 1) / 2);

export function halo(
  ctx: Context,
  text: string,
  x: number,
  y: number,
  colour: string,
  rim: string,
  width: number = 3,
) {
  ctx.lineJoin = "round";
  ctx.lineWidth = width;
  ctx.strokeStyle = rim;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
}

// span: above 0
export function niceStep(span: number, most: number = 6) {
  const raw = span / most,
    power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
}
