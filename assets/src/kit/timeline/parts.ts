// Elements of a page with a player: the transport bar and parts of its panel.
import type { Player } from "./player.ts";
import type { Attributes } from "../types.ts";
import { menu } from "../controls.ts";
import { el } from "../dom.ts";

export type AnyPlayer = Player<any, any, any, any, any>;

export const button = (text: string, name: string, act: () => unknown, more: Attributes = {}) =>
  el("button", { "aria-label": name, title: name, onclick: act, ...more }, text);

// Return the transport bar: play, pause, single steps and optionally epochs, scrubber, reset,
// speed.
// unit: name of a step
export function transport(
  player: AnyPlayer,
  unit: string,
  { label, epochs = false }: { label?: string; epochs?: boolean } = {},
) {
  const { scrub, speeds, playButton, clock } = player;
  scrub.addEventListener("input", () => player.scrubTo(Number(scrub.value)));
  scrub.addEventListener("change", () => player.rest());
  const options = speeds.map(([text], i) =>
      el("option", { value: i, selected: i === player.speed }, text),
    ),
    speed = el("select", { "aria-label": "speed" }, ...options);
  speed.addEventListener("change", () => {
    player.speed = Number(speed.value);
    player.frameTimes = [];
  });
  const epoch: (text: string, name: string, by: number) => HTMLElement[] = (text, name, by) =>
    epochs ? [button(text, name, () => player.step(by, true))] : [];
  return el(
    "div",
    { class: "transport", ...(label ? { role: "group", "aria-label": label } : {}) },
    button("⟲", "reset", () => player.reset()),
    ...epoch("«", "one epoch back", -1),
    button("‹", `one ${unit} back`, () => player.step(-1)),
    playButton,
    button("›", `one ${unit} on`, () => player.step(1)),
    ...epoch("»", "one epoch on", 1),
    scrub,
    clock,
    speed,
  );
}

// Return the number box of an integer in the state; a change restarts the player.
export function numberBox(
  player: AnyPlayer,
  key: string,
  label: string,
  [low, high]: readonly [low: number, high: number],
  title = "",
) {
  const more = { "aria-label": label, title: title || undefined, value: player.state[key] },
    box = el("input", { type: "number", min: low, max: high, step: 1, ...more });
  box.addEventListener("change", () => {
    const value = Math.round(Number(box.value));
    if (!Number.isFinite(value) || box.value === "") box.value = String(player.state[key]);
    else player.restart({ [key]: Math.min(Math.max(value, low), high) });
  });
  return box;
}

export function seedField(player: AnyPlayer, title = "") {
  const next = () => player.restart({ seed: (player.state.seed + 1) % 2 ** 31 }),
    box = numberBox(player, "seed", "seed", [0, 2 ** 31 - 1], title),
    another = el("button", { title: "Use another seed", onclick: next }, "next");
  return el("label", { class: "field" }, "seed", el("span", { class: "seed" }, box, another));
}

// Return a check box for one part of the display.
export function tick<K extends string>(
  shown: Record<K, boolean>,
  key: K,
  text = "",
  title: string,
  act: () => void,
) {
  const box = el("input", { type: "checkbox", checked: shown[key] });
  box.addEventListener("change", () => {
    shown[key] = box.checked;
    act();
  });
  return el("label", { title }, box, text);
}

// Return a menu with its label and the help text of the chosen option.
export function choice(
  label: string,
  offers: Record<string, { title: string; help?: string }>,
  chosen: unknown,
  act: (value: string) => void,
) {
  const box = menu(label, offers, chosen, act);
  box.title = offers[String(chosen)]?.help ?? "";
  return el("label", {}, label, box);
}
