// Mouse, touch and keyboard on the map.
import type { MapView } from "./explore.ts";
import { within } from "../../kit/hand.ts";

export type Pinch = { distance: number; middle: number[] };
export interface Grip {
  from: [number, number];
  x: number;
  y: number;
  moved: boolean;
  draws: boolean;
  add: boolean;
  pinch?: Pinch;
}

const REACH = 14,
  NOTCH = 1.0015,
  STEP = 1.4;

export function listen(map: MapView) {
  const { canvas, camera } = map,
    fingers = new Map();
  let grip: Grip | null = null;
  const place = (e: MouseEvent): [number, number] => within(e, canvas);
  const still = {
    from: [0, 0] as [number, number],
    x: 0,
    y: 0,
    moved: false,
    draws: false,
    add: false,
  };
  const under = (e: MouseEvent) => map.pick(...place(e), REACH);

  canvas.addEventListener("pointerdown", (e) => {
    if (e.button) return;
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(e.pointerId);
    fingers.set(e.pointerId, place(e));
    if (fingers.size === 2) {
      grip = { ...still, pinch: apart(fingers) };
      map.line = null;
      return;
    }
    const from = place(e),
      draws = map.tool === "lasso" || e.shiftKey;
    grip = { from, x: camera.x, y: camera.y, moved: false, draws, add: e.shiftKey };
  });

  canvas.addEventListener("pointermove", (e) => {
    const [px, py] = place(e);
    if (fingers.has(e.pointerId)) fingers.set(e.pointerId, [px, py]);
    if (!grip) return map.tool === "lasso" && e.shiftKey ? undefined : map.hover(under(e));
    if (grip.pinch) {
      if (fingers.size < 2) return;
      const now = apart(fingers);
      camera.closer(now.distance / grip.pinch.distance, now.middle[0], now.middle[1]);
      camera.look(
        camera.x - (now.middle[0] - grip.pinch.middle[0]) / camera.scale,
        camera.y + (now.middle[1] - grip.pinch.middle[1]) / camera.scale,
      );
      grip.pinch = now;
      return map.onCameraMove();
    }
    grip.moved ||= Math.hypot(px - grip.from[0], py - grip.from[1]) > 4;
    if (!grip.moved) return;
    if (grip.draws) {
      map.line ??= [camera.place(...grip.from)];
      const [u, v] = map.line[map.line.length - 1],
        [x, y] = camera.pixels(u, v);
      if (Math.hypot(px - x, py - y) >= 3) map.line.push(camera.place(px, py));
      map.hover(-1);
      return map.foresee(grip.add);
    }
    camera.look(
      grip.x - (px - grip.from[0]) / camera.scale,
      grip.y + (py - grip.from[1]) / camera.scale,
    );
    map.onCameraMove();
  });

  const end = (e: PointerEvent) => {
    fingers.delete(e.pointerId);
    if (!grip || fingers.size) return;
    const { moved, draws, add, pinch } = grip;
    grip = null;
    if (pinch || e.type === "pointercancel") {
      map.line = null;
      return map.foresee(false);
    }
    if (!moved) return map.open(under(e));
    if (draws) map.enclose(add);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    if (!grip) map.hover(-1);
  });
  canvas.addEventListener("dblclick", () => {
    camera.showAll();
    map.onCameraMove();
  });
  canvas.addEventListener(
    "wheel",
    (e) => {
      // when the whole map is in view, the wheel scrolls the page
      if (camera.zoom <= 1 && e.deltaY > 0 && !e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      camera.closer(NOTCH ** -(e.deltaMode ? 40 * e.deltaY : e.deltaY), ...place(e));
      map.onCameraMove();
    },
    { passive: false },
  );

  canvas.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
      e.key
    ];
    if (arrow) map.step(arrow);
    else if (e.key === "Enter") map.open(map.hovered, true);
    else if (e.key === " ") map.toggle(map.hovered);
    else if (e.key === "+" || e.key === "=") map.zoom(STEP);
    else if (e.key === "-") map.zoom(1 / STEP);
    else if (e.key === "0") {
      camera.showAll();
      map.onCameraMove();
    } else if (e.key === "l") map.take("lasso");
    else if (e.key === "m") map.take("move");
    else if (e.key === "Escape") {
      map.line = null;
      map.foresee(false);
      map.close_card();
      map.hover(-1);
    } else return;
    e.preventDefault();
  });
}

function apart(fingers: Map<number, number[]>) {
  const [[x, y], [u, v]] = [...fingers.values()];
  return { distance: Math.max(1, Math.hypot(u - x, v - y)), middle: [(x + u) / 2, (y + v) / 2] };
}
