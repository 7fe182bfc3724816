// View of the plane, [x, y, half its side], on a square of `size` pixels, y up: conversion to
// pixels, dragging of points and of the view.
/** @import { At } from "./types.js" */
/** @import { Place } from "../types.js" */
import { arrow, enlarged, follow, within } from "../hand.js";

/** @param {number} v */
export const rounded = (v) => Number(v.toFixed(4));

/**
 * @param {number[]} view
 * @param {number} size
 */
export function toPixels([x, y, half], size) {
  const k = size / (2 * half);
  /** @type {At} */
  const at = ([px, py]) => [(px - x + half) * k, (y + half - py) * k];
  return at;
}

/**
 * @param {number[]} view
 * @param {number} size
 */
export function fromPixels([x, y, half], size) {
  const k = (2 * half) / size;
  return (/** @type {number[]} */ [u, v]) => [x - half + u * k, y + half - v * k];
}

const CATCH = 40; // radius in pixels within which a press takes hold of a point

/**
 * Return the point nearest to a pixel, or undefined if all lie farther than `CATCH` pixels.
 *
 * @template {string} K
 * @param {readonly number[]} pixel
 * @param {Iterable<readonly [name: K, place: readonly number[]]>} places in pixels
 * @returns {K | undefined}
 */
export function caught([x, y], places) {
  let best,
    least = CATCH;
  for (const [name, [px, py]] of places) {
    const distance = Math.hypot(px - x, py - y);
    if (distance <= least) [best, least] = [name, distance];
  }
  return best;
}

// Drag a handle, by default the one under the pointer; `set` receives the place of its point,
// clamped to the view.
/**
 * @param {PointerEvent} event
 * @param {Element} plane
 * @param {{ view: number[], size: number, place: Place }} now
 * @param {(place: Place) => void} set
 * @param {(moved: boolean) => void} end
 * @param {HTMLElement} [handle]
 */
export function carry(
  event,
  plane,
  { view, size, place },
  set,
  end,
  handle = /** @type {HTMLElement} */ (event.currentTarget),
) {
  const [px, py] = within(event, plane),
    [hx, hy] = toPixels(view, size)(place),
    clip = (/** @type {number} */ v) => Math.min(Math.max(v, 0), size);
  const move = (/** @type {PointerEvent} */ e) => {
    const [x, y] = within(e, plane);
    set(fromPixels(view, size)([clip(x - px + hx), clip(y - py + hy)]).map(rounded));
  };
  event.preventDefault();
  handle.focus();
  follow(event, handle, move, end);
}

// Return the place to which an arrow key moves a point; undefined for other keys.
/**
 * @param {KeyboardEvent} event
 * @param {Place} place
 */
export function nudged(event, place, by = 0.01) {
  const step = arrow(event);
  return step && place.map((v, axis) => rounded(v + by * step[axis]));
}

// Drag the plane; `set` receives the view that keeps the same place under the pointer.
/**
 * @param {PointerEvent} event
 * @param {HTMLElement} plane
 * @param {{ view: number[], size: number }} now
 * @param {(view: number[]) => void} set
 * @param {(moved: boolean) => void} end
 */
export function pan(event, plane, { view: [x, y, half], size }, set, end) {
  const k = (2 * half) / (size * enlarged(plane)),
    { clientX, clientY } = event;
  const move = (/** @type {PointerEvent} */ e) =>
    set([x - (e.clientX - clientX) * k, y + (e.clientY - clientY) * k, half].map(rounded));
  follow(event, plane, move, end);
}

/**
 * @param {number[]} view modified in place
 * @param {number} factor below 1 zooms in
 */
export function zoom(view, factor) {
  view[2] = rounded(Math.min(Math.max(view[2] * factor, 0.05), 50));
}
