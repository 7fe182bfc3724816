// Mouse, touch and keyboard on the plane: drag points, pan, zoom, snap, hover.
import type { Fields } from "./plane.ts";
import type { Hover, FieldData } from "./types.ts";
import type { Place, Point } from "../types.ts";
import { el, show, stateOf } from "../dom.ts";
import { LETTER, POINTS, niceStep } from "../colours.ts";
import { arrow, within, zoomed } from "../hand.ts";
import { carry, caught, nudged, pan, rounded as round, zoom } from "./view.ts";

export class Hand {
  app: Fields<FieldData>;
  fingers: Map<number, number[]>;
  hover: null | Hover;
  busy: null | HTMLElement;
  canvas: HTMLCanvasElement;
  handles: Record<Point, HTMLButtonElement>;
  resting: number;
  spread: null | number;
  wanted: boolean;
  looking: boolean;

  constructor(app: Fields) {
    this.app = app;
    this.hover = null;
    this.busy = null;
    this.fingers = new Map();
  }

  attach(
    canvas: HTMLCanvasElement,
    handles: Record<Point, HTMLButtonElement>,
    ends: HTMLButtonElement[],
  ) {
    this.canvas = canvas;
    this.handles = handles;
    // Stop the moving negative as soon as the pointer moves.
    for (const kind of ["pointermove", "pointerdown"])
      this.app.frame.addEventListener(kind, () => this.app.lessons.halt(), true);
    canvas.addEventListener("pointerdown", (e) => this.background(e));
    canvas.addEventListener("pointermove", (e) => {
      if (this.busy || e.pointerType === "touch") return;
      canvas.classList.toggle("near", Boolean(this.near(e)));
      this.look(this.app.fromPixels(within(e, canvas)));
    });
    canvas.addEventListener("pointerleave", () => this.unlook());
    canvas.addEventListener("blur", () => this.unlook());
    canvas.addEventListener("keydown", (e) => this.lookByKey(e));
    zoomed(canvas, (factor) => this.zoom(factor));
    for (const name of POINTS) {
      const { get, set } = this.access(name);
      this.movable(handles[name], get, set);
    }
    ends.forEach((end, i) =>
      this.movable(
        end,
        () => this.app.scene.line.slice(2 * i, 2 * i + 2),
        (place) => {
          this.app.scene.line.splice(2 * i, 2, ...place);
        },
      ),
    );
  }

  // Return functions that read and set the place of a point.
  access(name: Point) {
    return {
      get: () => this.app.scene[name],
      set: (place: Place) => {
        this.app.scene[name] = this.snapped(name, place);
      },
    };
  }

  movable(handle: HTMLElement, get: () => Place, set: (place: Place) => void) {
    const { app } = this;
    handle.addEventListener("pointerdown", (event) => this.grab(event, handle, get, set));
    handle.addEventListener("keydown", (event) => {
      const place = nudged(event, get(), this.keyStep());
      if (!place) return;
      app.touch();
      this.applyMove(() => set(place));
      this.restSoon();
    });
  }

  grab(event: PointerEvent, handle: HTMLElement, get: () => Place, set: (place: Place) => void) {
    const { app } = this;
    app.touch();
    this.unlook();
    const now = { view: app.scene.view, size: app.size, place: get() },
      act = (place: Place) => this.applyMove(() => set(place));
    carry(event, this.canvas, now, act, this.startDrag(handle), handle);
  }

  // Return the point that a mouse press on the plane takes hold of.
  near(event: PointerEvent) {
    const { app } = this;
    return caught(
      within(event, this.canvas),
      POINTS.map((name) => [name, app.toPixels(app.scene[name])]),
    );
  }

  applyMove(act: () => void) {
    act();
    this.app.move();
  }

  // Start a drag and return the function that ends it.
  startDrag(target: HTMLElement) {
    this.busy = target;
    return (moved: boolean) => {
      this.busy = null;
      if (moved) this.app.rest();
    };
  }

  // Return the step of an arrow key: a hundredth, or, when snapping, enough to reach another
  // position.
  keyStep() {
    const { scene } = this.app;
    return {
      free: 0.01,
      grid: niceStep(2 * scene.view[2]) / 4,
      circle: 0.01,
      equilateral: 10,
      isosceles: 0.02,
    }[scene.snap];
  }

  restSoon() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.app.rest(), 250);
  }

  // ---- view: drag the background, pinch, Ctrl + wheel, buttons
  background(event: PointerEvent) {
    this.unlook();
    this.app.touch();
    if (event.pointerType === "touch") return this.pinch(event);
    const name = this.near(event);
    if (name) {
      const { get, set } = this.access(name);
      return this.grab(event, this.handles[name], get, set);
    }
    if (!this.app.pans) return undefined;
    const { scene, size } = this.app,
      set = (view: number[]) => this.applyMove(() => (this.app.scene.view = view));
    pan(event, this.canvas, { view: scene.view, size }, set, this.startDrag(this.canvas));
  }

  pinch(event: PointerEvent) {
    this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
    const forget = (e: PointerEvent) => {
      this.fingers.delete(e.pointerId);
      if (this.spread) {
        this.spread = null;
        this.app.rest();
      }
    };
    const move = (e: PointerEvent) => {
      this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
      if (this.fingers.size !== 2) return;
      const [[x0, y0], [x1, y1]] = [...this.fingers.values()],
        spread = Math.hypot(x1 - x0, y1 - y0);
      if (this.spread) {
        zoom(this.app.scene.view, this.spread / spread);
        this.app.move();
      }
      this.spread = spread;
    };
    const done = (e: PointerEvent) => {
      forget(e);
      this.canvas.removeEventListener("pointermove", move);
    };
    this.canvas.addEventListener("pointermove", move);
    for (const kind of ["pointerup", "pointercancel"] as const)
      this.canvas.addEventListener(kind, done, { once: true });
  }

  zoom(factor: number) {
    this.app.touch();
    zoom(this.app.scene.view, factor);
    this.app.move();
    this.restSoon();
  }

  fit() {
    this.app.touch();
    const { scene } = this.app,
      span = [0, 1].map((i) => {
        const v = POINTS.map((k) => scene[k][i]);
        return [Math.min(...v), Math.max(...v)];
      });
    const half = Math.max(...span.map(([a, b]) => b - a), 0.2);
    scene.view = [...span.map(([a, b]) => round((a + b) / 2)), round(1.3 * half)];
    this.app.rest();
  }

  // ---- snapping: the nearest position that satisfies the constraint
  snapped(name: Point, place: number[]) {
    const { scene } = this.app,
      [first, second] = POINTS.filter((k) => k !== name).map((k) => scene[k]);
    const nearest = (places: Place[]) =>
      places.reduce((a, b) =>
        Math.hypot(a[0] - place[0], a[1] - place[1]) <= Math.hypot(b[0] - place[0], b[1] - place[1])
          ? a
          : b,
      );
    const onCircle = ([cx, cy]: number[], radius: number) => {
      const dx = place[0] - cx,
        dy = place[1] - cy,
        d = Math.hypot(dx, dy);
      return d ? [cx + (dx / d) * radius, cy + (dy / d) * radius] : [cx + radius, cy];
    };
    const [mx, my] = [(first[0] + second[0]) / 2, (first[1] + second[1]) / 2],
      [ex, ey] = [second[0] - first[0], second[1] - first[1]],
      side = Math.hypot(ex, ey);
    const along = side ? ((place[0] - mx) * -ey + (place[1] - my) * ex) / side ** 2 : 0,
      height = Math.sqrt(3) / 2;
    const found = {
      free: () => place,
      grid: () => {
        const step = niceStep(2 * scene.view[2]) / 4;
        return place.map((v) => Math.round(v / step) * step);
      },
      circle: () => onCircle([0, 0], this.app.sphere ?? 1),
      equilateral: () =>
        nearest([
          [mx - ey * height, my + ex * height],
          [mx + ey * height, my - ex * height],
        ]),
      isosceles: () =>
        side
          ? nearest([
              [mx - ey * along, my + ex * along],
              onCircle(first, side),
              onCircle(second, side),
            ])
          : place,
    }[scene.snap]();
    return found.map(round);
  }

  // Apply the chosen snap at once: to all points on the circle, or to the scanning point of a
  // triangle.
  snapNow() {
    const { scene } = this.app;
    for (const name of ["grid", "circle"].includes(scene.snap) ? POINTS : [scene.probe])
      scene[name] = this.snapped(name, scene[name]);
    if (scene.snap === "circle")
      POINTS.forEach((name, i) => {
        // separate points that were snapped to the same place
        while (
          POINTS.slice(0, i).some(
            (k) => Math.hypot(scene[k][0] - scene[name][0], scene[k][1] - scene[name][1]) < 0.05,
          )
        ) {
          const [x, y] = scene[name],
            c = Math.cos(Math.PI / 6),
            s = Math.sin(Math.PI / 6);
          scene[name] = [c * x - s * y, s * x + c * y].map(round);
        }
      });
    this.app.rest();
  }

  // ---- numbers at a place: under the pointer, or by arrow keys on the plane
  look(place: number[]) {
    const { app } = this;
    this.wanted = true; // false after unlook: later answers are ignored
    app.link.send({ id: app.seq, hover: place.map(round), scene: app.scene, ...app.extra() });
  }

  lookByKey(event: KeyboardEvent) {
    const step = arrow(event);
    if (event.key === "Escape") return this.unlook();
    if (!step) return;
    const { view } = this.app.scene,
      by = view[2] / 75,
      from = this.hover?.at ?? view.slice(0, 2);
    this.look(
      from.map((v, i) =>
        Math.min(Math.max(v + by * step[i], view[i] - view[2]), view[i] + view[2]),
      ),
    );
    this.looking = true;
  }

  showTip(hover: Hover) {
    if (this.busy || !this.wanted) return;
    const { app } = this,
      { tip } = app,
      [x, y] = app.toPixels(hover.at),
      letter = LETTER[app.scene.probe];
    this.hover = hover;
    const rows = [
      [`${letter} here`, hover.at.map((v) => v.toFixed(3)).join(", ")],
      ["loss", show(hover.energy)],
      ["before clamp", show(hover.raw)],
      ["force", Math.hypot(...hover.force).toPrecision(4)],
      ...Object.entries(hover.edges).map(([k, v]) => [
        `d(${k.toUpperCase().split("").join(",")})`,
        v.toFixed(3),
      ]),
      ["", `${stateOf(hover)}${hover.hit ? "" : ": no force"}`],
    ];
    tip.replaceChildren(...rows.map(([k, v]) => el("div", {}, el("span", {}, k), el("b", {}, v))));
    tip.hidden = false;
    tip.style.left = `${x > app.size - 190 ? x - 176 : x + 16}px`;
    tip.style.top = `${Math.min(Math.max(y - 40, 4), app.size - 168)}px`;
    if (this.looking) {
      app.live.textContent = rows.map((r) => r.join(" ")).join("; ");
      this.looking = false;
    }
    app.invalidate();
  }

  unlook() {
    this.wanted = false;
    if (!this.hover) return;
    this.hover = null;
    this.app.tip.hidden = true;
    this.app.invalidate();
  }
}
