// Mouse, touch and keys on the canvas of a figure: take a handle, move, zoom, pinch, hover, open.
import type { Handles, Host } from "./handles.ts";
import type { At, Drag, FigureSpec } from "./spec.ts";
import { arrow, follow, within } from "../hand.ts";
import { panned, zoomed } from "./view.ts";

const NOTCH = 1.0015, // zoom for each unit of the wheel
  STEP = 1.25, // of + and −, and of the buttons
  STRIDE = 150, // steps of the cursor across the canvas
  CLICK = 4; // pixels that a click may move

/** What the pointer needs of its figure, in addition to what its handles need. */
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
  let spread = 0, // pixels between two fingers at the last move
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
      drag.move(at, [at.pixel[0] - last.pixel[0], at.pixel[1] - last.pixel[1]]);
      last = at;
      host.changed();
    };
    follow(event, canvas, move, (moved) => {
      drag.end?.(last, moved);
      end(moved);
      if (Math.hypot(last.pixel[0] - first[0], last.pixel[1] - first[1]) < CLICK) open(last);
    });
  };
  const open = (at: At) => {
    const hit = spec.hit?.(at);
    if (hit !== null && hit !== undefined) spec.open?.(hit, at);
  };
  const pan = (): Drag => {
    const start = host.view;
    let [x, y] = [0, 0];
    return {
      move(_, [dx, dy]) {
        [x, y] = [x + dx, y + dy];
        spec.setView?.(panned(start, x, y));
      },
    };
  };

  // Two fingers zoom; with `touch: "all"` one finger acts like the mouse.
  const finger = (event: PointerEvent) => {
    fingers.set(event.pointerId, within(event, canvas));
    const lifted = new AbortController();
    const move = (e: PointerEvent) => {
      if (e.pointerId !== event.pointerId) return;
      fingers.set(e.pointerId, within(e, canvas));
      if (fingers.size !== 2) return;
      const [[x0, y0], [x1, y1]] = [...fingers.values()],
        now = Math.max(Math.hypot(x1 - x0, y1 - y0), 1);
      if (spread) {
        released ??= host.gesture(canvas);
        zoomBy(host, spec as FigureSpec<never>, spread / now, [(x0 + x1) / 2, (y0 + y1) / 2]);
        host.changed();
      }
      spread = now;
    };
    const lift = (e: PointerEvent) => {
      if (e.pointerId !== event.pointerId) return;
      fingers.delete(e.pointerId);
      lifted.abort();
      spread = 0;
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
