// Verdict on the pair: a word, a sentence with numbers, and the question.
import type { Compare } from "./compare.ts";
import type { Same } from "./types.ts";
import type { Child } from "../../../kit/types.ts";
import { menu } from "../../../kit/controls.ts";
import { div, el } from "../../../kit/dom.ts";

// Format a difference, which may be anything from a rounding error to infinity: three digits, with
// an exponent if needed.
export function number(x?: number | null) {
  if (x === null || x === undefined) return "∞";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e4) return String(Number(x.toPrecision(4)));
  const [digits, power] = x.toExponential(1).split("e");
  return `${digits.replace(".0", "")}·10${[...String(Number(power))].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("")}`;
}

export class Judgement {
  app: Compare;
  word: string;
  title: HTMLElement;
  text: HTMLParagraphElement;
  asked: HTMLDivElement;
  found: HTMLDivElement;
  box: HTMLDivElement;
  factor: HTMLSpanElement;

  constructor(app: Compare) {
    this.app = app;
    this.word = "";
    this.title = el("b", { class: "word" });
    this.text = el("p", {});
    this.asked = div("asked");
    this.found = div("verdict", this.title, this.text);
    this.box = div("judgement", this.found, this.asked);
  }

  fill() {
    const { app } = this,
      { state } = app;
    const set = (key: string, value: unknown) => {
      app.hand.touch();
      Object.assign(state, { [key]: value });
      app.rescale();
    };
    const tick = (key: "orders" | "fit", title: string, ...text: Child[]) => {
      const box = el("input", { type: "checkbox", checked: state[key] });
      box.addEventListener("change", () => set(key, box.checked));
      return el("label", { title }, box, ...text);
    };
    const spaces = { plane: "anywhere in the plane", sphere: "on the unit sphere" },
      space = menu("compared over triplets", spaces, state.space, (value) => set("space", value));
    this.factor = el("span");
    this.asked.replaceChildren(
      el("label", {}, "Triplets", space),
      tick(
        "orders",
        "Compare L(a, p, n) + L(p, a, n), because the sum over a batch contains both",
        "sum over both orders of A and P",
      ),
      tick(
        "fit",
        "Multiply the second loss by its best factor, so that equal losses look equal",
        this.factor,
      ),
    );
  }

  tell(same: Same) {
    this.found.classList.toggle("same", same.same);
    this.word = same.same ? "The same loss" : "Different losses";
    this.title.textContent = `${same.same ? "✓" : "✗"} ${this.word}`;
    this.text.textContent =
      same.sentence +
      (this.app.state.space === "sphere"
        ? " Only tangential forces are shown, because normalisation removes the rest."
        : "");
    this.found.dataset.factor = String(same.factor ?? "");
    this.factor.textContent = `multiply loss ${this.app.state.pair[1] + 1} by ${same.usable ? number(same.factor) : "the best factor (none is positive)"}`;
  }
}
