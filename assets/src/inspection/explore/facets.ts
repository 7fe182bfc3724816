// Filters: chosen classes, columns, metadata and tags, and the number of samples that each choice
// leaves.
import type { Column, Facts, Filtered, Look, Metadata, TagBits } from "./types.ts";
import type { Cloud } from "./cloud.ts";
import { unpacked } from "./cloud.ts";

export const FILTERS: Filtered[] = ["right", "rank", "hubness", "doubted", "split"];
export const NOWHERE = 255;
const CLASSES = 1 << 5,
  TAGS = 1 << 6, // bits in addition to those of the filters
  METADATA = 7; // number of the bit of metadata column 0

export type Filters = Pick<Look, Filtered | "classes" | "meta" | "tags">;
export type Columns = Partial<Record<Column, Facts>>;
// Tags of the run: a mask of the points for each, and a column with the first tag of each point.
export interface Tags {
  names: string[];
  masks: Uint8Array[];
  column: Facts;
}
export type Counts = Record<string, ArrayLike<number>>; // by column, then by value
type Points = Pick<Cloud, "count" | "group" | "classes">;

export const isMetadata = (name: string): name is Metadata => name.startsWith("meta-");
export const numberOf = (name: Metadata) => Number(name.slice(5));

// Return the highlighted values of each filtered metadata column.
export function chosenMetadata({ meta }: Pick<Filters, "meta">): Map<Metadata, number[]> {
  const chosen = new Map<Metadata, number[]>();
  for (const text of meta) {
    const [number, low, high = low] = text.split("-").map(Number),
      codes = chosen.get(`meta-${number}`) ?? [];
    for (let code = low; code <= high; code++) codes.push(code);
    chosen.set(`meta-${number}`, codes);
  }
  return chosen;
}

// Return the tags of a run with `count` points.
export function readTags(arrived: TagBits | null, count: number): Tags {
  const each = Math.ceil(count / 8),
    { names, bits } = arrived ?? { names: [], bits: new Uint8Array() },
    masks = names.map((_, k) => unpacked(bits.subarray(k * each, (k + 1) * each), count)),
    values = new Uint8Array(count).fill(NOWHERE);
  for (let k = names.length; k--;) for (let i = 0; i < count; i++) if (masks[k][i]) values[i] = k;
  return { names, masks, column: { values, names } };
}

// Return a bit mask for each point: one bit per filter that it fails.
export function failures(cloud: Points, columns: Columns, tags: Tags, filters: Filters) {
  const fails = new Uint32Array(cloud.count);
  const require = (bit: number, values: ArrayLike<number>, wanted: Iterable<number>) => {
    const passes = new Uint8Array(65536);
    for (const code of wanted) passes[code] = 1;
    for (let i = 0; i < fails.length; i++) if (!passes[values[i]]) fails[i] |= bit;
  };
  if (filters.classes.length) {
    const wanted = new Set(filters.classes);
    require(CLASSES, cloud.group, cloud.classes.flatMap((c, k) =>
      wanted.has(c.label) ? [k] : [],
    ));
  }
  FILTERS.forEach((name, k) => {
    const values = columns[name]?.values;
    if (values && filters[name].length) require(1 << k, values, filters[name]);
  });
  for (const [name, codes] of chosenMetadata(filters)) {
    const values = columns[name]?.values;
    if (values) require(1 << (METADATA + numberOf(name)), values, codes);
  }
  const masks = tags.masks.filter((_, k) => filters.tags.includes(tags.names[k]));
  if (masks.length)
    for (let i = 0; i < fails.length; i++) if (!masks.some((mask) => mask[i])) fails[i] |= TAGS;
  return fails;
}

// Return how many points each choice would show: points that pass all other filters and, if there
// is a selection, are in its `mask`.
export function tally(
  cloud: Points,
  columns: Columns,
  tags: Tags,
  fails: Uint32Array,
  mask: Uint8Array | null,
) {
  const count = (bit: number, values: ArrayLike<number>, size: number) => {
    const counts = new Uint32Array(size);
    for (let i = 0; i < fails.length; i++)
      if (!(fails[i] & ~bit) && (!mask || mask[i])) counts[values[i]] += 1;
    return counts;
  };
  const counts: Counts = {
    classes: count(CLASSES, cloud.group, cloud.classes.length),
    tags: tags.masks.map((mine) => count(TAGS, mine, 2)[1]),
  };
  for (const [name, column] of Object.entries(columns)) {
    const bit = isMetadata(name) ? METADATA + numberOf(name) : FILTERS.indexOf(name as Filtered);
    if (column && bit >= 0) counts[name] = count(1 << bit, column.values, 256);
  }
  return counts;
}

// Return all rows in one of the orders of the wall.
export function sortedRows(
  cloud: Pick<Cloud, "count" | "group" | "indices">,
  columns: Columns,
  sort: Look["sort"],
) {
  const rows = Int32Array.from({ length: cloud.count }, (_, i) => i),
    fine = sort === "rank" || sort === "hubness" ? columns[sort]?.fine : undefined;
  if (sort === "class") return rows.sort((a, b) => cloud.group[a] - cloud.group[b] || a - b);
  if (fine) return rows.sort((a, b) => fine[b] - fine[a] || a - b);
  return rows.sort((a, b) => cloud.indices[a] - cloud.indices[b]);
}

// Return true if any filter is set.
export const filtered = (filters: Filters) =>
  (["classes", "tags", "meta", ...FILTERS] as const).some((name) => filters[name].length > 0);
