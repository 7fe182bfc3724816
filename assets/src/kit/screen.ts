// Canvases at the resolution of the screen, and their frame rate.

import { drawing } from "./dom.ts";
import { enlarged } from "./hand.ts";

const FEWEST = 5; // frame times needed before a rate is shown

// Set the resolution of canvases to that of the screen, in CSS pixels; skip hidden ones and those
// that already fit. Return true if any canvas changed.
export function fit(canvases: Iterable<HTMLCanvasElement>, sharpness = 0) {
  let changed = false;
  for (const canvas of canvases) {
    const { clientWidth: w, clientHeight: h } = canvas,
      scale = sharpness || finest(canvas);
    if (!w || (canvas.width === Math.round(w * scale) && canvas.height === Math.round(h * scale)))
      continue;
    canvas.width = Math.round(w * scale);
    canvas.height = Math.round(h * scale);
    drawing(canvas).setTransform(scale, 0, 0, scale, 0, 0);
    changed = true;
  }
  return changed;
}

// Return how many device pixels show one CSS pixel of an element, at most 2 times its zoom.
export const finest = (element: Element) => Math.min(devicePixelRatio || 1, 2) * enlarged(element);

// Return frames per second from recent frame times in ms, rounded; null if there are too few.
export const pace = (frameTimes: number[]) =>
  frameTimes.length < FEWEST
    ? null
    : (
        (1000 * (frameTimes.length - 1)) /
        (frameTimes[frameTimes.length - 1] - frameTimes[0])
      ).toFixed(0);
