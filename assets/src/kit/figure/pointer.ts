// Mouse, touch and keys on the canvas of a figure: take a handle, move, zoom, pinch, hover, open.
import type { Handles, Host } from "./handles.ts";
import type { At, Drag, FigureSpec } from "./spec.ts";
import { arrow, follow, within } from "../hand.ts";
import { panned, zoomed } from "./view.ts";

const NOTCH = 1.0015, // zoom for each unit of the wheel
  STEP = 1.25, // of + and −, and of the buttons
  STRIDE = 150, // steps of the cursor across the canvas
  CLICK = 4; // pixels that a click may move

/** Parts of a figure that its pointer uses, in addition to those for handles. */
export interface PointerHost extends Host {
  busy: HTMLElement | null;
  cursor: At | null; // where the pointer or the arrow keys look
  look(at: At | null): void;
}

/** Zoom a figure's plane by a factor (below 1: closer), about a pixel where its spec says so. */
export function zoomBy(host: Host, spec: FigureSpec<never>, factor: number, pixel?: number[]) {
  const { window } = host.view;
  if (!window || !spec.setView) return;
  const about = spec.zoom?.about === "pointer" && pixel ? host.view.from(pixel) : undefined;
  spec.setView(zoomed(window, factor, spec.zoom, about));
}

/** Listen to mouse, touch and keys on the canvas of a figure. */
export function listen<Hit>(host: PointerHost, spec: FigureSpec<Hit>, handles: Handles): void {
  const { canvas } = host,
    fingers = new Map<number, [number, number]>();
  let pair = { spread: 1, middle: [0, 0] }, // of two fingers: pixels between them, their middle
    released: ((moved: boolean) => void) | undefined;

  const locate = (event: PointerEvent): At => {
    const pixel = within(event, canvas);
    const by = event.pointerType === "touch" ? "touch" : "mouse";
    return { pixel, place: host.view.from(pixel), by, event };
  };
  const zoom = (factor: number, pixel?: number[]) =>
    host.nudge(() => zoomBy(host, spec as FigureSpec<never>, factor, pixel));

  // Follow a drag of the figure's own; a press that moves nothing opens what is under it.
  const run = (event: PointerEvent, drag: Drag) => {
    const end = host.gesture(canvas);
    let last = locate(event);
    const first = last.pixel;
    const move = (e: PointerEvent) => {
      const at = locate(e);
      // a second finger zooms
      if (fingers.size < 2)
        drag.move(at, [at.pixel[0] - last.pixel[0], at.pixel[1] - last.pixel[1]]);
      last = at;
      host.changed();
    };
    follow(event, canvas, move, (moved, cancelled) => {
      drag.end?.(last, moved, cancelled);
      end(moved);
      if (!cancelled && Math.hypot(last.pixel[0] - first[0], last.pixel[1] - first[1]) < CLICK)
        open(last);
    });
  };
  const open = (at: At) => {
    const hit = spec.hit?.(at);
    if (hit !== null && hit !== undefined) spec.open?.(hit, at);
  };
  const pan = (): Drag => {
    let start = host.view,
      [x, y] = [0, 0];
    return {
      move(_, [dx, dy]) {
        const { view } = host;
        if (view.scale !== start.scale) [start, x, y] = [view, 0, 0]; // zoomed by two fingers
        [x, y] = [x + dx, y + dy];
        spec.setView?.(panned(start, x, y));
      },
    };
  };

  const measure = () => {
    const [[x0, y0], [x1, y1]] = [...fingers.values()];
    return {
      spread: Math.max(Math.hypot(x1 - x0, y1 - y0), 1),
      middle: [(x0 + x1) / 2, (y0 + y1) / 2],
    };
  };
  // Two fingers zoom and move; with `touch: "all"` one finger acts like the mouse.
  const finger = (event: PointerEvent) => {
    fingers.set(event.pointerId, within(event, canvas));
    if (fingers.size === 2) pair = measure();
    const lifted = new AbortController();
    const move = (e: PointerEvent) => {
      if (e.pointerId !== event.pointerId) return;
      fingers.set(e.pointerId, within(e, canvas));
      if (fingers.size !== 2) return;
      const { spread, middle } = pair;
      pair = measure();
      released ??= host.gesture(canvas);
      const [dx, dy] = pair.middle.map((v, i) => v - middle[i]);
      if (host.view.window) spec.setView?.(panned(host.view, dx, dy, spec.zoom?.digits));
      zoomBy(host, spec as FigureSpec<never>, spread / pair.spread, pair.middle);
      host.changed();
    };
    const lift = (e: PointerEvent) => {
      if (e.pointerId !== event.pointerId) return;
      fingers.delete(e.pointerId);
      lifted.abort();
      if (fingers.size === 2) pair = measure();
      released?.(true);
      released = undefined;
    };
    canvas.addEventListener("pointermove", move, lifted);
    for (const kind of ["pointerup", "pointercancel", "lostpointercapture"] as const)
      canvas.addEventListener(kind, lift, lifted);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    host.look(null);
    const at = locate(event);
    if (at.by === "touch") {
      finger(event);
      if (fingers.size > 1) return;
      if (spec.touch !== "all") {
        spec.change?.("start");
        return;
      }
    }
    const drag = spec.press?.(at);
    if (drag) return run(event, drag);
    const handle = handles.near(at.pixel);
    if (handle) return handles.drag(event, handle);
    if (spec.setView && host.view.window) return run(event, pan());
    if (spec.open) return run(event, { move() {} });
    spec.change?.("start");
  });
  canvas.addEventListener("click", (event) => {
    const isTap = (event as PointerEvent).pointerType === "touch";
    if (isTap && spec.touch !== "all") open(locate(event as PointerEvent));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (host.busy || event.buttons || event.pointerType === "touch") return;
    const at = locate(event),
      hit = spec.hit?.(at);
    canvas.classList.toggle("near", Boolean(handles.near(at.pixel)) || (hit ?? null) !== null);
    host.look(at);
  });
  for (const kind of ["pointerleave", "blur"]) canvas.addEventListener(kind, () => host.look(null));
  canvas.addEventListener(
    "wheel",
    (event) => {
      const wheel = spec.zoom?.wheel,
        wanted = typeof wheel === "function" ? wheel(event) : wheel === "always";
      if (!spec.setView || !(event.ctrlKey || event.metaKey || wanted)) return;
      event.preventDefault();
      zoom(NOTCH ** (event.deltaMode ? 40 * event.deltaY : event.deltaY), within(event, canvas));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    if (spec.key?.(event)) return event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") host.look(null);
    else if (event.key === "Enter" && host.cursor) open(host.cursor);
    else if (spec.setView && (event.key === "+" || event.key === "=")) zoom(1 / STEP);
    else if (spec.setView && event.key === "-") zoom(STEP);
    else if (spec.hover) return lookByKey(event);
  });
  // Move the place that is described by the arrow keys.
  const lookByKey = (event: KeyboardEvent) => {
    const step = arrow(event);
    if (!step) return;
    const { area, to, from, width } = host.view,
      stride = width / STRIDE,
      clip = (v: number, low: number, high: number) => Math.min(Math.max(v, low), high);
    const middle = [(area.left + area.right) / 2, (area.top + area.bottom) / 2],
      [x, y] = host.cursor ? to(host.cursor.place) : middle;
    const pixel: [number, number] = [
      clip(x + stride * step[0], area.left, area.right),
      clip(y - stride * step[1], area.top, area.bottom),
    ];
    host.look({ place: from(pixel), pixel, by: "keys" });
  };
}
