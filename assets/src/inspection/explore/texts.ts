// Names and values of samples, in words.
import type { State } from "./state.ts";
import { valueText } from "./colours.ts";
import { NOWHERE } from "./facets.ts";
import { coloured } from "./state.ts";

export const numberText = (count: number) => count.toLocaleString("en");

// Return the name of the class of a sample, or its number if there are no labels.
export function nameOf({ data, cloud }: State, row: number) {
  const points = cloud.value;
  if (!points) return "";
  return data.value.labelled
    ? points.classes[points.group[row]].name
    : `sample ${points.indices[row]}`;
}

// Return the class and the number of a sample.
export const titleOf = (s: State, row: number) =>
  s.data.value.labelled
    ? `class ${nameOf(s, row)}, sample ${s.cloud.value?.indices[row]}`
    : nameOf(s, row);

// Return the value of a sample by which it is coloured, after a separator.
export function valueOf(s: State, row: number) {
  const colour = s.look.colour.value,
    facts = coloured(s),
    value = facts?.values[row];
  if (!facts || value === undefined || value === NOWHERE) return "";
  if (colour === "right") return value ? " · ✓ neighbour right" : " · ✗ neighbour wrong";
  if (facts.names) return ` · ${facts.names[value]}`;
  if (facts.range) return ` · ${s.data.value.menus.colour[colour]} ${valueText(facts, value)}`;
  return colour === "purity" ? ` · purity ${Math.round((100 * value) / 254)} %` : "";
}

// Return whether the nearest neighbour of a sample is wrong; undefined if that is not known.
export function isWrong({ columns }: State, row: number) {
  const value = columns.value.right?.values[row];
  return value === undefined || value === NOWHERE ? undefined : value === 0;
}

// Return the values of a sample in the filter columns, without those that most samples share.
export function unusual({ columns }: State, row: number) {
  const { hubness, doubted, split } = columns.value,
    words = [];
  if (hubness && hubness.values[row] !== NOWHERE)
    words.push(`retrieved by ${hubness.fine?.[row]} others`);
  if (doubted?.values[row] === 1) words.push("label doubted (see its neighbours)");
  if (split?.names && split.values[row] === 1) words.push(split.names[1]);
  return words;
}
