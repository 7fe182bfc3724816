// What a hand does on any page: it drags, presses arrow keys, turns the wheel with Ctrl.

/** @type {Record<string, number[]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// How much larger than its own pixels an element is shown: in a lecture all of it is.
/** @param {Element} element */
export const enlarged = (element) => element.currentCSSZoom ?? 1;

// Where in an element a pointer is, in its own pixels.
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

// Follow a pointer that went down on `target` until it is let go, or taken away from it.
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

// `act` hears every place of a pointer from where it goes down, `end` that it is let go.
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

// Where an arrow key points: [right, up], tenfold with Shift; undefined for any other key. The page
// stays where it is.
/** @param {KeyboardEvent} event */
export function arrow(event) {
  if (event.key in ARROWS) event.preventDefault();
  return ARROWS[event.key]?.map((x) => x * (event.shiftKey ? 10 : 1));
}

// Ctrl and the wheel zoom; the wheel alone scrolls the page.
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
