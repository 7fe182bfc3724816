// Small charts of measurements over the steps of a history, with one cursor; pressing or dragging
// on any chart scrubs.
import type { Context, Ink, Theme } from "../types.ts";
import { render } from "preact";
import type { ComponentChildren } from "preact";
import { INK, niceStep } from "../colours.ts";
import { div, drawing } from "../dom.ts";
import { scrubbed, within } from "../hand.ts";
import { brief } from "../plot.ts";
import { valueAt } from "../figure/axes.ts";
import { Pen } from "./pen.ts";

export interface Line {
  name?: string; // shown above the chart with the value at the cursor
  colour: string;
  dash?: number[];
  value(step: number): number; // NaN: not measured
  noisy?(step: number): number; // values of which `value` is the mean, drawn faint below it
}
// Chart whose lines follow from data D.
export interface StepChart<D> {
  name: string;
  label?: string; // for screen readers; defaults to the name
  title?: string | ((canvas: HTMLCanvasElement) => string); // drawn above the lines
  caption?: string; // text above the canvas
  help?: string; // tooltip of the caption
  top?: number; // high end of the axis; without it, the largest value decides
  lines(data: D, ink: Ink, canvas: HTMLCanvasElement): Line[];
}
export interface Steps {
  last: number; // step at the right end
  step: number; // position of the cursor
  marks?: number[]; // steps of changes, marked by dotted lines
}

const PAD = { left: 40, right: 6, top: 17, bottom: 6 },
  MOST_POINTS = 500, // per line
  FEWEST_STEPS = 10; // steps that the width shows at least

export class StepCharts<D> {
  charts: StepChart<D>[];
  canvases: HTMLCanvasElement[];
  whole = div("plots");
  last = 0;

  // `onScrub` is called with steps while a pointer is pressed, `onRest` on release; `after` follows
  // the charts.
  constructor(
    charts: StepChart<D>[],
    onScrub: (step: number) => void,
    onRest: () => void,
    after?: ComponentChildren,
  ) {
    this.charts = charts;
    const figures = charts.map(({ name, label = name, caption, help }) => {
      const canvas = <canvas class="plot" role="img" aria-label={label} data-chart={name} />;
      return caption ? (
        <figure title={help}>
          <figcaption>{caption}</figcaption>
          {canvas}
        </figure>
      ) : (
        canvas
      );
    });
    render([...figures, after], this.whole);
    this.canvases = [...this.whole.querySelectorAll("canvas")];
    for (const canvas of this.canvases)
      scrubbed(
        canvas,
        (event) => onScrub(stepAt(canvas, within(event, canvas)[0], this.last)),
        onRest,
      );
  }

  // Paint all charts, up to the last step that is loaded or the cursor. `tell` updates the
  // descriptions for screen readers.
  paint(steps: Steps, theme: Theme, data: D, tell = true) {
    const { step } = steps,
      last = (this.last = Math.max(steps.last, step));
    this.charts.forEach((chart, i) => {
      const canvas = this.canvases[i],
        { clientWidth: width, clientHeight: height } = canvas,
        lines = chart.lines(data, INK[theme], canvas),
        title = typeof chart.title === "function" ? chart.title(canvas) : chart.title,
        look = { title, top: chart.top, theme };
      paintSteps(drawing(canvas), { width, height }, lines, { ...steps, last }, look);
      if (!tell) return;
      const now = lines.map((line) => `${line.name ?? ""} ${brief(line.value(step))}`).join(", ");
      canvas.setAttribute(
        "aria-label",
        `${chart.label ?? chart.name} over ${last + 1} steps; at step ${step}: ${now}`,
      );
    });
  }
}

// Return the step at a position of a chart in pixels.
function stepAt(canvas: HTMLCanvasElement, x: number, last: number) {
  const share = (x - PAD.left) / (canvas.clientWidth - PAD.left - PAD.right);
  return Math.round(valueAt({ low: 0, high: Math.max(last, FEWEST_STEPS) }, share));
}

// Draw one chart.
export function paintSteps(
  ctx: Context,
  size: { width: number; height: number },
  lines: Line[],
  { last, step, marks = [] }: Steps,
  { title, top, theme }: { title?: string; top?: number; theme: Theme },
) {
  const stride = Math.max(1, Math.ceil((last + 1) / MOST_POINTS)),
    count = Math.floor(last / stride) + 1,
    sample = (value: (step: number) => number) => {
      const values = new Float64Array(count);
      for (let i = 0; i < count; i++) values[i] = value(i * stride);
      return values;
    },
    steps = sample((k) => k),
    curves = lines.map((line) => ({
      line,
      values: sample((k) => line.value(k)),
      noisy: line.noisy && sample(line.noisy),
    })),
    high = top ?? roundUp(curves.flatMap(({ values, noisy }) => [largest(values), largest(noisy)])),
    x = { low: 0, high: Math.max(last, FEWEST_STEPS) },
    pen = new Pen(ctx, { ...size, pad: PAD, x, y: { low: 0, high } }, theme);
  pen.yAxis([
    { value: 0, text: "0" },
    { value: high / 2, text: "" },
    { value: high, text: brief(high) },
  ]);
  for (const { line, values, noisy } of curves) {
    if (noisy) pen.curve(steps, noisy, line.colour, { width: 0.8, alpha: 0.3 });
    pen.curve(steps, values, line.colour, { width: 1.7, dash: line.dash });
  }
  for (const k of marks) pen.down(k, pen.ink.faint, { dash: [2, 3] });
  pen.down(step, pen.ink.text);
  paintLegend(pen, title, lines, Math.min(step, last));
}

// Name the lines with their values, or, where these do not fit into the width, without them.
function paintLegend(pen: Pen, title: string | undefined, lines: Line[], step: number) {
  const { ctx, ink } = pen;
  let x = pen.left;
  ctx.fillStyle = ink.text;
  ctx.textAlign = "left";
  const write = (text: string) => {
    ctx.fillText(text, x, 10);
    x += ctx.measureText(text).width;
  };
  if (title) {
    write(title);
    x += 12;
  }
  const named = lines.filter(({ name }) => name),
    valued = named.map(({ name, value }) => `${name} ${steady(value(step))}`),
    fits =
      x + valued.reduce((sum, text) => sum + 28 + ctx.measureText(text).width, -10) <= pen.right;
  named.forEach(({ name = "", colour, dash }, i) => {
    pen.segments([[x, 6.5, x + 14, 6.5]], colour, { width: 1.7, dash });
    x += fits ? 18 : 17;
    write(fits ? valued[i] : name);
    x += fits ? 10 : 4;
  });
}

// Return a number with three decimals, so that its width hardly changes while the steps go by; in the
// shortest form where three decimals do not suffice.
const steady = (v: number) =>
  v === 0 || (Math.abs(v) >= 0.001 && Math.abs(v) < 1000) ? v.toFixed(3) : brief(v);

function largest(values: ArrayLike<number> = []) {
  let high = 0;
  for (let i = 0; i < values.length; i++) if (values[i] > high) high = values[i];
  return high;
}

// Return a round number of at least all of these; 1 if none is above 0.
function roundUp(values: number[]) {
  const high = Math.max(...values) || 1,
    unit = niceStep(high, 3);
  return Math.ceil(high / unit - 1e-9) * unit;
}
