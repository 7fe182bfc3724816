// Curves of both training runs over the steps. Dotted lines mark changes of settings and the
// initialisation of the prototypes.
/** @import { History } from "./history.js" */
/** @import { Measure } from "./types.js" */
/** @import { Theme } from "../../kit/types.js" */
import { el } from "../../kit/dom.js";
import { INK } from "../../kit/colours.js";
import { Curves } from "../../kit/timeline/curves.js";
import { SIDES } from "./history.js";

/** @type {[name: Measure, title: string, help: string][]} */
export const MEASURES = [
  [
    "map_at_r",
    "MAP@R",
    "Over the validation bags shown, each as a query against the others; measured every ten steps",
  ],
  [
    "on_shared",
    "weight on shared tokens",
    "Share of the pooling weight on the four shared tokens, mean over classes",
  ],
  [
    "intersection",
    "histogram intersection",
    "Weight that two classes put on the same tokens, mean over pairs of classes",
  ],
  [
    "iou",
    "hull IoU",
    "Shared area of two class hulls over their joint area, mean over pairs of classes; measured every ten steps",
  ],
  ["loss", "loss", "Contrastive loss of the batch"],
];
/** @type {Partial<Record<Measure, number>>} */
const TOP = { map_at_r: 1 };

const CHARTS = MEASURES.map(([name, label]) => ({ name, label, top: TOP[name] }));

/** @extends {Curves<{ name: Measure, label: string, top?: number }>} */
export class GapCurves extends Curves {
  /**
   * @param {(step: number) => void} onScrub
   * @param {() => void} onRest
   */
  constructor(onScrub, onRest) {
    super(CHARTS, onScrub, onRest);
    const figures = MEASURES.map(([, title, help], i) =>
      el("figure", { title: help }, el("figcaption", {}, title), this.canvases[i]),
    );
    this.whole.replaceChildren(...figures);
  }

  /**
   * @param {History} history
   * @param {number} step
   * @param {number[]} marks
   * @param {Theme} theme
   */
  paint(history, step, marks, theme) {
    const ink = INK[theme];
    this.paintAll(
      history.last,
      step,
      theme,
      ({ name }) =>
        SIDES.map((side) => ({
          name: side.toUpperCase(),
          colour: side === "gap" ? ink.negative : ink.positive,
          dash: side === "gap" ? [5, 3] : [],
          value: (k) => history.at(k)[side].held[name],
        })),
      { marks },
    );
  }
}
