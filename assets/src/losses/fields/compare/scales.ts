// Colour scale of all planes and that of the difference; rebuilt only if something in them changes.
import type { Compare } from "./compare.ts";
import type { CompareAnswer, Comparison, PanelNumbers } from "./types.ts";
import type { Theme } from "../../../kit/types.ts";
import { keyMark } from "../../../kit/controls.ts";
import { div, el } from "../../../kit/dom.ts";
import { number } from "./judgement.ts";
import { paintScale } from "../../../kit/component.ts";
import { rampColour, signedColour } from "../../../kit/colours.ts";

export const SHADES: Record<string, string> = {
  "energy,1": "loss, clamped",
  "energy,0": "loss before the clamp",
  "force,1": "force, clamped",
  "force,0": "force before the clamp",
};

export class Scales {
  app: Compare;
  all: HTMLSpanElement;
  rest: HTMLSpanElement;
  keys: HTMLSpanElement;
  largest: HTMLSpanElement;
  lock: HTMLButtonElement;
  box: HTMLDivElement;
  map: HTMLDivElement;
  legend: HTMLParagraphElement;
  shownKey: string;

  constructor(app: Compare) {
    this.app = app;
    this.all = el("span", { class: "bars" });
    this.rest = el("span");
    this.keys = el("span", { class: "bars" });
    this.largest = el("span");
    this.lock = el(
      "button",
      {
        "aria-pressed": "false",
        title: "Keep the colour scale when the values change",
        onclick: () => {
          app.locked = !app.locked;
          this.lock.setAttribute("aria-pressed", String(app.locked));
        },
      },
      "lock scale",
    );
    this.box = div(
      "bars",
      this.all,
      el(
        "button",
        { title: "Fit the colour scale to the values in view", onclick: () => app.rescale(true) },
        "rescale",
      ),
      this.lock,
      this.keys,
    );
    this.map = div("bars", this.rest, this.largest);
    this.legend = el("p", { class: "formula legend" });
  }

  tell(answer: CompareAnswer) {
    const { state, theme } = this.app,
      clamps = answer.panels.some((p) => p.m2 !== null),
      second = answer.panels[state.pair[1]];
    this.largest.textContent = `largest in view ${number(answer.largest)}`;
    const now = JSON.stringify([
      answer.scale,
      answer.span,
      answer.signed,
      second.factor,
      second.shift,
      clamps,
      theme,
      state.pair,
      state.shade,
      state.clamp,
      state.region,
    ]);
    if (now === this.shownKey) return;
    this.shownKey = now;
    this.all.replaceChildren(
      bar(
        answer.signed ? "signed" : "ramp",
        `${SHADES[`${state.shade},${Number(state.clamp)}`]}, one scale for all planes`,
        answer.scale,
        theme,
      ),
    );
    this.keys.replaceChildren(
      ...(state.region ? [keyMark("", "loss = 0")] : []),
      ...(state.region && state.clamp && clamps ? [keyMark("dashed", "upper clamp")] : []),
      ...(state.region && state.clamp ? [keyMark("hatched", "no force")] : []),
    );
    this.rest.replaceChildren(
      state.shade === "energy"
        ? bar("signed", "loss", answer.span, theme)
        : bar("half", "force", answer.span, theme),
    );
    this.legend.textContent = meaning(state, second);
  }
}

// Paint a scale: "ramp" from 0, "signed" about 0, or the upper "half" of signed.
function bar(kind: string, name: string, top: number, theme: Theme) {
  const canvas = el("canvas", { width: 150, height: 1 }),
    most = String(Number(top.toPrecision(3)));
  paintScale(
    canvas,
    kind === "ramp"
      ? (t: number) => rampColour(t, theme)
      : kind === "signed"
        ? (t: number) => signedColour(2 * t - 1, theme)
        : (t: number) => signedColour(t, theme),
  );
  return el(
    "span",
    { class: "bar" },
    el("span", {}, name),
    el("span", {}, kind === "signed" ? `−${most}` : "0"),
    canvas,
    el("span", {}, most),
  );
}

function meaning(state: Comparison, { factor, shift }: PanelNumbers) {
  const [i, j] = state.pair.map((k: number) => `loss ${k + 1}`),
    times = Math.abs(factor - 1) < 1e-9 ? j : `${number(factor)} × ${j}`;
  if (state.shade === "force")
    return `Colour and arrows: force of ${i} minus force of ${times}. Blank: equal.`;
  const shifted =
    Math.abs(shift) > 1e-9 ? `${times} ${shift < 0 ? "−" : "+"} ${number(Math.abs(shift))}` : times;
  return `Orange: ${i} is larger. Blue: ${shifted} is larger. Blank: equal.`;
}
