// Curves of both trainings over the steps, with one cursor; a press or drag on any of them scrubs.
/** @import { History } from "./history.js" */
/** @import { Column } from "./types.js" */
/** @import { Theme } from "../../shared/types.js" */
import { drawing, el } from "../../shared/dom.js";
import { INK } from "../../shared/colours.js";
import { brief, paintCurves } from "../../shared/plot.js";

/** @typedef {"positive" | "negative" | "faint"} Role of the ink */
/** @typedef {(history: History) => (step: number) => number} Reading */
/** @typedef {[name: string, role: Role, value: Reading, noisy?: Reading]} Curve */
/** @typedef {{ name: string, title: string, top?: number, lines: Curve[] }} Chart */

/** @type {[letter: string, role: Role][]} */
const SIDE = [
  ["A", "positive"],
  ["B", "negative"],
];

export class Curves {
  /**
   * @param {number} sides
   * @param {number} recent
   * @param {(step: number) => void} onScrub
   * @param {() => void} onRest
   */
  constructor(sides, recent, onScrub, onRest) {
    const both = SIDE.slice(0, sides),
      /** @type {(i: number, name: Column) => Reading} */
      value = (i, name) => (history) => history.column(i, name);
    /** @type {Chart[]} */
    this.charts = [
      ...both.map(([letter, colour], i) => ({
        name: `loss ${letter}`,
        title: `loss ${letter}`,
        lines: /** @type {Curve[]} */ ([
          [`mean of ${recent}`, colour, value(i, "mean_loss"), value(i, "loss")],
        ]),
      })),
      {
        name: "active",
        title: `active, mean of ${recent}`,
        top: 1,
        lines: both.map(
          ([letter, colour], i) =>
            /** @type {Curve} */ ([letter, colour, value(i, "mean_active"), value(i, "active")]),
        ),
      },
      {
        name: "MAP@R",
        title: "MAP@R",
        lines: [
          ...both.map(
            ([letter, colour], i) => /** @type {Curve} */ ([letter, colour, value(i, "map_at_r")]),
          ),
          ["inputs", "faint", (history) => () => history.data?.baseline.map_at_r ?? NaN],
        ],
      },
    ];
    this.canvases = this.charts.map(({ name }) =>
      el("canvas", { class: "plot", role: "img", "aria-label": name, "data-chart": name }),
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
    this.losses = this.canvases.slice(0, sides);
    this.whole = el("div", { class: "plots" }, ...this.canvases.slice(sides));
  }

  /**
   * @param {History} history
   * @param {number} step
   * @param {number[]} marks
   * @param {Theme} theme
   * @param {boolean} tell
   */
  paint(history, step, marks, theme, tell) {
    const last = Math.max(history.last, step),
      ink = INK[theme];
    this.charts.forEach((chart, i) => {
      const canvas = this.canvases[i],
        // beside its number there is room for a word
        short = i < this.losses.length && canvas.clientWidth < 240;
      const lines = chart.lines.map(([name, colour, of, noisy]) => ({
        name: short ? "mean" : name,
        colour: ink[colour],
        value: of(history),
        noisy: noisy?.(history),
      }));
      this.steps[i] = paintCurves(
        drawing(canvas),
        canvas.clientWidth,
        canvas.clientHeight,
        { ...chart, title: short ? "loss" : chart.title, lines, last, step, marks },
        theme,
      );
      if (tell)
        canvas.setAttribute(
          "aria-label",
          `${chart.name} over ${last} steps; at step ${step}: ${lines.map((line) => `${line.name} ${brief(line.value(step))}`).join(", ")}`,
        );
    });
  }
}
