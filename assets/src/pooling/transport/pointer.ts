// Mouse, touch and keyboard on the map and on the triangle (prototypes and brush).
import type { Transport } from "./transport.ts";
import type { Handle } from "./types.ts";
import { el } from "../../kit/dom.ts";
import { arrow, follow } from "../../kit/hand.ts";
import { HEIGHT, SIDE, STEPS, codeAt, frameOf, planeOf, split } from "./draw.ts";

export function paintable(canvas: HTMLCanvasElement, lab: Transport) {
  let last: number[] | null = null;
  const cellAt = (e: PointerEvent) => {
    const box = canvas.getBoundingClientRect(),
      clip = (v: number) => Math.min(Math.max(Math.floor(v * SIDE), 0), SIDE - 1);
    return [clip((e.clientX - box.left) / box.width), clip((e.clientY - box.top) / box.height)];
  };
  // Fill every cell from the last one, so that fast strokes leave no gaps.
  const stroke = (to: number[]) => {
    const from = last ?? to,
      n = Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]), 1);
    for (let k = 0; k <= n; k++)
      lab.paintCell(
        Math.round(from[0] + ((to[0] - from[0]) * k) / n),
        Math.round(from[1] + ((to[1] - from[1]) * k) / n),
      );
    last = to;
  };
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button) return;
    e.preventDefault();
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(e.pointerId);
    lab.strokeBegins();
    last = null;
    stroke(cellAt(e));
  });
  canvas.addEventListener("pointermove", (e) => {
    const at = cellAt(e);
    if (canvas.hasPointerCapture(e.pointerId) && last)
      for (const one of e.getCoalescedEvents?.() ?? [e]) stroke(cellAt(one));
    lab.look(at[0] + SIDE * at[1]);
  });
  const end = () => {
    if (last) {
      last = null;
      lab.strokeEnds();
    }
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    if (!last) lab.look(null);
  });
  canvas.addEventListener("focus", () => {
    if (canvas.matches(":focus-visible")) lab.look(lab.cursor, true);
  });
  canvas.addEventListener("blur", () => lab.look(null));
  canvas.addEventListener("keydown", (e) => {
    const [right, up] = arrow(e)?.map(Math.sign) ?? [];
    if (right !== undefined) {
      const x = Math.min(Math.max((lab.cursor % SIDE) + right, 0), SIDE - 1),
        y = Math.min(Math.max(Math.floor(lab.cursor / SIDE) - up, 0), SIDE - 1);
      lab.cursor = x + SIDE * y;
      if (e.shiftKey) {
        lab.strokeBegins();
        lab.paintCell(x, y);
        lab.strokeEnds();
      }
      lab.look(lab.cursor, true);
    } else if (e.key === " " || e.key === "Enter") {
      lab.strokeBegins();
      lab.paintCell(lab.cursor % SIDE, Math.floor(lab.cursor / SIDE));
      lab.strokeEnds();
    } else if ("123".includes(e.key)) lab.brushes[Number(e.key) - 1].click();
    else return;
    e.preventDefault();
  });
}

// Show values under the pointer of a weight map.
export function lookable(canvas: HTMLCanvasElement, lab: Transport) {
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect(),
      clip = (v: number) => Math.min(Math.max(Math.floor(v * SIDE), 0), SIDE - 1);
    lab.look(
      clip((e.clientX - box.left) / box.width) + SIDE * clip((e.clientY - box.top) / box.height),
    );
  });
  canvas.addEventListener("pointerleave", () => lab.look(null));
}

// Return the code that an arrow key moves to, within the triangle: one step sideways, or up by two
// steps of background, which keeps the horizontal position.
function nudged(code: number, [right, up]: number[]) {
  const [x, y] = planeOf(code);
  return codeAt([x + right / STEPS, y + (2 * HEIGHT * up) / STEPS]);
}

// Add a handle to the triangle: `get` and `set` access its code, `rest` is called at the end of a
// drag, `remove` by the delete key.
export function handle(
  name: string,
  label: () => string,
  lab: Transport,
  { get, set, rest, remove }: Handle,
) {
  const node = el("button", { class: `pin ${name}`, "data-handle": name });
  const canvas = () => lab.plane;
  let resting = 0;
  node.addEventListener("pointerdown", (e) => {
    e.preventDefault();
    e.stopPropagation();
    node.focus({ preventScroll: true });
    const box = canvas().getBoundingClientRect(),
      frame = frameOf(box.width, box.height);
    const move = (m: PointerEvent) =>
      set(codeAt(frame.from([m.clientX - box.left, m.clientY - box.top])));
    follow(e, node, move, rest);
  });
  node.addEventListener("keydown", (e) => {
    const step = arrow(e);
    if (step) {
      set(nudged(get(), step));
      clearTimeout(resting);
      resting = setTimeout(rest, 250);
    } else if ((e.key === "Delete" || e.key === "Backspace") && remove) remove();
    else return;
    e.preventDefault();
  });
  const place = (w: number, h: number) => {
    const [x, y] = frameOf(w, h).to(planeOf(get())),
      [red, blue] = split(get());
    node.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
    node.setAttribute(
      "aria-label",
      `${label()}: red ${(red / STEPS).toFixed(3)}, blue ${(blue / STEPS).toFixed(3)}, background ${((STEPS - red - blue) / STEPS).toFixed(3)}; arrow keys move it${remove ? ", delete removes it" : ""}`,
    );
  };
  return { node, place };
}
