// Legend of the colours: classes with a search box, right and wrong, or a scale; and the selection.
import type { MapView } from "./explore.ts";
import type { Class, Colouring, Facts, Filtered, Metadata } from "./types.ts";
import type { Theme } from "../../kit/types.ts";
import { div, drawing, el, setText } from "../../kit/dom.ts";
import { shape } from "../../kit/plot.ts";
import { INK, LISTS, rampColour } from "../../kit/colours.ts";
import { FILTERS, NOWHERE, chosenMetadata, isMetadata } from "./facets.ts";
import { RIGHT, WRONG } from "./overlay.ts";

const LISTED = 10, // classes listed until all are requested
  MOST_LISTED = 200,
  SHAPES = ["circle", "square", "triangle", "diamond"];
const NONE = INK.light.missing,
  HIGHEST = 254; // highest value of a scale
// lower end of the ramp: paler points would be invisible on the background
export const LOWEST = 0.52;
const FEW = LISTS.tags.light;
// Colour of each value of a filter column; shapes differ too, so that colour is not the only cue.
const NAMED: Partial<Record<Colouring, string[]>> = {
  right: [WRONG, RIGHT],
  hubness: [INK.light.unjudged, NONE, INK.light.picked, WRONG],
  doubted: [NONE, WRONG],
  split: [INK.light.series, INK.light.picked],
};
const HEADINGS: Partial<Record<Colouring, string>> = {
  right: "nearest neighbour",
  rank: "rank of the first hit",
  hubness: "hubness",
  doubted: "doubted label",
  split: "split",
  tags: "tags",
};

export const mark = (kind: string, colour: string) => {
  const canvas = el("canvas", { width: 28, height: 28, "aria-hidden": "true" }),
    ctx = drawing(canvas);
  ctx.scale(2, 2);
  shape(ctx, kind, 7, 7, 5);
  ctx.fillStyle = colour;
  ctx.fill();
  return canvas;
};
export const markOf = (number: number, colour: string) => mark(SHAPES[number & 3], colour);

// Return 256 colours per colouring, as the painters look them up.
// names: number of values of the column
// hues: colours of its first values; the others have the colour of missing ones
export function colours(
  look: Colouring,
  classes: Class[],
  theme: Theme,
  names: number = 0,
  hues?: string[],
) {
  const table = new Uint8Array(1024),
    put = (k: number, hex: string) =>
      table.set([1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).concat(255), 4 * k),
    ramp = (k: number, share: number) =>
      table.set([...rampColour(LOWEST + (1 - LOWEST) * share, theme), 255], 4 * k);
  if (look === "class") {
    classes.slice(0, 256).forEach((c, k) => put(k, c.colour));
    return table;
  }
  if (NAMED[look]) NAMED[look].forEach((hex, k) => put(k, hex));
  else if (hues) for (let k = 0; k < names; k++) put(k, hues[k] ?? NONE);
  else if (look === "tags") for (let k = 0; k < names; k++) put(k, FEW[k % FEW.length]);
  else if (names) for (let k = 0; k < names; k++) ramp(k, k / Math.max(1, names - 1));
  else for (let k = 0; k < 255; k++) ramp(k, k / 254);
  put(255, NONE);
  return table;
}

// Return a value of a scale as text, from 0 (low) to 254 (high).
export function valueText({ range: [low, high] = [0, 1], dates }: Facts, code: number) {
  const value = low + ((high - low) * code) / HIGHEST;
  if (!dates) return String(Number(value.toPrecision(3)));
  const text = new Date(1000 * value).toISOString();
  return high - low > 2 * 86400 ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

// Return the title and the ends of the scale of a column.
export function scaleOf(map: MapView, name: Colouring, facts: Facts) {
  if (!facts.range)
    return { title: facts.title ?? "", low: facts.low ?? "", high: facts.high ?? "" };
  const [below, above] = facts.outside ?? [false, false];
  return {
    title: map.data.menus.colour[name],
    low: `${below ? "≤ " : ""}${valueText(facts, 0)}`,
    high: `${above ? "≥ " : ""}${valueText(facts, HIGHEST)}`,
  };
}

export class Legend {
  map: MapView;
  search: HTMLInputElement;
  all: HTMLButtonElement;
  rows: HTMLDivElement;
  expanded: boolean;
  more: HTMLButtonElement;
  none: HTMLElement;
  key: HTMLDivElement;
  heading: HTMLHeadingElement;
  filters: HTMLDivElement;
  root: HTMLDetailsElement;
  // metadata columns whose values are listed
  opened: Set<string> = new Set();
  found: { name: string; label: number; row: number; count: number; colour: string }[];

  constructor(map: MapView) {
    this.map = map;
    this.search = el("input", {
      type: "search",
      placeholder: "Search classes",
      "aria-label": "search classes by name",
      autocomplete: "off",
    });
    this.search.addEventListener("input", () => this.list());
    this.search.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && this.found?.length) map.highlight(this.found[0].label);
    });
    this.all = el(
      "button",
      { class: "all", onclick: () => map.highlight(null) },
      "Show all classes",
    );
    this.rows = el("div", { class: "classes", role: "group", "aria-label": "classes" });
    this.expanded = false;
    this.more = el("button", {
      class: "more",
      onclick: () => {
        this.expanded = !this.expanded;
        this.list();
      },
    });
    this.none = el("small");
    this.key = div("key");
    this.heading = el("h4", {}, "class");
    this.filters = div("filters");
    this.root = el(
      "details",
      { class: "legend", open: true },
      el("summary", {}, "Filters"),
      this.key,
      this.heading,
      this.search,
      this.all,
      this.rows,
      this.none,
      this.more,
      this.filters,
    );
  }

  show() {
    this.scale();
    this.list();
    this.groups();
  }

  // Return the filter columns; each value has the number of images it would leave.
  groups() {
    const { map } = this,
      { look } = map;
    const offered = FILTERS.filter((name) => name in map.data.menus.colour);
    const groups = ([...offered, "tags"] as (Filtered | "tags")[]).map((name) => {
      const names = map.facets.columns[name]?.names ?? [],
        codes = names.map((_, k) => k).filter((k) => name === "tags" || this.hasPoints(name, k));
      if (name === "tags" && look.colour === name && !codes.length)
        return el("small", {}, "No tags yet. Add some under “Tags and views”.");
      const one = name !== "tags" && codes.length < 2 && look.colour !== name;
      if (!codes.length || (one && !look[name].length)) return "";
      const table = look.colour === name && colours(name, [], map.theme, names.length);
      return el(
        "div",
        { role: "group", "aria-label": HEADINGS[name], "data-filter": name },
        el("h4", {}, HEADINGS[name] ?? ""),
        ...codes.map((k) => {
          const value = name === "tags" ? names[k] : k,
            on = (look[name] as (string | number)[]).includes(value),
            some = look[name].length > 0;
          return el(
            "button",
            {
              "aria-pressed": String(on),
              class: some && !on ? "faint" : "",
              title: names[k],
              onclick: () => map.filter(name, value),
            },
            table ? mark(shapeOf(name, k), hex(table, k)) : "",
            el("bdi", {}, names[k]),
            el("small", {}, (map.counts[name]?.[k] ?? 0).toLocaleString("en")),
          );
        }),
      );
    });
    const focus = ((this.root.getRootNode() as ShadowRoot).activeElement ??
        null) as HTMLElement | null,
      controls = () =>
        [...this.filters.querySelectorAll("button, summary, input")] as HTMLElement[],
      place = focus ? controls().indexOf(focus) : -1;
    this.filters.replaceChildren(...this.metadata(), ...groups);
    if (place >= 0) controls()[place]?.focus();
  }

  // List the values of a metadata column from now on.
  reveal(name: Metadata) {
    this.opened.add(name);
    this.map.column(name);
  }

  // Return the metadata columns; those that are opened list their values.
  metadata() {
    const { map } = this,
      chosen = chosenMetadata(map.look),
      names = Object.keys(map.data.menus.colour).filter(isMetadata);
    const columns = names.map((name) => {
      const title = map.data.menus.colour[name],
        open = this.opened.has(name);
      const details = el(
        "details",
        { class: "column", "data-filter": name, open },
        el("summary", { title }, el("bdi", {}, title), chosen.has(name) ? " •" : ""),
        ...(open ? this.values(name, title, chosen.get(name)) : []),
      );
      details.addEventListener("toggle", () => {
        if (details.open === this.opened.has(name)) return;
        if (details.open) this.reveal(name);
        else this.opened.delete(name);
        this.groups();
      });
      return details;
    });
    return columns.length
      ? [el("div", { class: "metadata" }, el("h4", {}, "metadata"), ...columns)]
      : [];
  }

  // Return the values of a metadata column with the number of images that each would leave.
  values(name: Metadata, title: string, chosen: number[] | undefined) {
    const { map } = this,
      facts = map.facets.columns[name];
    if (!facts) return [el("small", {}, map.failed[name] ?? "Loading …")];
    if (facts.range) return [this.interval(name, title, facts, chosen)];
    const names = facts.names ?? [],
      codes = [...names.keys(), ...(this.hasPoints(name, NOWHERE) ? [NOWHERE] : [])],
      table = map.look.colour === name && colours(name, [], map.theme, names.length, facts.colours);
    return codes.map((code) =>
      el(
        "button",
        {
          "aria-pressed": String(Boolean(chosen?.includes(code))),
          class: chosen && !chosen.includes(code) ? "faint" : "",
          title: names[code] ?? "no value",
          onclick: () => map.filterCategory(name, code),
        },
        table ? mark(shapeOf(name, code), hex(table, code)) : "",
        el("bdi", {}, names[code] ?? "no value"),
        el("small", {}, (map.counts[name]?.[code] ?? 0).toLocaleString("en")),
      ),
    );
  }

  // Return two sliders that limit the values of a scale.
  interval(name: Metadata, title: string, facts: Facts, chosen: number[] | undefined) {
    const ends = chosen ? [chosen[0], chosen[chosen.length - 1]] : [0, HIGHEST],
      text = el("small", {});
    const sliders = ends.map((value, k) =>
      el("input", {
        type: "range",
        min: 0,
        max: HIGHEST,
        value,
        "aria-label": `${title}: ${k ? "highest" : "lowest"} value`,
      }),
    );
    const read = () => {
      const [low, high] = sliders.map(({ value }) => Number(value));
      return [Math.min(low, high), Math.max(low, high)] as [number, number];
    };
    const tell = () => {
      const [low, high] = read(),
        whole = scaleOf(this.map, name, facts),
        texts = [
          low ? valueText(facts, low) : whole.low,
          high < HIGHEST ? valueText(facts, high) : whole.high,
        ];
      setText(text, texts.join(" to "));
      sliders.forEach((slider, k) => slider.setAttribute("aria-valuetext", texts[k]));
    };
    for (const slider of sliders) {
      slider.addEventListener("input", tell);
      slider.addEventListener("change", () => {
        const [low, high] = read();
        this.map.filterInterval(name, low || high < HIGHEST ? [low, high] : null);
      });
    }
    tell();
    return div("interval", ...sliders, text);
  }

  // Return true if any point has this value; lines without points are omitted.
  hasPoints(name: Filtered | Metadata, code: number) {
    return this.map.facets.columns[name]?.values.includes(code);
  }

  list() {
    const { map } = this,
      text = this.search.value.trim().toLowerCase(),
      classes = map.cloud.classes;
    // classes with highlighted samples first
    this.found = [true, false].flatMap((some) =>
      classes.filter(
        (c, k) =>
          (map.counts.classes?.[k] ?? 1) > 0 === some && c.name.toLowerCase().includes(text),
      ),
    );
    const most = this.expanded || text ? MOST_LISTED : LISTED,
      first = this.found.slice(0, most),
      chosen = text
        ? []
        : map.look.classes.filter((label) => !first.some((c) => c.label === label));
    const shown = [...classes.filter((c) => chosen.includes(c.label)), ...first],
      left = this.found.length - first.length;
    const { labelled } = map.data;
    this.heading.hidden = this.rows.hidden = !labelled;
    this.rows.replaceChildren(...shown.map((c) => this.chip(c)));
    this.search.hidden = classes.length < 12;
    this.all.hidden = !map.look.classes.length;
    setText(
      this.none,
      text && !this.found.length
        ? "No class name contains this text."
        : left && most === MOST_LISTED
          ? `and ${left.toLocaleString("en")} more; search to find them`
          : "",
    );
    this.more.hidden = Boolean(text) || classes.length <= LISTED;
    this.more.setAttribute("aria-expanded", String(this.expanded));
    setText(
      this.more,
      this.expanded ? "Show fewer classes" : `Show all ${classes.length.toLocaleString("en")}`,
    );
  }

  chip(c: Class) {
    const { map } = this,
      on = map.look.classes.includes(c.label),
      number = map.cloud.classes.indexOf(c),
      count = map.counts.classes?.[number] ?? c.count;
    return el(
      "button",
      {
        "aria-pressed": String(on),
        class: map.matchesFilter(c.label) && count ? "" : "faint",
        title: `${c.name}: ${c.count} samples`,
        onclick: () => map.highlight(c.label),
      },
      map.look.colour === "class" ? markOf(number, c.colour) : "",
      el("bdi", {}, c.name),
      el("small", {}, count.toLocaleString("en")),
    );
  }

  scale() {
    const { map } = this,
      { colour } = map.look,
      facts = colour === "class" ? undefined : map.facets.columns[colour];
    this.key.hidden = colour === "class" || Boolean(facts?.names);
    if (this.key.hidden) return;
    if (!facts) {
      this.key.replaceChildren(
        el(
          "small",
          {},
          map.failed[colour] ??
            (isMetadata(colour) ? "Loading …" : "Finding the nearest neighbours …"),
        ),
      );
      return;
    }
    const { title, low, high } = scaleOf(map, colour, facts),
      neither = facts.range ? countMissing(facts) : facts.neither,
      bar = el("canvas", { width: 160, height: 1, role: "img", "aria-label": `${low} to ${high}` }),
      ctx = drawing(bar);
    for (let i = 0; i < 160; i++) {
      ctx.fillStyle = `rgb(${rampColour(LOWEST + ((1 - LOWEST) * i) / 159, map.theme)})`;
      ctx.fillRect(i, 0, 1, 1);
    }
    this.key.replaceChildren(
      el("small", {}, title),
      bar,
      div("ends", el("small", {}, low), el("small", {}, high)),
      ...(neither
        ? [
            div(
              "line",
              mark("circle", NONE),
              el("span", {}, "not defined"),
              el("small", {}, neither.toLocaleString("en")),
            ),
          ]
        : []),
    );
  }
}

const countMissing = ({ values }: Facts) =>
  values.reduce((sum, value) => sum + Number(value === NOWHERE), 0);

export const hex = (table: Uint8Array, k: number) =>
  `rgb(${table[4 * k]}, ${table[4 * k + 1]}, ${table[4 * k + 2]})`;

// Draw a marker like the painters do: a cross for wrong, circles on a ramp.
export const shapeOf = (name: Colouring, k: number) =>
  name === "right" ? (k ? "circle" : "cross") : name === "rank" ? "circle" : SHAPES[k & 3];
