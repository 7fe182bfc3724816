// Canvases as sharp as the screen, and how fast they are painted.

import { drawing } from "./dom.js";
import { enlarged } from "./hand.js";

const FEWEST = 5; // frameTimes before a pace is told

// Canvases as sharp as the screen, drawn in CSS pixels; those that fit already, or are not shown,
// stay as they are. Returns whether any has changed.
/** @param {Iterable<HTMLCanvasElement>} canvases */
export function fit(canvases, sharpness = 0) {
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

// How many pixels of the screen, but not more than one sees, show a CSS pixel of an element.
/** @param {Element} element */
export const finest = (element) => Math.min(devicePixelRatio || 1, 2) * enlarged(element);

// Laps a second from the times (ms) of the last ones, as a whole number; null while there are too
// few.
/** @param {number[]} frameTimes */
export const pace = (frameTimes) =>
  frameTimes.length < FEWEST
    ? null
    : (
        (1000 * (frameTimes.length - 1)) /
        (frameTimes[frameTimes.length - 1] - frameTimes[0])
      ).toFixed(0);
