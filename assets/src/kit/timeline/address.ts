// Address of a player: the state that Python named, the step shown, and marks of the page.
import type { Kinds, Query } from "./types.ts";
import type { Player } from "./player.ts";
import { writeAddress } from "../dom.ts";

const REST = 150; // ms after a gesture until the link is requested

export class PlayerAddress<K extends Kinds> {
  text = ""; // query of the state and the step shown
  private readonly player: Player<K>;
  private state: Query | undefined; // query of the state alone, once Python has sent it
  private loaded: string; // last query that Streamlit has sent
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(player: Player<K>, query: Query) {
    this.player = player;
    this.loaded = JSON.stringify(query);
  }

  // Return true if a link with another query than the page's own was followed.
  isFollowed(query: Query) {
    const text = JSON.stringify(query);
    if (text === this.loaded || text === JSON.stringify(this.state)) return false;
    this.loaded = text;
    return true;
  }

  // After a gesture: request the link, and describe the step shown to screen readers.
  rest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { clock, figure, view } = this.player,
        { playing, closed, wanted } = clock;
      if (playing || closed) return;
      clock.ask({
        rest: true,
        ...(wanted === undefined ? {} : { want: wanted, frames: [wanted] }),
      });
      const text = figure.describeStep?.();
      if (text) view.live.value = text;
    }, REST);
  }

  // Take over the link of an answer, and write it unless a visit without one is still playing.
  take(answer: K["answer"]) {
    const { clock, figure, idle } = this.player,
      { goal, at, playing, state } = clock;
    this.state = answer.query;
    this.text = new URLSearchParams({ ...answer.query, step: String(goal || at) }).toString();
    figure.onLink?.(answer);
    // While playing, link to the step of the last change, which shows its result.
    if (!goal && !(idle && playing)) this.write(playing ? (state.changes.at(-1)?.at ?? 0) : at);
  }

  // Write the address of the step shown, even while playing.
  tell() {
    const { goal, at } = this.player.clock;
    if (this.state && !goal) this.write(at);
  }

  // Return the address of an export of the state and the step shown.
  file(name: string) {
    const { session, about } = this.player;
    return new URL(`${about.api}/${name}?${this.text}`, new URL(session.data.base, location.href))
      .href;
  }

  private write(step: number) {
    const address = new URLSearchParams(this.state);
    if (step > 0) address.set("step", String(step));
    for (const [name, value] of Object.entries(this.player.figure.marks?.() ?? {}))
      address.set(name, value);
    writeAddress(address.toString(), ["hide", "socket"]);
  }

  close() {
    clearTimeout(this.timer);
  }
}
