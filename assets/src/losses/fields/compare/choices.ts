// Rows of choices: presets of known identities, layers, and the two losses to subtract.
import type { Compare } from "./compare.ts";
import { menu, switches } from "../../../kit/controls.ts";
import { div, el } from "../../../kit/dom.ts";
import { SHADES } from "./scales.ts";

const SHOWN: ["region" | "arrows" | "landscape", text: string, title: string][] = [
  ["region", "active region", "Hatched: the loss is clamped, so the gradient is zero"],
  ["arrows", "force arrows", "Force on the moved point at each position"],
  [
    "landscape",
    "landscapes in 3-D",
    "Show both losses as surfaces, with marbles that follow the forces",
  ],
];

export function presetRows({ presets: { offers, buttons, text } }: Compare) {
  const row = (name: string, kind: string) => [
    el("span", { class: "row-name" }, name),
    div("pills", ...buttons.filter((_, i) => offers[i].kind === kind)),
  ];
  return [...row("The same loss", "same"), ...row("Not the same", "different"), text];
}

export function options(app: Compare) {
  const { state } = app,
    set = (key: string, value: unknown) => {
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

export function pairMenu(app: Compare) {
  const { state } = app,
    count = state.panels.length;
  const choose = (pair: number[]) => {
    app.hand.touch();
    state.pair = pair;
    app.updatePairMenu();
    app.rescale();
  };
  const pick = (side: number) => {
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
