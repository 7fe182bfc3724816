// Rotation and zoom of the view: drag, touch and arrow keys rotate; wheel, pinch, plus and minus
// zoom.
import type { Shown, Turned } from "./types.ts";
import { within } from "../../kit/hand.ts";
import { projector } from "./cloud.ts";

const NEAR = 11,
  TOUCH = 22; // search radius around a point, px

export class Eye {
  angles: number[];
  zoom: number;
  constructor(angles: number[]) {
    this.angles = angles;
    this.zoom = 1;
  }

  turn(lon: number, lat: number) {
    this.angles = [this.angles[0] + lon, Math.min(Math.max(this.angles[1] + lat, -89), 89)];
  }
  closer(factor: number) {
    this.zoom = Math.min(Math.max(this.zoom * factor, 0.5), 8);
  }

  // Listen on a canvas; view = {canvas, frame, scene}. Calls onHover(index or null, x, y), and
  // onPick(index) on a click that did not rotate.
  attach(view: Shown, { onTurn, onHover, onPick }: Turned) {
    const { canvas, frame } = view,
      fingers: Map<number, PointerEvent> = new Map();
    let moved = 0;
    const place: (e: PointerEvent) => [number, number] = (e) => within(e, canvas);
    const nearest = (e: PointerEvent) => {
      const { scene } = view;
      if (!scene) return null;
      const at = projector(scene, scene.window, canvas.clientWidth),
        [px, py] = place(e);
      let best: number | null = null;
      let least = e.pointerType === "touch" ? TOUCH : NEAR,
        front = -Infinity;
      for (let i = 0; i < scene.labels.length; i++) {
        if (scene.highlighted?.size && !scene.highlighted.has(scene.labels[i])) continue;
        const [x, y, z] = at(i),
          d = Math.hypot(x - px, y - py);
        if (d < least - 3 || (d < least && z > front)) [best, least, front] = [i, d, z];
      }
      return best;
    };
    const hover = (e: PointerEvent) => {
      const i = nearest(e);
      frame.classList.toggle("near", i !== null);
      onHover(i, ...place(e));
    };
    canvas.addEventListener("pointerdown", (e) => {
      frame.focus({ preventScroll: true });
      canvas.setPointerCapture(e.pointerId);
      fingers.set(e.pointerId, e);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (e) => {
      const before = fingers.get(e.pointerId);
      if (!before) return hover(e);
      const dx = e.clientX - before.clientX,
        dy = e.clientY - before.clientY;
      if (fingers.size === 2) {
        const [other] = [...fingers.values()].filter((f) => f.pointerId !== e.pointerId),
          gap = (f: PointerEvent) =>
            Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
        this.closer(gap(e) / Math.max(gap(before), 1));
      } else if (view.scene?.dim === 3) this.turn(-0.45 * dx, 0.45 * dy);
      moved += Math.abs(dx) + Math.abs(dy);
      fingers.set(e.pointerId, e);
      onTurn();
    });
    const lift = (e: PointerEvent) => {
      if (!fingers.delete(e.pointerId) || e.type !== "pointerup" || moved > 4) return;
      const i = nearest(e);
      if (i !== null) onPick(i);
    };
    for (const name of ["pointerup", "pointercancel"] as const) canvas.addEventListener(name, lift);
    canvas.addEventListener("pointerleave", () => onHover(null, 0, 0));
    // Zoom by wheel only after a press on the canvas, so that scrolling the page is not
    // intercepted.
    canvas.addEventListener(
      "wheel",
      (e) => {
        if ((frame.getRootNode() as ShadowRoot).activeElement !== frame) return;
        e.preventDefault();
        this.closer(Math.exp(-e.deltaY / 500));
        onTurn();
      },
      { passive: false },
    );
    frame.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: [-6, 0], ArrowRight: [6, 0], ArrowUp: [0, 6], ArrowDown: [0, -6] }[
        e.key
      ];
      if (by && view.scene?.dim === 3) this.turn(by[0], by[1]);
      else if (e.key === "+" || e.key === "=") this.closer(1.15);
      else if (e.key === "-") this.closer(1 / 1.15);
      else return;
      e.preventDefault();
      onTurn();
    });
    frame.setAttribute(
      "aria-label",
      `${view.name}: arrow keys rotate a 3-D view, plus and minus zoom; space plays and pauses`,
    );
  }
}
