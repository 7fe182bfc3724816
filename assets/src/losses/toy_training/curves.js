// Curves of both training runs over the steps.
/** @import { History } from "./history.js" */
/** @import { Column } from "./types.js" */
/** @import { Theme } from "../../kit/types.js" */
import { INK } from "../../kit/colours.js";
import { Curves } from "../../kit/timeline/curves.js";

/** @typedef {"positive" | "negative" | "faint"} Role name of a colour */
/** @typedef {(history: History) => (step: number) => number} Reading */
/** @typedef {[name: string, role: Role, value: Reading, noisy?: Reading]} Curve */
/** @typedef {{ name: string, title: string, top?: number, lines: Curve[] }} Chart */

/** @type {[letter: string, role: Role][]} */
const SIDE = [
  ["A", "positive"],
  ["B", "negative"],
];

/** @extends {Curves<Chart>} */
export class ToysCurves extends Curves {
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
    const charts = [
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
    super(charts, onScrub, onRest);
    this.losses = this.canvases.slice(0, sides);
    this.whole.replaceChildren(...this.canvases.slice(sides));
  }

  // There is space for a word next to its number.
  /**
   * @param {Chart} chart
   * @param {HTMLCanvasElement} canvas
   */
  short(chart, canvas) {
    return this.charts.indexOf(chart) < this.losses.length && canvas.clientWidth < 240;
  }

  /**
   * @param {Chart} chart
   * @param {HTMLCanvasElement} canvas
   */
  title(chart, canvas) {
    return this.short(chart, canvas) ? "loss" : chart.title;
  }

  /**
   * @param {History} history
   * @param {number} step
   * @param {number[]} marks
   * @param {Theme} theme
   * @param {boolean} tell
   */
  paint(history, step, marks, theme, tell) {
    const ink = INK[theme];
    this.paintAll(
      history.last,
      step,
      theme,
      (chart, canvas) =>
        chart.lines.map(([name, colour, of, noisy]) => ({
          name: this.short(chart, canvas) ? "mean" : name,
          colour: ink[colour],
          value: of(history),
          noisy: noisy?.(history),
        })),
      { marks, tell },
    );
  }
}
