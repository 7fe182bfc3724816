// Small charts of measurements over the steps, with one cursor; pressing or dragging on any chart
// scrubs.
import type { Line } from "../plot.ts";
import type { Theme } from "../types.ts";
import { div, drawing, el } from "../dom.ts";
import { scrubbed, within } from "../hand.ts";
import { brief, paintCurves } from "../plot.ts";

export interface Chart {
  name: string;
  label?: string; // for screen readers; defaults to the name
  title?: string;
  top?: number;
}

export class Curves<C extends Chart> {
  charts: C[];
  steps: ((px: number) => number)[];
  canvases: HTMLCanvasElement[];
  whole: HTMLDivElement;
  constructor(charts: C[], onScrub: (step: number) => void, onRest: () => void) {
    this.charts = charts;
    this.steps = [];
    this.canvases = charts.map(({ name, label = name }, i) => {
      const canvas = el("canvas", {
          class: "plot",
          role: "img",
          "aria-label": label,
          "data-chart": name,
        }),
        scrub = (e: PointerEvent) => {
          onScrub(Math.max(0, this.steps[i]?.(within(e, canvas)[0]) ?? 0));
        };
      scrubbed(canvas, scrub, onRest);
      return canvas;
    });
    this.whole = div("plots", ...this.canvases);
  }

  title(chart: C, _canvas: HTMLCanvasElement) {
    return chart.title;
  }

  // last: last step that is loaded
  paintAll(
    last: number,
    step: number,
    theme: Theme,
    lines: (chart: C, canvas: HTMLCanvasElement) => Line[],
    { marks, tell = true }: { marks?: number[]; tell?: boolean } = {},
  ) {
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
