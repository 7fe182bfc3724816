// Input common to all pages: dragging, arrow keys, zooming with Ctrl and the wheel.

/** @type {Record<string, number[]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// Return the CSS zoom of an element, which presentation mode increases.
/** @param {Element} element */
export const enlarged = (element) => element.currentCSSZoom ?? 1;

// Return the position of a pointer within an element, in the element's own pixels.
/**
 * @param {{ clientX: number, clientY: number }} pointer
 * @param {Element} element
 * @returns {[number, number]}
 */
export function within({ clientX, clientY }, element) {
  const { left, top } = element.getBoundingClientRect(),
    scale = enlarged(element);
  return [(clientX - left) / scale, (clientY - top) / scale];
}

// Follow a pointer that went down on `target` until it is released or cancelled.
/**
 * @param {PointerEvent} event
 * @param {HTMLElement} target
 * @param {(event: PointerEvent) => void} move
 * @param {(moved: boolean) => void} end
 */
export function follow({ pointerId }, target, move, end) {
  const released = new AbortController();
  let moved = false;
  const moving = (/** @type {PointerEvent} */ e) => {
    moved = true;
    move(e);
  };
  const stop = () => {
    released.abort();
    end(moved);
  };
  target.setPointerCapture(pointerId);
  target.addEventListener("pointermove", moving, released);
  for (const kind of /** @type {const} */ (["pointerup", "pointercancel", "lostpointercapture"]))
    target.addEventListener(kind, stop, released);
}

// Call `act` for every position of a pressed pointer and `end` on release.
/**
 * @param {HTMLElement} target
 * @param {(event: PointerEvent) => void} act
 * @param {() => void} end
 */
export function scrubbed(target, act, end) {
  target.addEventListener("pointerdown", (event) => {
    act(event);
    follow(event, target, act, end);
  });
}

// Return the direction of an arrow key as [right, up], tenfold with Shift; undefined for other
// keys. Prevents scrolling.
/** @param {KeyboardEvent} event */
export function arrow(event) {
  if (event.key in ARROWS) event.preventDefault();
  return ARROWS[event.key]?.map((x) => x * (event.shiftKey ? 10 : 1));
}

// Zoom with Ctrl and the wheel; the wheel alone scrolls the page.
/**
 * @param {HTMLElement} target
 * @param {(factor: number) => void} zoom
 */
export function zoomed(target, zoom) {
  const turn = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(1.0015 ** event.deltaY);
  };
  target.addEventListener("wheel", turn, { passive: false });
}
