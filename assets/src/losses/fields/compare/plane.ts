// One plane of the comparison: canvas, three handles, the place under the pointer. Painting is
// shared with the Fields page.
import type { Hand } from "./pointer.ts";
import type { Comparison } from "./types.ts";
import type { Painted, Scene } from "../../../kit/plane/types.ts";
import type { Place, Point, Theme } from "../../../kit/types.ts";
import { pointHandles } from "../../../kit/points.ts";
import { drawing, el, tidy } from "../../../kit/dom.ts";
import { INK, POINTS } from "../../../kit/colours.ts";
import { within, zoomed } from "../../../kit/hand.ts";
import { paint, rasterise } from "../../../kit/plane/paint.ts";
import { fit } from "../../../kit/screen.ts";
import { fromPixels, rounded, toPixels } from "../../../kit/plane/view.ts";

export class Plane {
  canvas: HTMLCanvasElement;
  cross: HTMLElement;
  chip: HTMLSpanElement;
  handles: Record<Point, HTMLButtonElement>;
  frame: HTMLDivElement;
  hand: Hand;
  size: number;
  context: CanvasRenderingContext2D;
  field: Painted;
  rasters: { colour: OffscreenCanvas | undefined; veil: OffscreenCanvas | undefined };

  constructor(label: string, hand: Hand, { first = false } = {}) {
    this.canvas = el("canvas", { class: "plane", role: "img", "aria-label": label });
    this.cross = el("i", { class: "cross", style: "display:none" });
    this.chip = el("span", { class: "chip", style: "display:none" });
    this.handles = pointHandles("; it moves in all planes", { tabindex: first ? 0 : -1 });
    this.frame = el(
      "div",
      { class: "frame" },
      this.canvas,
      this.cross,
      this.chip,
      ...Object.values(this.handles),
    );
    this.hand = hand;
    for (const kind of ["pointermove", "pointerdown"])
      this.frame.addEventListener(kind, () => hand.halt(), true);
    this.canvas.addEventListener("pointerdown", (e) => hand.pan(e, this));
    zoomed(this.canvas, (factor) => hand.zoom(factor));
    this.canvas.addEventListener("pointermove", (e) => {
      if (!e.buttons && e.pointerType !== "touch") hand.look(this.place(e));
    });
    this.canvas.addEventListener("pointerleave", () => hand.look(null));
    for (const name of POINTS) {
      const handle = this.handles[name];
      handle.addEventListener("pointerdown", (e) => hand.drag(e, this, name));
      handle.addEventListener("keydown", (e) => hand.nudge(e, name));
    }
  }

  place(event: PointerEvent) {
    return fromPixels(this.hand.view(), this.size)(within(event, this.canvas)).map(rounded);
  }

  // Fit the canvas; return true if its size changed.
  resize() {
    if (!fit([this.canvas])) return false;
    this.size = this.canvas.clientWidth;
    this.context = drawing(this.canvas);
    return true;
  }

  // Return the rasters of an answer, created once; signed values have their zero at 128.
  receive(field: Painted, theme: Theme) {
    this.field = field;
    this.rasters = rasterise(field, theme, field.signed);
  }

  paint(scene: Scene & { circle: boolean }, theme: Theme) {
    if (!this.size) return;
    this.context.clearRect(0, 0, this.size, this.size);
    paint(this.context, this.size, scene, this.field, this.rasters, theme);
    if (scene.circle) this.circle(scene, theme);
  }

  circle(scene: Scene & { circle: boolean }, theme: Theme) {
    const [x, y] = toPixels(scene.view, this.size)([0, 0]),
      ctx = this.context;
    ctx.lineWidth = 1.5;
    ctx.strokeStyle = INK[theme].disc;
    ctx.setLineDash([2, 4]);
    ctx.beginPath();
    ctx.arc(x, y, this.size / (2 * scene.view[2]), 0, 2 * Math.PI);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  sync(scene: Comparison) {
    if (!this.size) return;
    const at = toPixels(scene.view, this.size);
    for (const name of POINTS) {
      const [x, y] = at(scene[name]),
        handle = this.handles[name];
      handle.style.left = `${x}px`;
      handle.style.top = `${y}px`;
      handle.setAttribute("aria-label", `${name} at ${scene[name].map(tidy).join(", ")}`);
    }
  }

  look(place: Place | null, view: Place, text: string) {
    const shown = place && this.size;
    this.cross.style.display = this.chip.style.display = shown ? "" : "none";
    if (!place || !shown) return;
    const [x, y] = toPixels(view, this.size)(place);
    this.cross.style.transform = `translate(${x}px, ${y}px)`;
    this.chip.textContent = text;
  }
}
