// Verdict on the pair: a word, a sentence with numbers, and the question.
/** @import { Compare } from "./compare.js" */
/** @import { Same } from "./types.js" */
/** @import { Child } from "../../../kit/types.js" */
import { menu } from "../../../kit/controls.js";
import { div, el } from "../../../kit/dom.js";

// Format a difference, which may be anything from a rounding error to infinity: three digits, with
// an exponent if needed.
/** @param {number | null} [x] */
export function number(x) {
  if (x === null || x === undefined) return "∞";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e4) return String(Number(x.toPrecision(4)));
  const [digits, power] = x.toExponential(1).split("e");
  return `${digits.replace(".0", "")}·10${[...String(Number(power))].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("")}`;
}

export class Judgement {
  /** @type {HTMLSpanElement} */
  factor;

  /** @param {Compare} app */
  constructor(app) {
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
    const set = (/** @type {string} */ key, /** @type {unknown} */ value) => {
      app.hand.touch();
      Object.assign(state, { [key]: value });
      app.rescale();
    };
    const tick = (
      /** @type {"orders" | "fit"} */ key,
      /** @type {string} */ title,
      /** @type {(Child)[]} */ ...text
    ) => {
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

  /** @param {Same} same */
  tell(same) {
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
