// Input common to all pages: dragging and arrow keys.

const ARROWS: Record<string, number[]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

// Return the CSS zoom of an element, which presentation mode increases.
export const enlarged = (element: Element) => element.currentCSSZoom ?? 1;

// Return the position of a pointer within an element, in the element's own pixels.
export function within(
  { clientX, clientY }: { clientX: number; clientY: number },
  element: Element,
): [number, number] {
  const { left, top } = element.getBoundingClientRect(),
    scale = enlarged(element);
  return [(clientX - left) / scale, (clientY - top) / scale];
}

// Follow a pointer that went down on `target` until it is released or cancelled (the browser took
// the gesture over, for example to scroll).
export function follow(
  { pointerId }: PointerEvent,
  target: HTMLElement,
  move: (event: PointerEvent) => void,
  end: (moved: boolean, cancelled: boolean) => void,
) {
  const released = new AbortController();
  let moved = false;
  const moving = (e: PointerEvent) => {
    moved = true;
    move(e);
  };
  const stop = ({ type }: Event) => {
    released.abort();
    end(moved, type === "pointercancel");
  };
  target.setPointerCapture(pointerId);
  target.addEventListener("pointermove", moving, released);
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"] as const)
    target.addEventListener(kind, stop, released);
}

// Call `act` for every position of a pressed pointer and `end` on release.
export function scrubbed(target: HTMLElement, act: (event: PointerEvent) => void, end: () => void) {
  target.addEventListener("pointerdown", (event) => {
    act(event);
    follow(event, target, act, end);
  });
}

// Return the direction of an arrow key as [right, up], tenfold with Shift; undefined for other
// keys. Prevents scrolling.
export function arrow(event: KeyboardEvent) {
  if (event.key in ARROWS) event.preventDefault();
  return ARROWS[event.key]?.map((x) => x * (event.shiftKey ? 10 : 1));
}
