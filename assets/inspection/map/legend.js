// What the colours mean: the classes with a search, the marks of right and wrong, or a scale; and
// what is selected.
/** @import { MapView } from "./map.js" */
/** @import { Class, Colouring } from "./types.js" */
/** @import { Theme } from "../../shared/types.js" */
import { drawing, el, setText } from "../../shared/dom.js";
import { shape } from "../../shared/plot.js";
import { rampColour } from "../../shared/colours.js";
import { RIGHT, WRONG } from "./overlay.js";

const MOST_LISTED = 200,
  SHAPES = ["circle", "square", "triangle", "diamond"];
const NONE = "#8A929C";
export const LOWEST = 0.52; // of the ramp: paler points would not be seen on the paper

// How points may be coloured. `array` is what Python sends for it, one byte a point, 255 where it
// means nothing.
/** @type {Record<Colouring, { title: string, array?: string, help?: string }>} */
export const COLOURINGS = {
  class: { title: "class" },
  right: {
    title: "right or wrong",
    array: "right",
    help: "whether the nearest neighbour in the embedding is of the same class",
  },
  purity: {
    title: "neighbour purity",
    array: "purity",
    help: "share of the nearest neighbours in the embedding that are of the same class",
  },
  density: {
    title: "density",
    array: "density",
    help: "how near the neighbours are in the embedding",
  },
};

/**
 * @param {string} kind
 * @param {string} colour
 */
export const mark = (kind, colour) => {
  const canvas = el("canvas", { width: 28, height: 28, "aria-hidden": "true" }),
    ctx = drawing(canvas);
  ctx.scale(2, 2);
  shape(ctx, kind, 7, 7, 5);
  ctx.fillStyle = colour;
  ctx.fill();
  return canvas;
};
/**
 * @param {number} number
 * @param {string} colour
 */
export const markOf = (number, colour) => mark(SHAPES[number & 3], colour);

// 256 colours as the painters look them up, by colouring.
/**
 * @param {Colouring} look
 * @param {Class[]} classes
 * @param {Theme} theme
 */
export function colours(look, classes, theme) {
  const table = new Uint8Array(1024),
    put = (/** @type {number} */ k, /** @type {string} */ hex) =>
      table.set([1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).concat(255), 4 * k);
  if (look === "class") classes.slice(0, 256).forEach((c, k) => put(k, c.colour));
  else if (look === "right") {
    put(0, WRONG);
    put(1, RIGHT);
  } else
    for (let k = 0; k < 255; k++)
      table.set([...rampColour(LOWEST + ((1 - LOWEST) * k) / 254, theme), 255], 4 * k);
  if (look !== "class") put(255, NONE);
  return table;
}

export class Legend {
  /** @type {{ name: string; label: number; row: number; count: number; colour: string; }[]} */
  found;

  /** @param {MapView} map */
  constructor(map) {
    this.map = map;
    this.search = el("input", {
      type: "search",
      placeholder: "search a class",
      "aria-label": "search a class by its name",
      autocomplete: "off",
    });
    this.search.addEventListener("input", () => this.list());
    this.search.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && this.found?.length) map.highlight(this.found[0].label);
    });
    this.all = el(
      "button",
      { class: "all", onclick: () => map.highlight(null) },
      "all classes again",
    );
    this.rows = el("div", { class: "classes", role: "group", "aria-label": "classes" });
    this.more = el("small", { class: "more" });
    this.key = el("div", { class: "key" });
    this.root = el(
      "div",
      { class: "legend" },
      this.key,
      this.search,
      this.all,
      this.rows,
      this.more,
    );
  }

  show() {
    this.scale();
    this.list();
  }

  list() {
    const { map } = this,
      text = this.search.value.trim().toLowerCase(),
      classes = map.cloud.classes;
    this.found = text ? classes.filter((c) => c.name.toLowerCase().includes(text)) : classes;
    const first = this.found.slice(0, MOST_LISTED),
      chosen = text
        ? []
        : map.look.classes.filter((label) => !first.some((c) => c.label === label));
    const shown = [...classes.filter((c) => chosen.includes(c.label)), ...first],
      left = this.found.length - first.length;
    const at = this.rows.scrollTop;
    this.rows.replaceChildren(...shown.map((c) => this.chip(c)));
    this.rows.scrollTop = at;
    this.search.hidden = classes.length < 12;
    this.all.hidden = !map.look.classes.length;
    setText(
      this.more,
      text && !this.found.length
        ? "No class has this in its name."
        : left
          ? `and ${left.toLocaleString("en")} more: search`
          : "",
    );
  }

  /** @param {Class} c */
  chip(c) {
    const { map } = this,
      on = map.look.classes.includes(c.label),
      number = map.cloud.classes.indexOf(c);
    return el(
      "button",
      {
        "aria-pressed": String(on),
        class: map.stands(c.label) ? "" : "faint",
        title: `${c.name}: ${c.count} samples`,
        onclick: () => map.highlight(c.label),
      },
      map.look.colour === "class" ? markOf(number, c.colour) : "",
      el("bdi", {}, c.name),
      el("small", {}, String(c.count)),
    );
  }

  scale() {
    const { map } = this,
      { colour } = map.look,
      facts = map.facts[colour];
    this.key.hidden = colour === "class";
    if (colour === "class") return;
    if (!facts) {
      this.key.replaceChildren(
        el("small", {}, map.failed[colour] ?? "Finding the nearest neighbours …"),
      );
      return;
    }
    const line = (
      /** @type {string} */ kind,
      /** @type {string} */ ink,
      /** @type {string} */ text,
      /** @type {number} */ count,
    ) =>
      el(
        "div",
        { class: "line" },
        mark(kind, ink),
        el("span", {}, text),
        el("small", {}, count.toLocaleString("en")),
      );
    if (colour === "right") {
      const { right, wrong, neither } = facts;
      this.key.replaceChildren(
        line("circle", RIGHT, "nearest neighbour right", right),
        line("cross", WRONG, "nearest neighbour wrong", wrong),
        ...(neither ? [line("circle", NONE, "no query, or alone in its class", neither)] : []),
      );
      return;
    }
    const bar = el("canvas", {
        width: 160,
        height: 1,
        role: "img",
        "aria-label": `${facts.low} to ${facts.high}`,
      }),
      ctx = drawing(bar);
    for (let i = 0; i < 160; i++) {
      ctx.fillStyle = `rgb(${rampColour(LOWEST + ((1 - LOWEST) * i) / 159, map.theme)})`;
      ctx.fillRect(i, 0, 1, 1);
    }
    this.key.replaceChildren(
      el("small", {}, facts.title),
      bar,
      el("div", { class: "ends" }, el("small", {}, facts.low), el("small", {}, facts.high)),
      ...(facts.neither ? [line("circle", NONE, "not defined", facts.neither)] : []),
    );
  }
}
