// Motion of figures, for visitors who want it.
import { still } from "../dom.ts";

/**
 * Call `step` in every frame with the share 0..1 of `ms` milliseconds that has passed, eased at
 * both ends; with reduced motion only once, with 1. Return a function that stops it.
 */
export function animate(ms: number, step: (share: number) => void, delay = 0): () => void {
  let stopped = false;
  const begin = performance.now() + delay;
  const frame = (now: number) => {
    if (stopped) return;
    const t = Math.min(Math.max((now - begin) / ms, 0), 1);
    if (t < 1) requestAnimationFrame(frame);
    step(t * t * (3 - 2 * t));
  };
  if (still()) step(1);
  else requestAnimationFrame(frame);
  return () => {
    stopped = true;
  };
}
