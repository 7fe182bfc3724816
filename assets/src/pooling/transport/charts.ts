// Four charts below the maps: the gate, its bias, convergence, and the share of the informative
// pixels over epsilon.
import type { TransportAnswer } from "./types.ts";
import type { Child, Theme } from "../../kit/types.ts";
import { drawing, el, tidy } from "../../kit/dom.ts";
import { scrubbed } from "../../kit/hand.ts";
import { colourOf } from "./draw.ts";
import { plot, valueAt } from "./plots.ts";

const short = (v: number) =>
  v === 0 ? "0" : Math.abs(v) < 1e-3 ? v.toExponential(1) : String(Number(v.toPrecision(4)));
const FLOOR = 1e-16;

export class Charts {
  gate: { canvas: HTMLCanvasElement; text: HTMLParagraphElement; box: HTMLElement };
  bias: { canvas: HTMLCanvasElement; text: HTMLParagraphElement; box: HTMLElement };
  convergence: { canvas: HTMLCanvasElement; text: HTMLParagraphElement; box: HTMLElement };
  over: { canvas: HTMLCanvasElement; text: HTMLParagraphElement; box: HTMLElement };
  all: { canvas: HTMLCanvasElement; text: HTMLParagraphElement; box: HTMLElement }[];
  canvases: HTMLCanvasElement[];
  whole: HTMLDivElement;
  axis: { low: number; high: number; log: boolean; name: string };

  // Charts with drag callbacks: onEpsilon while the last chart is dragged, onRest at the end.
  constructor(onEpsilon: (epsilon: number) => void, onRest: () => void) {
    const chart = (name: string, title: string, ...caption: Child[]) => {
      const canvas = el("canvas", { role: "img", "data-chart": name }),
        text = el("p", { class: "caption" }, ...caption);
      return {
        canvas,
        text,
        box: el("figure", { class: "chart" }, el("h4", {}, title), canvas, text),
      };
    };
    this.gate = chart("gate", "Gate s = σ(a* + l) of each pixel");
    this.bias = chart("bias", "Bias a*, at which the mean gate is μ");
    this.convergence = chart("convergence", "Error by step: published sweeps and Newton");
    this.over = chart("over", "Share of the weight on the informative pixels, by ε");
    this.over.canvas.classList.add("scrub");
    const scrub = (e: PointerEvent) => {
      if (this.axis) onEpsilon(valueAt(e.offsetX, this.over.canvas.clientWidth, this.axis));
    };
    scrubbed(this.over.canvas, scrub, onRest);
    this.all = [this.gate, this.bias, this.convergence, this.over];
    this.canvases = this.all.map((c) => c.canvas);
    this.whole = el("div", { class: "charts" }, ...this.all.map((c) => c.box));
  }

  paint(answer: TransportAnswer, theme: Theme, mark: number | null) {
    this.paintGate(answer, theme, mark);
    this.paintBias(answer, theme);
    this.paintConvergence(answer, theme);
    this.paintOver(answer, theme);
  }

  paintGate(answer: TransportAnswer, theme: Theme, mark: number | null) {
    const { canvas, text } = this.gate,
      g = answer.shapes.gate_curve[1],
      xs = answer.gate_curve.subarray(0, g),
      ys = answer.gate_curve.subarray(g);
    const x = {
        low: xs[0],
        high: xs[g - 1],
        name: "l, closeness to the prototypes: log Σ exp(−ε c)",
      },
      { bias, state } = answer;
    plot(
      drawing(canvas),
      canvas.clientWidth,
      canvas.clientHeight,
      x,
      { low: 0, high: 1 },
      theme,
      (pen) => {
        pen.across(state.mu, pen.ink.residual, [2, 3]);
        pen.text("μ", x.high, state.mu, { dy: -4, align: "right" });
        if (bias !== null) {
          pen.down(-bias, pen.ink.text, [5, 4]);
          pen.text("l = −a*", -bias, 1, { dx: -5, dy: 12, align: "right" });
        }
        pen.curve(xs, ys, pen.ink.text);
        state.pixels.forEach((code, j) =>
          pen.dot(
            answer.soft_min[j],
            answer.gates[j],
            colourOf(code, theme),
            mark === j ? 6 : 3.4,
            pen.ink.text,
          ),
        );
      },
    );
    const opened = answer.gates.reduce((n, s) => n + Number(s > 0.5), 0);
    text.textContent =
      bias === null
        ? "μ = 1: every gate is open."
        : `${opened} of ${answer.gates.length} gates are more than half open. The mean of all gates is μ = ${tidy(state.mu)}, which determines the shift a* of the curve.`;
    canvas.setAttribute(
      "aria-label",
      `gate over closeness: ${text.textContent} a* = ${bias === null ? "infinite" : short(bias)}`,
    );
  }

  paintBias(answer: TransportAnswer, theme: Theme) {
    const { canvas, text } = this.bias,
      g = answer.shapes.mean_curve[1],
      xs = answer.mean_curve.subarray(0, g),
      ys = answer.mean_curve.subarray(g),
      { bias, state } = answer;
    const x = { low: xs[0], high: xs[g - 1], name: "a" },
      half = (name: string) => answer.shapes[name][1];
    plot(
      drawing(canvas),
      canvas.clientWidth,
      canvas.clientHeight,
      x,
      { low: 0, high: 1 },
      theme,
      (pen) => {
        pen.across(state.mu, pen.ink.residual, [2, 3]);
        pen.text("μ", x.high, state.mu, { dy: -4, align: "right" });
        if (bias !== null) {
          pen.down(bias, pen.ink.text, [5, 4]);
          pen.text(`a* = ${short(bias)}`, bias, 1, { dx: 5, dy: 12 });
        }
        pen.curve(xs, ys, pen.ink.text);
        for (let k = 0; k < half("swept"); k++)
          pen.square(answer.swept[k], answer.swept[half("swept") + k], pen.ink.negative, 2.8);
        for (let k = 0; k < half("newton"); k++)
          pen.dot(answer.newton[k], answer.newton[half("newton") + k], pen.ink.positive, 4);
      },
    );
    text.textContent =
      bias === null
        ? "μ = 1 has no finite bias: the mean gate reaches 1 only in the limit, which the sweeps approach."
        : "Mean gate as a function of a. Squares: sweeps, from a = 0. Dots: Newton's method, from the middle of its bracket.";
    canvas.setAttribute(
      "aria-label",
      `mean gate as a function of the bias a: ${text.textContent} ${bias === null ? "" : `Root a* = ${short(bias)}.`}`,
    );
  }

  paintConvergence(answer: TransportAnswer, theme: Theme) {
    const { canvas, text } = this.convergence,
      errors = answer.sweep_errors,
      newton = answer.newton_errors,
      K = errors.length,
      { r, state } = answer;
    const x = { low: 0, high: Math.max(K, newton.length, 4), name: "steps" },
      y = { low: FLOOR, high: 10, log: true };
    const ks = Array.from(errors, (_, k) => k + 1);
    plot(drawing(canvas), canvas.clientWidth, canvas.clientHeight, x, y, theme, (pen) => {
      pen.across(1e-6, pen.ink.residual, [2, 3]);
      // The predicted line passes through the last error above rounding level.
      let last = K - 1;
      while (last > 0 && errors[last] < 1e-12) last--;
      const predicted = (k: number) =>
        r < 1 ? errors[last] * r ** (k - last - 1) : (errors[last] * (last + 1)) / k;
      pen.curve(ks, errors, pen.ink.negative, { width: 3 });
      pen.curve(ks, ks.map(predicted), pen.ink.text, { dash: [5, 5], width: 1.1 });
      if (K < 40) ks.forEach((k, i) => pen.square(k, errors[i], pen.ink.negative, 2.6));
      pen.curve(
        Array.from(newton, (_, k) => k),
        newton,
        pen.ink.positive,
        { width: 1.6 },
      );
      newton.forEach((e, k) => pen.dot(k, e, pen.ink.positive, 3.6));
      pen.text(
        r < 1 ? `slope r = ${short(r)}` : "slope 1/K",
        K * 0.6,
        Math.max(Math.min(predicted(0.6 * K), 1), 1e-15),
        { dx: 6, dy: -6 },
      );
    });
    text.replaceChildren(
      el("span", { class: "swept" }, "■ sweeps"),
      " ",
      el("span", { class: "newton" }, "● Newton"),
      ` Largest relative deviation of a pixel's mass. Dashed: ${r < 1 ? "predicted, falls by a factor r = 1 − k/μ per sweep" : "1/K"}; dotted: 1e-6.`,
    );
    canvas.setAttribute(
      "aria-label",
      `error of ${K} sweeps: ${short(errors[K - 1])} at the end; of Newton: ${newton.length ? `${short(newton[newton.length - 1])} after ${newton.length - 1} steps` : "nothing to solve at mu = 1"}; predicted factor per sweep r = ${short(r)}; mu = ${state.mu}`,
    );
  }

  paintOver(answer: TransportAnswer, theme: Theme) {
    const { canvas, text } = this.over,
      e = answer.shapes.over[1],
      xs = answer.over.subarray(0, e),
      ys = answer.over.subarray(e),
      [lp, smoothed, average] = answer.shares;
    const x = (this.axis = { low: 0.1, high: 450, log: true, name: "ε" });
    plot(
      drawing(canvas),
      canvas.clientWidth,
      canvas.clientHeight,
      x,
      { low: 0, high: 1 },
      theme,
      (pen) => {
        pen.across(lp, pen.ink.text, [5, 4]);
        pen.across(average, pen.ink.residual, [2, 3]);
        pen.curve(xs, ys, pen.ink.force, { width: 2 });
        pen.down(answer.state.epsilon, pen.ink.faint, []);
        for (const [u, v] of answer.table) pen.dot(u, v, pen.ink.force, 3.2);
        pen.dot(answer.state.epsilon, smoothed, pen.ink.text, 4.5);
        pen.text("linear programme", 0.11, lp, { dy: lp > 0.9 ? 12 : -5 });
        pen.text("average", 440, average, { dy: average > 0.9 ? 24 : -5, align: "right" });
      },
    );
    text.textContent = answer.informative
      ? `ε → 0 gives average pooling, ε → ∞ the linear programme. Drag to choose ε.`
      : "No pixel is informative, because all are at least half background.";
    canvas.setAttribute(
      "aria-label",
      `share of the mass on informative pixels by epsilon: ${answer.table.map(([u, v]) => `${v.toFixed(3)} at ${u}`).join(", ")}; linear programme ${lp.toFixed(3)}, average ${average.toFixed(3)}`,
    );
  }
}
