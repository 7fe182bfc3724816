// Values of a player that a page shows, as signals: they follow without rendering the page.
import { signal } from "@preact/signals";
import { pace } from "../screen.ts";

export class PlayerView {
  playing = signal(false);
  at = signal(0); // step shown
  last = signal(0); // last step that can be shown
  time = signal("");
  notice = signal("");
  live = signal(""); // for screen readers
  pressed = signal<number | null>(null); // preset
  message = "";

  // Show the position of a step among those loaded, and the pace of playback.
  show(at: number, last: number, moment: string, frameTimes: number[]) {
    const rate = pace(frameTimes);
    this.at.value = at;
    this.last.value = Math.max(last, at);
    this.time.value = moment + (rate ? `, ${rate}/s` : "");
  }

  // Show the message, or else the text that holds at the step shown; `also` follows it.
  tell(otherwise = "", also = "") {
    this.notice.value = [this.message || otherwise, also].filter(Boolean).join(" ");
  }
}

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
