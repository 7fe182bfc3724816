// Filters: chosen classes, columns, metadata and tags, and the number of samples that each choice
// leaves.
import type { Column, Facts, Look, Metadata, TagBits } from "./types.ts";
import type { Cloud } from "./cloud.ts";
import { unpacked } from "./cloud.ts";

export type Filter = "right" | "rank" | "hubness" | "doubted" | "split";
export const FILTERS: Filter[] = ["right", "rank", "hubness", "doubted", "split"];
export const NOWHERE = 255;
const CLASSES = 1 << 5,
  TAGS = 1 << 6, // bits in addition to those of the filters
  METADATA = 7; // number of the bit of metadata column 0

export const isMetadata = (name: string): name is Metadata => name.startsWith("meta-");
export const numberOf = (name: Metadata) => Number(name.slice(5));

// Return the highlighted values of each filtered metadata column.
export function chosenMetadata(look: Look): Map<Metadata, number[]> {
  const chosen = new Map();
  for (const text of look.meta) {
    const [number, low, high = low] = text.split("-").map(Number),
      codes = chosen.get(`meta-${number}`) ?? [];
    for (let code = low; code <= high; code++) codes.push(code);
    chosen.set(`meta-${number}`, codes);
  }
  return chosen;
}

export class Facets {
  cloud: Cloud;
  columns: Partial<Record<Column, Facts>>;
  tags: string[];
  masks: Uint8Array[];
  constructor(cloud: Cloud) {
    this.cloud = cloud;
    this.columns = {};
    this.tags = [];
    // one for each tag, a byte for each point
    this.masks = [];
  }

  // Store the tags of the run, and colour points by the first tag of each.
  tagged(arrived: TagBits | null) {
    const { count } = this.cloud,
      each = Math.ceil(count / 8);
    this.tags = arrived?.names ?? [];
    this.masks = this.tags.map((_, k) =>
      unpacked((arrived as TagBits).bits.subarray(k * each, (k + 1) * each), count),
    );
    const values = new Uint8Array(count).fill(NOWHERE);
    for (let k = this.tags.length; k--;)
      for (let i = 0; i < count; i++) if (this.masks[k][i]) values[i] = k;
    this.columns.tags = { values, names: this.tags };
  }

  // Return a bit mask for each point: one bit per filter that it fails.
  fails(look: Look) {
    const { cloud } = this,
      fails = new Uint32Array(cloud.count);
    const require = (bit: number, values: ArrayLike<number>, wanted: Iterable<number>) => {
      const passes = new Uint8Array(65536);
      for (const code of wanted) passes[code] = 1;
      for (let i = 0; i < fails.length; i++) if (!passes[values[i]]) fails[i] |= bit;
    };
    if (look.classes.length) {
      const wanted = new Set(look.classes);
      require(CLASSES, cloud.group, cloud.classes.flatMap((c, k) =>
        wanted.has(c.label) ? [k] : [],
      ));
    }
    FILTERS.forEach((name, k) => {
      const values = this.columns[name]?.values;
      if (values && look[name].length) require(1 << k, values, look[name]);
    });
    for (const [name, codes] of chosenMetadata(look)) {
      const values = this.columns[name]?.values;
      if (values) require(1 << (METADATA + numberOf(name)), values, codes);
    }
    const masks = this.masks.filter((_, k) => look.tags.includes(this.tags[k]));
    if (masks.length)
      for (let i = 0; i < fails.length; i++) if (!masks.some((mask) => mask[i])) fails[i] |= TAGS;
    return fails;
  }

  // Return how many points each choice would show: points that pass all other filters and, if there
  // is a selection, are selected.
  // mask: of the selection
  counts(fails: Uint32Array, mask: Uint8Array | null) {
    const { cloud } = this;
    const tally = (bit: number, values: ArrayLike<number>, size: number) => {
      const counts = new Uint32Array(size);
      for (let i = 0; i < fails.length; i++)
        if (!(fails[i] & ~bit) && (!mask || mask[i])) counts[values[i]] += 1;
      return counts;
    };
    const counts: Record<string, ArrayLike<number>> = {
      classes: tally(CLASSES, cloud.group, cloud.classes.length),
    };
    FILTERS.forEach((name, k) => {
      const column = this.columns[name];
      if (column) counts[name] = tally(1 << k, column.values, 256);
    });
    for (const [name, column] of Object.entries(this.columns))
      if (column && isMetadata(name))
        counts[name] = tally(1 << (METADATA + numberOf(name)), column.values, 256);
    counts.tags = this.masks.map((carries) => tally(TAGS, carries, 2)[1]);
    return counts;
  }

  // Return all rows in one of the orders of the wall.
  sortedRows(sort: Look["sort"]) {
    const { cloud } = this,
      rows = Int32Array.from({ length: cloud.count }, (_, i) => i),
      fine = sort === "rank" || sort === "hubness" ? this.columns[sort]?.fine : undefined;
    if (sort === "class") rows.sort((a, b) => cloud.group[a] - cloud.group[b] || a - b);
    else if (fine) rows.sort((a, b) => fine[b] - fine[a] || a - b);
    else rows.sort((a, b) => cloud.indices[a] - cloud.indices[b]);
    return rows;
  }
}

export const filtered = (look: Look) =>
  look.classes.length > 0 ||
  look.tags.length > 0 ||
  look.meta.length > 0 ||
  FILTERS.some((name) => look[name].length > 0);
