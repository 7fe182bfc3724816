// Elements of a page with a player: the transport bar and parts of its panel.
/** @import { Player } from "./player.js" */
/** @import { Attributes } from "../types.js" */
import { menu } from "../controls.js";
import { el } from "../dom.js";

/** @typedef {Player<any, any, any, any, any>} AnyPlayer */

/**
 * @param {string} text
 * @param {string} name
 * @param {() => unknown} act
 * @param {Attributes} more
 */
export const button = (text, name, act, more = {}) =>
  el("button", { "aria-label": name, title: name, onclick: act, ...more }, text);

// Return the transport bar: play, pause, single steps and optionally epochs, scrubber, reset,
// speed.
/**
 * @param {AnyPlayer} player
 * @param {string} unit name of a step
 * @param {{ label?: string, epochs?: boolean }} more
 */
export function transport(player, unit, { label, epochs = false } = {}) {
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
  /** @type {(text: string, name: string, by: number) => HTMLElement[]} */
  const epoch = (text, name, by) =>
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
/**
 * @param {AnyPlayer} player
 * @param {string} key
 * @param {string} label
 * @param {readonly [low: number, high: number]} range
 */
export function numberBox(player, key, label, [low, high], title = "") {
  const more = { "aria-label": label, title: title || undefined, value: player.state[key] },
    box = el("input", { type: "number", min: low, max: high, step: 1, ...more });
  box.addEventListener("change", () => {
    const value = Math.round(Number(box.value));
    if (!Number.isFinite(value) || box.value === "") box.value = String(player.state[key]);
    else player.restart({ [key]: Math.min(Math.max(value, low), high) });
  });
  return box;
}

/** @param {AnyPlayer} player */
export function seedField(player, title = "") {
  const next = () => player.restart({ seed: (player.state.seed + 1) % 2 ** 31 }),
    box = numberBox(player, "seed", "seed", [0, 2 ** 31 - 1], title),
    another = el("button", { title: "Use another seed", onclick: next }, "next");
  return el("label", { class: "field" }, "seed", el("span", { class: "seed" }, box, another));
}

// Return a check box for one part of the display.
/**
 * @template {string} K
 * @param {Record<K, boolean>} shown
 * @param {K} key
 * @param {string} title
 * @param {() => void} act
 */
export function tick(shown, key, text = "", title, act) {
  const box = el("input", { type: "checkbox", checked: shown[key] });
  box.addEventListener("change", () => {
    shown[key] = box.checked;
    act();
  });
  return el("label", { title }, box, text);
}

// Return a menu with its label and the help text of the chosen option.
/**
 * @param {string} label
 * @param {Record<string, { title: string, help?: string }>} offers
 * @param {unknown} chosen
 * @param {(value: string) => void} act
 */
export function choice(label, offers, chosen, act) {
  const box = menu(label, offers, chosen, act);
  box.title = offers[String(chosen)]?.help ?? "";
  return el("label", {}, label, box);
}
