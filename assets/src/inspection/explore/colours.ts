// Colours and shapes of the values of each column, and their texts.
import type { Class, Colouring, Facts } from "./types.ts";
import type { Theme } from "../../kit/types.ts";
import { INK, LISTS, rampColour } from "../../kit/colours.ts";
import { NOWHERE, isMetadata } from "./facets.ts";

export const { right: RIGHT, wrong: WRONG, selected: SELECTED, missing: NONE } = INK.light;
const SHAPES = ["circle", "square", "triangle", "diamond"],
  LOWEST = 0.52, // lower end of the ramp: paler points would be invisible on the background
  FEW = LISTS.tags.light;
export const HIGHEST = 254; // highest value of a scale
// Colour of each value of a filter column; shapes differ too, so that colour is not the only cue.
const NAMED: Partial<Record<Colouring, string[]>> = {
  right: [WRONG, RIGHT],
  hubness: [INK.light.unjudged, NONE, INK.light.picked, WRONG],
  doubted: [NONE, WRONG],
  split: [INK.light.series, INK.light.picked],
};
// Columns whose values also differ in shape, not only in colour; wrong ones are crosses.
const SHAPED: Partial<Record<Colouring, number>> = {
  class: 1,
  right: 2,
  hubness: 1,
  doubted: 1,
  split: 1,
  tags: 1,
};

// Return how the painters choose the shape of a point: 0 always a circle, 1 by its value, 2 a cross
// for the value 0.
export const shapedBy = (colour: Colouring, facts: Facts | undefined) =>
  SHAPED[colour] ?? (isMetadata(colour) && facts?.names ? 1 : 0);

// Return the shape of a value as the painters draw it.
export const shapeOf = (name: Colouring, k: number) =>
  name === "right" ? (k ? "circle" : "cross") : name === "rank" ? "circle" : SHAPES[k & 3];

// Return a colour of the ramp of a scale; share: in 0..1.
export const scaleColour = (share: number, theme: Theme) =>
  rampColour(LOWEST + (1 - LOWEST) * share, theme);

// Return 256 RGBA colours of a colouring, as the painters look them up.
// facts: the column; undefined for classes
export function colourTable(look: Colouring, classes: Class[], theme: Theme, facts?: Facts) {
  const table = new Uint8Array(1024),
    { names, colours } = facts ?? {},
    put = (k: number, hex: string) => table.set([...channels(hex), 255], 4 * k),
    ramp = (k: number, share: number) => table.set([...scaleColour(share, theme), 255], 4 * k);
  if (look === "class") {
    classes.slice(0, 256).forEach((c, k) => put(k, c.colour));
    return table;
  }
  if (NAMED[look]) NAMED[look].forEach((hex, k) => put(k, hex));
  else if (colours) names?.forEach((_, k) => put(k, colours[k] ?? NONE));
  else if (look === "tags") names?.forEach((_, k) => put(k, FEW[k % FEW.length]));
  else if (names?.length) names.forEach((_, k) => ramp(k, k / Math.max(1, names.length - 1)));
  else for (let k = 0; k < 255; k++) ramp(k, k / HIGHEST);
  put(NOWHERE, NONE);
  return table;
}

// Return red, green and blue of "#rrggbb", in 0..255.
export const channels = (hex: string) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// Return colour `k` of a table as CSS.
export const cssColour = (table: Uint8Array, k: number) =>
  `rgb(${table[4 * k]}, ${table[4 * k + 1]}, ${table[4 * k + 2]})`;

// Return a value of a scale as text, from 0 (low) to 254 (high).
export function valueText({ range: [low, high] = [0, 1], dates }: Facts, code: number) {
  const value = low + ((high - low) * code) / HIGHEST;
  if (!dates) return String(Number(value.toPrecision(3)));
  const text = new Date(1000 * value).toISOString();
  return high - low > 2 * 86400 ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

// Return the title and the ends of the scale of a column; title: of a metadata column.
export function scaleOf(facts: Facts, title: string) {
  if (!facts.range)
    return { title: facts.title ?? "", low: facts.low ?? "", high: facts.high ?? "" };
  const [below, above] = facts.outside ?? [false, false];
  return {
    title,
    low: `${below ? "≤ " : ""}${valueText(facts, 0)}`,
    high: `${above ? "≥ " : ""}${valueText(facts, HIGHEST)}`,
  };
}
