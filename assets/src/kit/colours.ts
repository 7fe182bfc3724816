// Colours by theme (Okabe-Ito roles), colour ramps, and text that stays legible over any field.

import palette from "./palette.json" with { type: "json" };

import type { Context, Point, Rgb, Theme } from "./types.ts";

// Name of a colour, or its values: light theme, dark theme, and as text in either.
type Entry = string | string[];
type Name = keyof typeof palette.roles;
export type Role = Name | `${Name}Text`;

export const POINTS: Point[] = ["anchor", "positive", "negative"];
export const LETTER = { anchor: "A", positive: "P", negative: "N" };

// The palette is shared with the figures for print (dmlcore/figures/palette.py) and with the style
// sheets (assets/build.js), so that each colour is written once.
function pick(entry: Entry, theme: Theme, text = false) {
  const values =
      typeof entry === "string" ? (palette.colours as Record<string, string[]>)[entry] : entry,
    dark = Number(theme === "dark");
  return text && values.length === 4 ? values[2 + dark] : (values[dark] ?? values[0]);
}
const inks = (theme: Theme) =>
  Object.fromEntries(
    Object.entries<Entry>(palette.roles).flatMap(([role, entry]) => [
      [role, pick(entry, theme)],
      [`${role}Text`, pick(entry, theme, true)],
    ]),
  ) as Record<Role, string>;
const both = (entries: readonly Entry[]) => ({
  light: entries.map((entry) => pick(entry, "light")),
  dark: entries.map((entry) => pick(entry, "dark")),
});
// Colours by theme and role; "positiveText" is the role "positive" as text.
export const INK: Record<Theme, Record<Role, string>> = {
  light: inks("light"),
  dark: inks("dark"),
};
// Colours of a list by theme, e.g. LISTS.classes.dark[0].
export const LISTS = Object.fromEntries(
  Object.entries(palette.lists).map(([name, entries]) => [name, both(entries)]),
) as Record<keyof typeof palette.lists, Record<Theme, string[]>>;

// Return all roles as CSS custom properties: --positive, --positive-text, --right, ...
export const customProperties = () =>
  (Object.entries(INK.light) as [Role, string][])
    .map(([role, light]) => {
      const name = role.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return `--${name}:light-dark(${light},${INK.dark[role]})`;
    })
    .join(";");

// colour: "#rrggbb" or "#rrggbbaa"
export const rgb = (colour: string): Rgb =>
  [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)) as Rgb;
function ramps(name: "energy" | "signed") {
  const { light, dark } = both(palette.scales[name]);
  return { light: light.map(rgb), dark: dark.map(rgb) };
}
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

// Stroke a path once per [colour, width], the outline first, so that it stands out from any field.
export function strokeOutlined(
  ctx: Context,
  strokes: readonly (readonly [colour: string, width: number])[],
  trace: () => void,
) {
  for (const [colour, width] of strokes) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    trace();
    ctx.stroke();
  }
}

// Stroke a straight line in the same way.
export const lineOutlined = (
  ctx: Context,
  from: readonly number[],
  to: readonly number[],
  strokes: readonly (readonly [colour: string, width: number])[],
) =>
  strokeOutlined(ctx, strokes, () => {
    ctx.moveTo(from[0], from[1]);
    ctx.lineTo(to[0], to[1]);
  });

// span: above 0
export function niceStep(span: number, most: number = 6) {
  const raw = span / most,
    power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
}
