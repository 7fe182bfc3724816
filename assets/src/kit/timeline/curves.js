// Small charts of measurements over the steps, with one cursor; pressing or dragging on any chart
// scrubs.
/** @import { Line } from "../plot.js" */
/** @import { Theme } from "../types.js" */
import { div, drawing, el } from "../dom.js";
import { scrubbed, within } from "../hand.js";
import { brief, paintCurves } from "../plot.js";

/**
 * @typedef {object} Chart
 * @property {string} name
 * @property {string} [label] for screen readers; defaults to the name
 * @property {string} [title]
 * @property {number} [top]
 */

/**
 * @template {Chart} C
 */
export class Curves {
  /**
   * @param {C[]} charts
   * @param {(step: number) => void} onScrub
   * @param {() => void} onRest
   */
  constructor(charts, onScrub, onRest) {
    this.charts = charts;
    /** @type {((px: number) => number)[]} */
    this.steps = [];
    this.canvases = charts.map(({ name, label = name }, i) => {
      const canvas = el("canvas", {
          class: "plot",
          role: "img",
          "aria-label": label,
          "data-chart": name,
        }),
        scrub = (/** @type {PointerEvent} */ e) => {
          onScrub(Math.max(0, this.steps[i]?.(within(e, canvas)[0]) ?? 0));
        };
      scrubbed(canvas, scrub, onRest);
      return canvas;
    });
    this.whole = div("plots", ...this.canvases);
  }

  /**
   * @param {C} chart
   * @param {HTMLCanvasElement} _canvas
   */
  title(chart, _canvas) {
    return chart.title;
  }

  /**
   * @param {number} last last step that is loaded
   * @param {number} step
   * @param {Theme} theme
   * @param {(chart: C, canvas: HTMLCanvasElement) => Line[]} lines
   * @param {{ marks?: number[], tell?: boolean }} [more]
   */
  paintAll(last, step, theme, lines, { marks, tell = true } = {}) {
    const end = Math.max(last, step);
    this.charts.forEach((chart, i) => {
      const canvas = this.canvases[i],
        { clientWidth, clientHeight } = canvas,
        drawn = lines(chart, canvas),
        what = { ...chart, title: this.title(chart, canvas), lines: drawn, last: end, step, marks };
      this.steps[i] = paintCurves(drawing(canvas), clientWidth, clientHeight, what, theme);
      const now = drawn.map((line) => `${line.name ?? ""} ${brief(line.value(step))}`).join(", ");
      if (tell)
        canvas.setAttribute(
          "aria-label",
          `${chart.label ?? chart.name} over ${end + 1} steps; at step ${step}: ${now}`,
        );
    });
  }
}
