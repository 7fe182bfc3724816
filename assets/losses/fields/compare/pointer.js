// The hand: points, pan and zoom are one for all planes.
/** @import { Plane } from "./plane.js" */
/** @import { Compare } from "./compare.js" */
/** @import { Place, Point } from "../../../shared/types.js" */
import { fromPixels, toPixels } from "../../../shared/plane/paint.js";

/** @param {number} v */
const fixed = (v) => Number(v.toFixed(4));
/** @type {Record<string, number[]>} */
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class Hand {
  /** @type {number} */
  resting;

  /** @param {Compare} app */
  constructor(app) {
    this.app = app;
    /** @type {HTMLElement | null} */
    this.held = null;
    /** @type {Place | null} */
    this.orbiting = null; // where the negative was before it went round
  }

  view() {
    return this.app.state.view;
  }

  /** @param {Place | null} place */
  look(place) {
    if (!this.held) this.app.look(place);
  }

  // Any touch ends the first visitor's show.
  touch() {
    for (const { handles } of this.app.planes()) handles.anchor.classList.remove("pulse");
    if (!this.orbiting) return;
    this.app.state.negative = this.orbiting;
    this.orbiting = null;
  }

  /**
   * @param {PointerEvent} event
   * @param {Plane} plane
   * @param {Point} name
   */
  drag(event, plane, name) {
    event.preventDefault();
    this.touch();
    this.app.look(null);
    const { app } = this,
      handle = /** @type {HTMLElement} */ (event.currentTarget),
      box = plane.canvas.getBoundingClientRect();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    const [hx, hy] = toPixels(this.view(), plane.size)(app.state[name]),
      dx = event.clientX - box.left - hx,
      dy = event.clientY - box.top - hy;
    const clip = (/** @type {number} */ v) => Math.min(Math.max(v, 0), plane.size);
    this.follow(handle, (e) => {
      app.state[name] = fromPixels(
        this.view(),
        plane.size,
      )([clip(e.clientX - box.left - dx), clip(e.clientY - box.top - dy)]).map(fixed);
    });
  }

  /**
   * @param {PointerEvent} event
   * @param {Plane} plane
   */
  pan(event, plane) {
    if (event.pointerType === "touch") return;
    this.touch();
    plane.canvas.setPointerCapture(event.pointerId);
    const start = [...this.view()],
      k = (2 * start[2]) / plane.size,
      { clientX, clientY } = event;
    this.follow(plane.canvas, (e) => {
      this.app.state.view = [
        start[0] - (e.clientX - clientX) * k,
        start[1] + (e.clientY - clientY) * k,
        start[2],
      ].map(fixed);
    });
  }

  /**
   * @param {HTMLElement} target
   * @param {(event: PointerEvent) => void} act
   */
  follow(target, act) {
    this.held = target;
    let moved = false;
    const move = (/** @type {PointerEvent} */ e) => {
      moved = true;
      act(e);
      this.app.move();
    };
    const end = () => {
      for (const [kind, heard] of /** @type {const} */ ([
        ["pointermove", move],
        ["pointerup", end],
        ["pointercancel", end],
      ]))
        target.removeEventListener(kind, heard);
      this.held = null;
      if (moved) this.app.rest();
    };
    for (const [kind, heard] of /** @type {const} */ ([
      ["pointermove", move],
      ["pointerup", end],
      ["pointercancel", end],
    ]))
      target.addEventListener(kind, heard);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {Point} name
   */
  nudge(event, name) {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    this.touch();
    const by = event.shiftKey ? 0.1 : 0.01;
    this.app.state[name] = this.app.state[name].map((v, axis) => fixed(v + by * step[axis]));
    this.soon();
  }

  /** @param {number} factor */
  zoom(factor) {
    this.touch();
    this.app.state.view[2] = fixed(Math.min(Math.max(this.view()[2] * factor, 0.05), 50));
    this.soon();
  }

  // Move now, rest when nothing follows.
  soon() {
    this.app.move();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.app.rest(), 250);
  }

  // First seconds: the negative goes once around the pair in every plane.
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
    const step = (/** @type {number} */ now) => {
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
