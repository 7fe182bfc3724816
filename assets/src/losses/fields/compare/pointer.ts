// Gestures: points, pan and zoom are shared by all planes.
import type { Plane } from "./plane.ts";
import type { Compare } from "./compare.ts";
import type { Comparison } from "./types.ts";
import type { Place, Point } from "../../../kit/types.ts";
import { carry, caught, nudged, pan, rounded, toPixels, zoom } from "../../../kit/plane/view.ts";
import { POINTS } from "../../../kit/colours.ts";
import { within } from "../../../kit/hand.ts";

export class Hand {
  app: Compare;
  held: HTMLElement | null;
  orbiting: Place | null;
  constructor(app: Compare) {
    this.app = app;
    this.held = null;
    this.orbiting = null; // place of the negative before it circled
  }

  view() {
    return this.app.state.view;
  }

  look(place: Place | null) {
    if (!this.held) this.app.look(place);
  }

  // Stop the opening animation at any input.
  touch() {
    for (const { handles } of this.app.planes()) handles.anchor.classList.remove("pulse");
    if (!this.orbiting) return;
    this.app.state.negative = this.orbiting;
    this.orbiting = null;
  }

  // Stop the negative where it is, so that it can be dragged.
  halt() {
    if (!this.orbiting) return;
    this.orbiting = this.app.state.negative.map(rounded);
    this.touch();
    this.app.rest();
  }

  drag(event: PointerEvent, plane: Plane, name: Point) {
    this.touch();
    this.app.look(null);
    const { state } = this.app,
      now = { view: state.view, size: plane.size, place: state[name] },
      handle = plane.handles[name],
      set = (place: Place) => this.applyMove({ [name]: place });
    carry(event, plane.canvas, now, set, this.startDrag(handle), handle);
  }

  pan(event: PointerEvent, plane: Plane) {
    if (event.pointerType === "touch") return;
    const at = toPixels(this.view(), plane.size),
      near = caught(
        within(event, plane.canvas),
        POINTS.map((name) => [name, at(this.app.state[name])]),
      );
    if (near) {
      this.drag(event, plane, near);
      return;
    }
    this.touch();
    const now = { view: this.view(), size: plane.size };
    pan(event, plane.canvas, now, (view) => this.applyMove({ view }), this.startDrag(plane.canvas));
  }

  applyMove(what: Partial<Comparison>) {
    Object.assign(this.app.state, what);
    this.app.move();
  }

  // Start a drag and return the function that ends it.
  startDrag(target: HTMLElement) {
    this.held = target;
    return (moved: boolean) => {
      this.held = null;
      if (moved) this.app.rest();
    };
  }

  nudge(event: KeyboardEvent, name: Point) {
    const place = nudged(event, this.app.state[name]);
    if (!place) return;
    this.touch();
    this.app.state[name] = place;
    this.soon();
  }

  zoom(factor: number) {
    this.touch();
    zoom(this.view(), factor);
    this.soon();
  }

  // Move now; end the gesture when no key follows.
  soon() {
    this.app.move();
    this.app.restSoon();
  }

  // Move the negative once around the pair in every plane, as an opening animation.
  orbit() {
    const { app } = this;
    app.cards[0].plane.handles.anchor.classList.add("pulse");
    const home = [...app.state.negative],
      { anchor, positive } = app.state,
      centre = [0, 1].map((i) => (anchor[i] + positive[i]) / 2);
    const radius = Math.hypot(home[0] - centre[0], home[1] - centre[1]),
      from = Math.atan2(home[1] - centre[1], home[0] - centre[0]);
    this.orbiting = home;
    const begin = performance.now() + 600;
    const step = (now: number) => {
      if (this.orbiting !== home) return;
      const t = Math.min(Math.max((now - begin) / 6000, 0), 1),
        angle = from + 2 * Math.PI * (t * t * (3 - 2 * t));
      app.state.negative =
        t < 1 ? [centre[0] + radius * Math.cos(angle), centre[1] + radius * Math.sin(angle)] : home;
      if (t >= 1) this.orbiting = null;
      if (t < 1) {
        app.move();
        requestAnimationFrame(step);
      } else app.rest();
    };
    requestAnimationFrame(step);
  }
}
