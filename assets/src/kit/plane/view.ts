// View of the plane, [x, y, half its side], on a square of `size` pixels, y up: conversion to
// pixels, dragging of points and of the view.
import type { At } from "./types.ts";
import type { Place } from "../types.ts";
import { arrow, enlarged, follow, within } from "../hand.ts";

export const rounded = (v: number) => Number(v.toFixed(4));

export function toPixels([x, y, half]: number[], size: number) {
  const k = size / (2 * half);
  const at: At = ([px, py]) => [(px - x + half) * k, (y + half - py) * k];
  return at;
}

export function fromPixels([x, y, half]: number[], size: number) {
  const k = (2 * half) / size;
  return ([u, v]: number[]) => [x - half + u * k, y + half - v * k];
}

const CATCH = 40; // radius in pixels within which a press takes hold of a point

// Return the point nearest to a pixel, or undefined if all lie farther than `CATCH` pixels.
// places: in pixels
export function caught<K extends string>(
  [x, y]: readonly number[],
  places: Iterable<readonly [name: K, place: readonly number[]]>,
): K | undefined {
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
export function carry(
  event: PointerEvent,
  plane: Element,
  { view, size, place }: { view: number[]; size: number; place: Place },
  set: (place: Place) => void,
  end: (moved: boolean) => void,
  handle: HTMLElement = event.currentTarget as HTMLElement,
) {
  const [px, py] = within(event, plane),
    [hx, hy] = toPixels(view, size)(place),
    clip = (v: number) => Math.min(Math.max(v, 0), size);
  const move = (e: PointerEvent) => {
    const [x, y] = within(e, plane);
    set(fromPixels(view, size)([clip(x - px + hx), clip(y - py + hy)]).map(rounded));
  };
  event.preventDefault();
  handle.focus();
  follow(event, handle, move, end);
}

// Return the place to which an arrow key moves a point; undefined for other keys.
export function nudged(event: KeyboardEvent, place: Place, by = 0.01) {
  const step = arrow(event);
  return step && place.map((v, axis) => rounded(v + by * step[axis]));
}

// Drag the plane; `set` receives the view that keeps the same place under the pointer.
export function pan(
  event: PointerEvent,
  plane: HTMLElement,
  { view: [x, y, half], size }: { view: number[]; size: number },
  set: (view: number[]) => void,
  end: (moved: boolean) => void,
) {
  const k = (2 * half) / (size * enlarged(plane)),
    { clientX, clientY } = event;
  const move = (e: PointerEvent) =>
    set([x - (e.clientX - clientX) * k, y + (e.clientY - clientY) * k, half].map(rounded));
  follow(event, plane, move, end);
}

// view: modified in place
// factor: below 1 zooms in
export function zoom(view: number[], factor: number) {
  view[2] = rounded(Math.min(Math.max(view[2] * factor, 0.05), 50));
}
