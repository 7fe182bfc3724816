// Four charts below the maps: the gate, its bias, convergence, and the share of the informative
// pixels over epsilon.
import type { ComponentChildren } from "preact";
import type { Axis } from "../../kit/figure/axes.ts";
import type { Theme } from "../../kit/types.ts";
import type { TransportAnswer } from "./types.ts";
import { valueAt } from "../../kit/figure/axes.ts";
import { Pen } from "../../kit/chart/pen.ts";
import { tidy } from "../../kit/dom.ts";
import type { Paint } from "../../kit/panel/painting.tsx";
import type { Transport } from "./transport.ts";
import { follow } from "../../kit/hand.ts";
import { Painting } from "../../kit/panel/painting.tsx";
import { colourOf } from "./draw.ts";

interface Chart {
  x: Axis;
  y: Axis;
  caption: ComponentChildren;
  label: string; // for screen readers
  draw(pen: Pen): void;
}
type Describe = (answer: TransportAnswer, theme: Theme, mark: number | null) => Chart;

const PAD = { left: 40, right: 12, top: 10, bottom: 34 },
  SHARE: Axis = { low: 0, high: 1 },
  EPSILON: Axis = { low: 0.1, high: 450, scale: "log", name: "ε" },
  ERROR: Axis = { low: 1e-16, high: 10, scale: "log" };
const DOTTED = { width: 1.2, dash: [2, 3] },
  DASHED = { width: 1.2, dash: [5, 4] };

const short = (v: number) =>
  v === 0 ? "0" : Math.abs(v) < 1e-3 ? v.toExponential(1) : String(Number(v.toPrecision(4)));

// Return the halves of a table of two rows.
function rows(table: Float32Array | Float64Array, length: number) {
  return [table.subarray(0, length), table.subarray(length, 2 * length)] as const;
}

const gate: Describe = (answer, theme, mark) => {
  const { bias, state, gates } = answer,
    [xs, ys] = rows(answer.gate_curve, answer.shapes.gate_curve[1]),
    high = xs[xs.length - 1],
    opened = gates.reduce((n, s) => n + Number(s > 0.5), 0);
  const caption =
    bias === null
      ? "μ = 1: every gate is open."
      : `${opened} of ${gates.length} gates are more than half open. The mean of all gates is μ = ${tidy(state.mu)}, which determines the shift a* of the curve.`;
  return {
    x: { low: xs[0], high, name: "l, closeness to the prototypes: log Σ exp(−ε c)" },
    y: SHARE,
    caption,
    label: `gate over closeness: ${caption} a* = ${bias === null ? "infinite" : short(bias)}`,
    draw(pen) {
      pen.across(state.mu, pen.ink.residual, DOTTED);
      pen.text("μ", high, state.mu, { dy: -7, align: "right" });
      if (bias !== null) {
        pen.down(-bias, pen.ink.text, DASHED);
        pen.text("l = −a*", -bias, 1, { dx: -5, dy: 12, align: "right" });
      }
      pen.curve(xs, ys, pen.ink.text);
      state.pixels.forEach((code, j) => {
        const radius = mark === j ? 6 : 3.4;
        pen.dot(answer.soft_min[j], gates[j], colourOf(code, theme), radius, pen.ink.text);
      });
    },
  };
};

const bias: Describe = (answer) => {
  const { bias: root, state, shapes } = answer,
    [xs, ys] = rows(answer.mean_curve, shapes.mean_curve[1]),
    [sweptX, sweptY] = rows(answer.swept, shapes.swept[1]),
    [newtonX, newtonY] = rows(answer.newton, shapes.newton[1]),
    high = xs[xs.length - 1];
  const caption =
    root === null
      ? "μ = 1 has no finite bias: the mean gate reaches 1 only in the limit, which the sweeps approach."
      : "Mean gate as a function of a. Squares: sweeps, from a = 0. Dots: Newton's method, from the middle of its bracket.";
  return {
    x: { low: xs[0], high, name: "a" },
    y: SHARE,
    caption,
    label: `mean gate as a function of the bias a: ${caption} ${root === null ? "" : `Root a* = ${short(root)}.`}`,
    draw(pen) {
      pen.across(state.mu, pen.ink.residual, DOTTED);
      pen.text("μ", high, state.mu, { dy: -7, align: "right" });
      if (root !== null) {
        pen.down(root, pen.ink.text, DASHED);
        pen.text(`a* = ${short(root)}`, root, 1, { dx: 5, dy: 12 });
      }
      pen.curve(xs, ys, pen.ink.text);
      sweptX.forEach((a, k) => pen.square(a, sweptY[k], pen.ink.negative, 2.8));
      newtonX.forEach((a, k) => pen.dot(a, newtonY[k], pen.ink.positive, 4));
    },
  };
};

const convergence: Describe = (answer) => {
  const { r, state } = answer,
    floor = (e: number) => Math.max(e, ERROR.low),
    errors = answer.sweep_errors,
    newton = answer.newton_errors,
    count = errors.length,
    steps = Array.from(errors, (_, k) => k + 1);
  // The predicted line passes through the last error above rounding level.
  let last = count - 1;
  while (last > 0 && errors[last] < 1e-12) last--;
  const predicted = (k: number) =>
    r < 1 ? errors[last] * r ** (k - last - 1) : (errors[last] * (last + 1)) / k;
  const solved = newton.length
    ? `${short(newton[newton.length - 1])} after ${newton.length - 1} steps`
    : "nothing to solve at mu = 1";
  return {
    x: { low: 0, high: Math.max(count, newton.length, 4), name: "steps" },
    y: ERROR,
    caption: (
      <>
        <span class="swept">■ sweeps</span> <span class="newton">● Newton</span> Largest relative
        deviation of a pixel's mass. Dashed:{" "}
        {r < 1 ? "predicted, falls by a factor r = 1 − k/μ per sweep" : "1/K"}; dotted: 10⁻⁶.
      </>
    ),
    label: `error of ${count} sweeps: ${short(errors[count - 1])} at the end; of Newton: ${solved}; predicted factor per sweep r = ${short(r)}; mu = ${state.mu}`,
    draw(pen) {
      const { ink } = pen,
        middle = 0.6 * count;
      pen.across(1e-6, ink.residual, DOTTED);
      pen.curve(steps, errors.map(floor), ink.negative, { width: 3 });
      const falling = () =>
        pen.curve(steps, steps.map(predicted), ink.text, { dash: [5, 5], width: 1.1 });
      pen.inside(falling, 0);
      if (count < 40) steps.forEach((k, i) => pen.square(k, floor(errors[i]), ink.negative, 2.6));
      pen.curve([...newton.keys()], newton.map(floor), ink.positive, { width: 1.6 });
      newton.forEach((e, k) => pen.dot(k, floor(e), ink.positive, 3.6));
      const height = Math.max(Math.min(predicted(middle), 1), 1e-15);
      pen.text(r < 1 ? `slope r = ${short(r)}` : "slope 1/K", middle, height, { dx: 6, dy: -6 });
    },
  };
};

const over: Describe = (answer) => {
  const { table, state } = answer,
    [xs, ys] = rows(answer.over, answer.shapes.over[1]),
    [programme, smoothed, average] = answer.shares,
    values = table.map(([u, v]) => `${v.toFixed(3)} at ${u}`).join(", ");
  return {
    x: EPSILON,
    y: SHARE,
    caption: answer.informative
      ? `ε → 0 gives average pooling, ε → ∞ the linear programme. Drag to choose ε.`
      : "No pixel is informative, because all are at least half background.",
    label: `share of the mass on informative pixels by epsilon: ${values}; linear programme ${programme.toFixed(3)}, average ${average.toFixed(3)}`,
    draw(pen) {
      const { ink } = pen;
      pen.across(programme, ink.text, DASHED);
      pen.across(average, ink.residual, DOTTED);
      pen.curve(xs, ys, ink.force, { width: 2 });
      pen.down(state.epsilon, ink.faint, { width: 1.2 });
      for (const [u, v] of table) pen.dot(u, v, ink.force, 3.2);
      pen.dot(state.epsilon, smoothed, ink.text, 4.5);
      pen.text("linear programme", 440, programme, {
        dy: programme > 0.9 ? 16 : -7,
        align: "right",
      });
      pen.text("average", 440, average, { dy: average > 0.9 ? 30 : -7, align: "right" });
    },
  };
};

const CHARTS: [name: string, title: string, describe: Describe][] = [
  ["gate", "Gate s = σ(a* + l) of each pixel", gate],
  ["bias", "Bias a*, at which the mean gate is μ", bias],
  ["convergence", "Error by step: published sweeps and Newton", convergence],
  ["over", "Share of the weight on the informative pixels, by ε", over],
];

export const Charts = ({ app }: { app: Transport }) => (
  <div class="charts">
    {CHARTS.map(([name, title, describe]) => (
      <ChartFigure key={name} app={app} name={name} title={title} describe={describe} />
    ))}
  </div>
);

interface ChartProps {
  app: Transport;
  name: string;
  title: string;
  describe: Describe;
}

function ChartFigure({ app, name, title, describe }: ChartProps) {
  const { answer, theme, mark } = app.shown.value,
    chart = answer && describe(answer, theme, mark);
  const paint: Paint = (ctx, width, height) => {
    if (!chart) return;
    const { x, y, draw } = chart,
      pen = new Pen(ctx, { width, height, pad: PAD, x, y }, theme);
    pen.xAxis(Math.max(3, Math.floor((width - 60) / 62)));
    pen.yAxis();
    pen.inside(() => draw(pen));
  };
  return (
    <figure class="chart">
      <h4>{title}</h4>
      <Painting
        role="img"
        data-chart={name}
        aria-label={chart?.label}
        paint={paint}
        {...(name === "over" ? scrubbing(app) : {})}
      />
      <p class="caption">{chart?.caption}</p>
    </figure>
  );
}

// Listeners that choose epsilon on the chart over epsilon.
const scrubbing = (app: Transport) => ({
  class: "scrub",
  onPointerDown(event: PointerEvent) {
    const canvas = event.currentTarget as HTMLCanvasElement;
    const scrub = ({ offsetX }: PointerEvent) => {
      const share = (offsetX - PAD.left) / (canvas.clientWidth - PAD.left - PAD.right);
      app.setEpsilon(valueAt(EPSILON, share));
    };
    scrub(event);
    follow(event, canvas, scrub, () => app.changed(true));
  },
});
