// Opening animation: the negative moves once around the pair, in all planes, until any input.
import type { Place, Point } from "../../../kit/types.ts";
import { animate } from "../../../kit/figure/motion.ts";
import { rounded } from "../../../kit/figure/view.ts";

const ROUND = 6000, // ms
  WAIT = 600; // ms before it starts

/** State that the animation moves. */
export interface Orbited {
  state: Record<Point, Place>;
  move(): void;
  rest(): void;
}

export class Orbit {
  home: Place | null = null; // place of the negative before it circled
  private readonly app: Orbited;
  private end: (() => void) | undefined;

  constructor(app: Orbited) {
    this.app = app;
  }

  start(): void {
    const { state } = this.app,
      home = [...state.negative],
      { anchor, positive } = state,
      [x, y] = [0, 1].map((i) => (anchor[i] + positive[i]) / 2),
      radius = Math.hypot(home[0] - x, home[1] - y),
      from = Math.atan2(home[1] - y, home[0] - x);
    this.home = home;
    this.end = animate(
      ROUND,
      (share) => {
        const angle = from + 2 * Math.PI * share;
        if (share === 1) return this.halt(home);
        state.negative = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
        this.app.move();
      },
      WAIT,
    );
  }

  /** Put the negative back, at any input. */
  stop(): void {
    this.end?.();
    if (this.home) this.app.state.negative = this.home;
    this.home = null;
  }

  /** Stop the negative where it is, so that it can be dragged. */
  halt(at: Place = this.app.state.negative.map(rounded)): void {
    if (!this.home) return;
    this.home = at;
    this.stop();
    this.app.rest();
  }
}
