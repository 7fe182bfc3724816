// State of the page in one table: what Python sent, what the visitor chose, and what follows from
// both. Views read it and actions.ts changes it; where the camera stands is not part of it, so that
// panning changes no signal.
import type { ReadonlySignal, Signal } from "@preact/signals";
import { computed, signal } from "@preact/signals";
import type { Theme } from "../../kit/types.ts";
import type { Cloud } from "./cloud.ts";
import type { Columns, Counts, Filters, Tags } from "./facets.ts";
import type { Colouring, Contours, Facts, History, Look, MapData, Mask, Near } from "./types.ts";
import { colourTable, shapedBy } from "./colours.ts";
import { failures, isMetadata, readTags, sortedRows, tally } from "./facets.ts";

export type LookState = { readonly [K in keyof Look]: Signal<Look[K]> };
// Colouring of the points as the painters need it.
export interface Painted {
  cloud: Cloud;
  colour: Colouring;
  keys: Mask | Uint16Array<ArrayBuffer>; // index of each point's colour, modulo 256
  table: Uint8Array<ArrayBuffer>;
  shaped: number;
}
export type State = ReturnType<typeof createState>;

const NO_TAGS = readTags(null, 0);

// Return the state of a page that has received its first data.
export function createState(first: MapData) {
  const look = Object.fromEntries(
    Object.entries(first.look).map(([name, value]) => [name, signal(value)]),
  ) as unknown as LookState;
  const chosen = {
    data: signal(first),
    look,
    tool: signal<"move" | "lasso">("move"),
    theme: signal<Theme>("light"),
    narrow: signal(false), // half a screen: the filters are collapsed
    notice: signal(""),
    // -- files of the map
    cloud: signal<Cloud | null>(null),
    columns: signal<Columns>({}),
    failed: signal<Partial<Record<Colouring, string>>>({}), // messages by column
    tags: signal<Tags>(NO_TAGS),
    contours: signal<Record<number, Contours | null>>({}), // by frame; null: being loaded
    revealed: signal<ReadonlySet<string>>(new Set()), // metadata columns that list their values
    // -- selection
    mask: signal<Mask | null>(null),
    count: signal(0), // selected points
    preview: signal<Mask | null>(null), // points inside the unfinished lasso
    line: signal<number[][] | null>(null), // corners of the unfinished lasso
    // -- points
    hovered: signal(-1),
    marked: signal<number[]>([]), // rows of the samples of a link
    card: signal<{ row: number; pinned: boolean; near?: Near } | null>(null),
    sample: signal<{ row: number; near?: Near; history?: History; failed?: string } | null>(null),
    // -- what the figure reports after painting
    marks: signal(""), // the marks that are drawn, in words
    spoken: signal(""), // for screen readers
    // -- images
    active: signal(-1), // row of the image that Tab reaches; by default the first
    arrived: signal(0), // number of the images that arrived for the map
  };
  return { ...chosen, ...derive(chosen) };
}

interface Chosen {
  look: LookState;
  cloud: Signal<Cloud | null>;
  columns: Signal<Columns>;
  tags: Signal<Tags>;
  mask: Signal<Mask | null>;
  preview: Signal<Mask | null>;
  theme: Signal<Theme>;
}

function derive({ look, cloud, columns, tags, mask, preview, theme }: Chosen) {
  const known = computed<Columns>(() => ({ ...columns.value, tags: tags.value.column })),
    filters: ReadonlySignal<Filters> = computed(() => ({
      classes: look.classes.value,
      right: look.right.value,
      rank: look.rank.value,
      hubness: look.hubness.value,
      doubted: look.doubted.value,
      split: look.split.value,
      meta: look.meta.value,
      tags: look.tags.value,
    })),
    fails = computed(() =>
      cloud.value ? failures(cloud.value, known.value, tags.value, filters.value) : null,
    ),
    selected = computed(() => preview.value ?? mask.value);
  // For each point: 1 highlighted, 2 selected.
  const states = computed(() => {
    const all = fails.value,
      inside = selected.value,
      bits = new Uint8Array(all?.length ?? 0);
    if (all)
      for (let i = 0; i < all.length; i++)
        bits[i] = (!all[i] && (!inside || inside[i]) ? 1 : 0) | (inside?.[i] ? 2 : 0);
    return bits;
  });
  const order = computed(() =>
      cloud.value ? sortedRows(cloud.value, known.value, look.sort.value) : new Int32Array(),
    ),
    rows = computed(() => order.value.filter((row) => states.value[row] & 1));
  const counts = computed<Counts>(() =>
    cloud.value && fails.value
      ? tally(cloud.value, known.value, tags.value, fails.value, selected.value)
      : {},
  );
  // The colouring that is drawn: the chosen one once its column has arrived.
  let last: Painted | null = null;
  const painted = computed<Painted | null>(() => {
    const points = cloud.value,
      colour = look.colour.value,
      facts = colour === "class" ? undefined : known.value[colour];
    if (!points || (colour !== "class" && !facts))
      return (last = last && last.cloud === points ? last : null);
    last = {
      cloud: points,
      colour,
      keys: facts?.values ?? points.group,
      table: colourTable(colour, points.classes, theme.value, facts),
      shaped: shapedBy(colour, facts),
    };
    return last;
  });
  // Classes by size, with their positions.
  const bySize = computed(() =>
    (cloud.value?.classes ?? [])
      .map((c, place) => ({ ...c, place }))
      .sort((a, b) => b.count - a.count),
  );
  return { known, filters, selected, states, rows, counts, painted, bySize };
}

// Return the display settings, without following them.
export const lookOf = (look: LookState) =>
  Object.fromEntries(
    Object.entries(look).map(([name, value]) => [name, value.peek()]),
  ) as unknown as Look;

// Return the column that colours the points; undefined for classes, and until it has arrived.
export function coloured(s: State): Facts | undefined {
  const { value } = s.look.colour;
  return value === "class" ? undefined : s.known.value[value];
}

// Return true if the class of a label is highlighted.
export const matches = (s: State, label: number) =>
  !s.look.classes.value.length || s.look.classes.value.includes(label);

// Return the settings that a map offers: without classes, columns and orders that it lacks.
export function offered(look: Look, { colour, sort }: MapData["menus"], labels: Set<number>): Look {
  const first = (menu: object) => Object.keys(menu)[0],
    kept = { ...look };
  if (!(look.colour in colour)) kept.colour = first(colour) as Colouring;
  if (!(look.sort in sort)) kept.sort = first(sort) as Look["sort"];
  kept.classes = look.classes.filter((label) => labels.has(label));
  for (const name of ["right", "rank", "hubness", "doubted", "split"] as const)
    if (!(name in colour)) kept[name] = [];
  kept.meta = look.meta.filter((text) => `meta-${text.split("-")[0]}` in colour);
  return kept;
}

// Return the settings without those of the metadata columns, which belong to one run.
export const withoutMetadata = (look: Look): Look => ({
  ...look,
  meta: [],
  colour: isMetadata(look.colour) ? "class" : look.colour,
});
