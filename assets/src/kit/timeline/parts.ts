// Elements of pages with a player that make them by hand. Pages rendered by preact use
// ../panel/panel.tsx and fields.tsx instead.
import { h, render } from "preact";
import type { ComponentChild } from "preact";
import type { Player } from "./player.ts";
import type { Child } from "../types.ts";
import { menu } from "../controls.ts";
import { el } from "../dom.ts";
import { Live, Notice, Presets, Transport } from "../panel/panel.tsx";
import { SeedField, StateNumber } from "./fields.tsx";

export type AnyPlayer = Player<any, any, any, any, any>;

// Return the elements of a component. Its signals keep changing them.
function elementsOf(view: ComponentChild) {
  const box = el("div");
  render(view, box);
  return [...box.children] as HTMLElement[];
}

export const transport = (
  player: AnyPlayer,
  unit: string,
  more: { label?: string; epochs?: boolean } = {},
) => elementsOf(h(Transport, { player, unit, ...more }))[0];
export const noticeOf = ({ view }: AnyPlayer) => elementsOf(h(Notice, { text: view.notice }))[0];
export const liveOf = ({ view }: AnyPlayer) => elementsOf(h(Live, { text: view.live }))[0];

// Return the row of presets and the caption of the one that is pressed.
export const presetsOf = (player: AnyPlayer) =>
  elementsOf(
    h(Presets, {
      offers: player.options.presets,
      pressed: player.view.pressed,
      onPress: (i) => player.preset(i),
      otherwise: player.sentence,
    }),
  );

export const numberBox = (
  player: AnyPlayer,
  name: string,
  label: string,
  range: readonly [low: number, high: number],
  title = "",
) => elementsOf(h(StateNumber, { player, name, label, range, title }))[0];

export const seedField = (player: AnyPlayer, title = "") =>
  elementsOf(h(SeedField, { player, title }))[0];

// Replace the controls of a panel, and keep the focus.
export function showControls(player: AnyPlayer & { controls?(): Child[] }) {
  const { activeElement } = player.root as ParentNode & Partial<ShadowRoot>,
    focused = activeElement?.getAttribute("aria-label");
  player.side.replaceChildren(...(player.controls?.() ?? []));
  ([...player.side.querySelectorAll("[aria-label]")] as HTMLElement[])
    .find((e) => e.getAttribute("aria-label") === focused)
    ?.focus();
}

// Return a section of a panel, nothing if the address hides it.
export function section(
  { hidden }: AnyPlayer,
  name: string,
  title: string,
  ...parts: (Child | Child[])[]
) {
  const shown = hidden.has(name) ? [] : parts.flat();
  return shown.length ? [el("section", {}, title ? el("h4", {}, title) : "", ...shown)] : [];
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
