// Five small charts of both trainings over the steps, with one cursor; a press or drag on any of
// them scrubs. Dotted lines stand where something was changed, and where the prototypes were
// placed.
/** @import { History } from "./history.js" */
/** @import { Measure } from "./types.js" */
/** @import { Theme } from "../../shared/types.js" */
import { drawing, el } from "../../shared/dom.js";
import { INK } from "../../shared/colours.js";
import { brief, paintCurves } from "../../shared/plot.js";
import { SIDES } from "./history.js";

/** @type {[name: Measure, title: string, help: string][]} */
export const MEASURES = [
  [
    "map_at_r",
    "MAP@R",
    "of the validation bags shown, each a query against the others; measured every ten steps",
  ],
  [
    "on_shared",
    "weight on shared tokens",
    "share of the pooling weight that lies on the four shared tokens, mean over classes",
  ],
  [
    "intersection",
    "histogram intersection",
    "weight that two classes put on the same tokens, mean over pairs of classes",
  ],
  [
    "iou",
    "hull IoU",
    "area that two class hulls share over the area they cover, mean over pairs of classes; measured every ten steps",
  ],
  ["loss", "loss", "contrastive loss of the batch"],
];
/** @type {Partial<Record<Measure, number>>} */
const TOP = { map_at_r: 1 };

export class Curves {
  /**
   * @param {(step: number) => void} onScrub
   * @param {() => void} onRest
   */
  constructor(onScrub, onRest) {
    this.canvases = MEASURES.map(([name, title]) =>
      el("canvas", { role: "img", "aria-label": title, "data-chart": name }),
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
    this.whole = el(
      "div",
      { class: "plots" },
      ...MEASURES.map(([, title, help], i) =>
        el("figure", { title: help }, el("figcaption", {}, title), this.canvases[i]),
      ),
    );
  }

  /**
   * @param {History} history
   * @param {number} step
   * @param {number[]} marks
   * @param {Theme} theme
   */
  paint(history, step, marks, theme) {
    const last = Math.max(history.last, step),
      ink = INK[theme];
    MEASURES.forEach(([name, title], i) => {
      const canvas = this.canvases[i];
      const lines = SIDES.map((side) => ({
        name: side.toUpperCase(),
        colour: side === "gap" ? ink.negative : ink.positive,
        dash: side === "gap" ? [5, 3] : [],
        value: (/** @type {number} */ k) => history.at(k)[side].held[name],
      }));
      this.steps[i] = paintCurves(
        drawing(canvas),
        canvas.clientWidth,
        canvas.clientHeight,
        { lines, top: TOP[name], last, step, marks },
        theme,
      );
      canvas.setAttribute(
        "aria-label",
        `${title} over ${last + 1} steps; at step ${step}: ${lines.map((line) => `${line.name} ${brief(line.value(step))}`).join(", ")}`,
      );
    });
  }
}
