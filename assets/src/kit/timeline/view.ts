// Values of a player that a page shows, and its keys.
import { signal } from "@preact/signals";

// Return signals, which a page follows without being rendered.
export const newView = () => ({
  playing: signal(false),
  at: signal(0), // step shown
  last: signal(0), // last step that can be shown
  time: signal(""),
  notice: signal(""),
  live: signal(""), // for screen readers
  pressed: signal<number | null>(null), // preset
});

// Act on a key press with the actions of a page, unless a control under the focus uses the key
// itself. An action that returns false declines.
export function pressKey(
  actions: Record<string, (event: KeyboardEvent) => unknown>,
  event: KeyboardEvent,
) {
  const act = actions[event.key],
    inControl = (event.target as Element).matches("input, select, button");
  if (!act || (inControl && !["Home", "PageUp", "PageDown"].includes(event.key))) return;
  if (act(event) !== false) event.preventDefault();
}
