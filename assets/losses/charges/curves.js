// Five small curve charts over the steps, with one cursor; a press or drag on any of them scrubs.
/** @import { History } from "./history.js" */
/** @import { Column } from "./types.js" */
/** @import { Line } from "../../shared/plot.js" */
/** @import { Theme } from "../../shared/types.js" */
import { drawing, el } from "../../shared/dom.js";
import { INK } from "../../shared/colours.js";
import { paintCurves } from "../../shared/plot.js";

/** @param {Column} name */
const of = (name) => (/** @type {History} */ history) => (/** @type {number} */ k) =>
  history.at(k).measures[name];
/** @typedef {(history: History) => (step: number) => number} Reading */
/** @typedef {"text" | "negative" | "positive"} Role of the ink */
/** @typedef {[name: string, role: Role, value: Reading, dash?: number[]]} Row */
/**
 * @typedef {object} Chart
 * @property {string} name
 * @property {string} [title]
 * @property {number} [top]
 * @property {boolean} [classes] a line for each class, of its radius
 * @property {Row[]} [lines]
 */
/** @type {Chart[]} */
const CHARTS = [
  { name: "loss", title: "", lines: [["loss", "text", of("loss")]] },
  {
    name: "active triplets and MAP@R",
    top: 1,
    lines: [
      ["active", "negative", of("active"), [5, 3]],
      ["MAP@R", "positive", of("map_at_r")],
    ],
  },
  {
    name: "mean pull and push of active triplets",
    lines: [
      ["pull", "positive", of("pull")],
      ["push", "negative", of("push"), [5, 3]],
    ],
  },
  { name: "class radii", title: "class radii", classes: true },
  { name: "covering radius", lines: [["covering radius", "text", of("covering")]] },
];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [4, 2], [1, 3], [10, 3], [3, 3, 1, 3]];

export class Curves {
  /**
   * @param {(step: number) => void} onScrub
   * @param {() => void} onRest
   */
  constructor(onScrub, onRest) {
    this.canvases = CHARTS.map(({ name }) =>
      el("canvas", { role: "img", "aria-label": name, "data-chart": name }),
    );
    /** @type {((px: number) => number)[]} */
    this.steps = [];
    this.canvases.forEach((canvas, i) => {
      const scrub = (/** @type {PointerEvent} */ e) => {
        const box = canvas.getBoundingClientRect();
        onScrub(Math.max(0, this.steps[i]?.(e.clientX - box.left) ?? 0));
      };
      canvas.addEventListener("pointerdown", (e) => {
        canvas.setPointerCapture(e.pointerId);
        scrub(e);
      });
      canvas.addEventListener("pointermove", (e) => {
        if (e.buttons) scrub(e);
      });
      canvas.addEventListener("pointerup", onRest);
    });
    this.whole = el("div", { class: "plots" }, ...this.canvases);
  }

  /**
   * @param {History} history
   * @param {number} step
   * @param {Theme} theme
   * @param {string[]} colours
   */
  paint(history, step, theme, colours) {
    const last = Math.max(history.last, step),
      ink = INK[theme],
      known = history.at(step);
    CHARTS.forEach((chart, i) => {
      const canvas = this.canvases[i],
        /** @type {Line[]} */
        lines = chart.classes
          ? [...known.radii].map((_, c) => ({
              colour: colours[c],
              dash: DASHES[c],
              value: (/** @type {number} */ k) => history.at(k).radii[c],
            }))
          : (chart.lines ?? []).map(([name, colour, value, dash]) => ({
              name,
              colour: ink[colour],
              dash,
              value: value(history),
            }));
      this.steps[i] = paintCurves(
        drawing(canvas),
        canvas.clientWidth,
        canvas.clientHeight,
        { ...chart, lines, last, step },
        theme,
      );
      const now = lines
        .map((line) => `${line.name ?? ""} ${Number(line.value(step).toPrecision(3))}`)
        .join(", ");
      canvas.setAttribute(
        "aria-label",
        `${chart.name} over ${last + 1} steps; at step ${step}: ${now}`,
      );
    });
  }
}
