// Buttons in the corner of a figure.
import { render } from "preact";
import type { FigureSpec, Tool } from "./spec.ts";

const STEP = 1.25; // of one press

/** Return the buttons of a figure: its own, and those that zoom if its view can change. */
export function toolsOf(
  { tools, setView, showAll }: Pick<FigureSpec, "tools" | "setView" | "showAll">,
  zoom: (factor: number) => void,
): Tool[] {
  const all = tools?.() ?? [];
  if (setView)
    all.push(
      { text: "+", title: "zoom in", act: () => zoom(1 / STEP) },
      { text: "−", title: "zoom out", act: () => zoom(STEP) },
    );
  if (showAll) all.push({ text: "⤢", title: "show all points", act: showAll });
  return all;
}

/** Render buttons into an element. */
export function renderTools(into: HTMLElement, tools: Tool[]): void {
  render(
    tools.map(({ text, title, act, disabled }) => (
      <button key={title} aria-label={title} title={title} aria-disabled={disabled} onClick={act}>
        {text}
      </button>
    )),
    into,
  );
}
