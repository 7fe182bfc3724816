// Curves of a simulation over the steps.
/** @import { History } from "./history.js" */
/** @import { Column } from "./types.js" */
/** @import { Theme } from "../../kit/types.js" */
import { INK } from "../../kit/colours.js";
import { Curves } from "../../kit/timeline/curves.js";

/** @param {Column} name */
const of = (name) => (/** @type {History} */ history) => (/** @type {number} */ k) =>
  history.at(k).measures[name];
/** @typedef {(history: History) => (step: number) => number} Reading */
/** @typedef {"text" | "negative" | "positive"} Role name of a colour */
/** @typedef {[name: string, role: Role, value: Reading, dash?: number[]]} Row */
/**
 * @typedef {object} Chart
 * @property {string} name
 * @property {string} [title]
 * @property {number} [top]
 * @property {boolean} [classes] one line per class, of its radius
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

/** @extends {Curves<Chart>} */
export class ChargesCurves extends Curves {
  /**
   * @param {(step: number) => void} onScrub
   * @param {() => void} onRest
   */
  constructor(onScrub, onRest) {
    super(CHARTS, onScrub, onRest);
  }

  /**
   * @param {History} history
   * @param {number} step
   * @param {Theme} theme
   * @param {string[]} colours
   */
  paint(history, step, theme, colours) {
    const ink = INK[theme],
      radius = (/** @type {number} */ c) => (/** @type {number} */ k) => history.at(k).radii[c];
    this.paintAll(history.last, step, theme, (chart) =>
      chart.classes
        ? Array.from(history.at(step).radii, (_, c) => ({
            colour: colours[c],
            dash: DASHES[c],
            value: radius(c),
          }))
        : (chart.lines ?? []).map(([name, colour, value, dash]) => ({
            name,
            colour: ink[colour],
            dash,
            value: value(history),
          })),
    );
  }
}
