// Motion of the sphere without a hand on it: a slow swing at first, a turn towards the triplet, and
// coasting after a swing.
import type { Place } from "../../../kit/types.ts";
import { still } from "../../../kit/dom.ts";
import { animate, everyFrame } from "../../../kit/figure/motion.ts";
import { wrap } from "./angle_map.ts";

const SWING = 20, // degrees by which the sphere swings to either side at first
  TURN = 500, // ms of a turn
  SLOWEST = 0.004; // degrees per ms at which coasting ends

/** The camera that turns, and the call once it rests. */
export interface Turned {
  scene: { eye: Place };
  look(eye: Place): void;
  rest(): void;
}

export class Turning {
  greeting = false; // the slow swing at first
  private readonly turned: Turned;
  private end: (() => void) | undefined;

  constructor(turned: Turned) {
    this.turned = turned;
  }

  get active(): boolean {
    return Boolean(this.end);
  }

  stop(): void {
    this.end?.();
    this.end = undefined;
    this.greeting = false;
  }

  /** Swing slowly to either side until stopped. */
  greet(): void {
    const [lon, lat] = this.turned.scene.eye,
      begin = performance.now();
    this.greeting = true;
    this.end = everyFrame((now) => {
      this.turned.look([lon + SWING * Math.sin((now - begin) / 3500), lat]);
      return false;
    });
  }

  /** Turn to a place, and rest there. */
  face(to: Place): void {
    const start = this.turned.scene.eye,
      by = [wrap(to[0] - start[0]), to[1] - start[1]];
    if (still()) return this.turned.look(to);
    this.end = animate(TURN, (share) => {
      this.turned.look(start.map((x, i) => x + share * by[i]));
      if (share === 1) this.finish();
    });
  }

  /** Keep turning for a moment after a swing: its times in ms, longitudes and latitudes. */
  coast(trail: number[][]): void {
    const last = trail.at(-1),
      earlier = trail.find(([t]) => last && last[0] - t < 80),
      span = last && earlier ? last[0] - earlier[0] : 0;
    if (still() || !last || !earlier || span < 8 || performance.now() - last[0] > 60) return;
    let speed = [wrap(last[1] - earlier[1]) / span, (last[2] - earlier[2]) / span],
      before = performance.now();
    this.end = everyFrame((now) => {
      const dt = Math.min(Math.max(now - before, 0), 50);
      before = now;
      this.turned.look(this.turned.scene.eye.map((x, i) => x + speed[i] * dt));
      speed = speed.map((x) => x * Math.exp(-dt / 160));
      const over = Math.hypot(...speed) <= SLOWEST;
      if (over) this.finish();
      return over;
    });
  }

  private finish(): void {
    this.end = undefined;
    this.turned.rest();
  }
}
