// Rows of choices: presets of known identities, layers, and the two losses to subtract.
/** @import { Compare } from "./compare.js" */
import { menu, switches } from "../../../kit/controls.js";
import { div, el } from "../../../kit/dom.js";
import { SHADES } from "./scales.js";

/** @type {["region" | "arrows" | "landscape", text: string, title: string][]} */
const SHOWN = [
  ["region", "active region", "Hatched: the loss is clamped, so the gradient is zero"],
  ["arrows", "force arrows", "Force on the moved point at each position"],
  [
    "landscape",
    "landscapes in 3-D",
    "Show both losses as surfaces, with marbles that follow the forces",
  ],
];

/** @param {Compare} app */
export function presetRows({ presets: { offers, buttons, text } }) {
  const row = (/** @type {string} */ name, /** @type {string} */ kind) => [
    el("span", { class: "row-name" }, name),
    div("pills", ...buttons.filter((_, i) => offers[i].kind === kind)),
  ];
  return [...row("The same loss", "same"), ...row("Not the same", "different"), text];
}

/** @param {Compare} app */
export function options(app) {
  const { state } = app,
    set = (/** @type {string} */ key, /** @type {unknown} */ value) => {
      app.hand.touch();
      Object.assign(state, { [key]: value });
      app.rescale();
    };
  const now = `${state.shade},${Number(state.clamp)}`;
  const shade = menu("colour", SHADES, now, (value) => {
    const [what, clamp] = value.split(",");
    state.clamp = clamp === "1";
    set("shade", what);
  });
  return [el("label", {}, "Colour", shade), switches(state, SHOWN, set)];
}

/** @param {Compare} app */
export function pairMenu(app) {
  const { state } = app,
    count = state.panels.length;
  const choose = (/** @type {number[]} */ pair) => {
    app.hand.touch();
    state.pair = pair;
    app.updatePairMenu();
    app.rescale();
  };
  const pick = (/** @type {number} */ side) => {
    const label = side ? "subtracted loss" : "loss subtracted from",
      offers = Object.fromEntries(state.panels.map((_, k) => [k, String(k + 1)]));
    return menu(label, offers, state.pair[side], (value) => {
      const k = Number(value),
        next = [...state.pair];
      if (k === next[1 - side]) next[1 - side] = next[side];
      next[side] = k;
      choose(next);
    });
  };
  if (count > 2) return [el("strong", {}, "Difference: loss"), pick(0), " − ", pick(1)];
  return [
    el("strong", {}, `Difference: loss ${state.pair[0] + 1} − ${state.pair[1] + 1}`),
    el("button", { class: "wide", onclick: () => choose([...state.pair].reverse()) }, "reverse"),
  ];
}
