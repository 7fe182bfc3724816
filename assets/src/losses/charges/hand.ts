// Points of the charges under the pointer and the keyboard.
import type { Charges } from "./charges.ts";
import type { Moved } from "./types.ts";
import { show } from "../../kit/dom.ts";
import { follow, within } from "../../kit/hand.ts";
import { clamp } from "../../kit/panel/values.ts";
import { commit, draft } from "./changes.ts";
import { fromPixels, toPixels } from "./draw.ts";

const NEAR = 13, // px within which a pointer takes a point
  NEAR_FINGER = 24;

export class Hand {
  app: Charges;
  chosen: number | null = null; // point that the keyboard moves
  dragging = false;

  constructor(app: Charges) {
    this.app = app;
  }

  // Return the index of the point under a pointer.
  nearest(event: PointerEvent) {
    const { frameShown, half, size, labels, canvas } = this.app;
    if (!frameShown) return null;
    const at = toPixels(half, size),
      [px, py] = within(event, canvas);
    let best = null,
      least = event.pointerType === "touch" ? NEAR_FINGER : NEAR;
    for (let i = 0; i < labels.length; i++) {
      const [x, y] = at(frameShown.positions[2 * i], frameShown.positions[2 * i + 1]),
        d = Math.hypot(x - px, y - py);
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  hover(event: PointerEvent) {
    if (!this.dragging) this.app.frame.classList.toggle("near", this.nearest(event) !== null);
  }

  drag(event: PointerEvent) {
    const { app } = this,
      { frame, canvas, half, size, clock, player } = app,
      index = this.nearest(event);
    frame.focus({ preventScroll: true });
    this.chosen = index;
    if (index === null) return clock.invalidate();
    event.preventDefault();
    player.playback.hold();
    this.dragging = true;
    frame.classList.add("held");
    let last: Moved | null = null;
    const move = (e: PointerEvent) => {
      const [px, py] = within(e, canvas),
        [x, y] = fromPixels(half, size)(clamp(px, 0, size), clamp(py, 0, size));
      last = [index, Number(x.toFixed(4)), Number(y.toFixed(4))];
      clock.history.setPoint(clock.at, last);
      clock.invalidate();
      draft(player, last);
    };
    follow(event, canvas, move, () => {
      this.dragging = false;
      frame.classList.remove("held");
      if (last) return commit(player, last);
      if (player.playback.release()) player.playback.play();
      else clock.invalidate();
    });
  }

  // Choose the next or previous point by keyboard.
  choose(turn: number) {
    const { app } = this,
      { labels, frameShown } = app,
      n = labels?.length ?? 0;
    if (!frameShown) return;
    const chosen = (this.chosen = ((this.chosen ?? (turn > 0 ? -1 : 0)) + turn + n) % n),
      [x, y] = frameShown.positions.subarray(2 * chosen);
    app.player.view.live.value = `point ${chosen}, class ${labels[chosen] + 1}, at ${show(x)}, ${show(y)}`;
    app.clock.invalidate();
  }

  // Move the chosen point by a share of the window.
  push(right: number, up: number) {
    const { app } = this,
      index = Number(this.chosen),
      by = app.half / 40,
      [x, y] = app.clock.history.at(app.clock.at).positions.subarray(2 * index);
    commit(app.player, [
      index,
      Number((x + by * right).toFixed(4)),
      Number((y + by * up).toFixed(4)),
    ]);
  }
}
