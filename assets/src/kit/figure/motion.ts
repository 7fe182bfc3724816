// Motion of figures, for visitors who want it.
import { still } from "../dom.ts";

/** Call `step` in every frame until it returns true or the function returned is called. */
export function everyFrame(step: (now: number) => boolean): () => void {
  let request = requestAnimationFrame(function frame(now) {
    request = requestAnimationFrame(frame);
    if (step(now)) cancelAnimationFrame(request);
  });
  return () => cancelAnimationFrame(request);
}

/**
 * Call `step` in every frame with the share 0..1 of `ms` milliseconds that has passed, eased at
 * both ends; with reduced motion only once, with 1. Return a function that stops it.
 */
export function animate(ms: number, step: (share: number) => void, delay = 0): () => void {
  const begin = performance.now() + delay;
  if (still()) {
    step(1);
    return () => {};
  }
  return everyFrame((now) => {
    const t = Math.min(Math.max((now - begin) / ms, 0), 1);
    step(t * t * (3 - 2 * t));
    return t >= 1;
  });
}
