// Hit testing: what is nearest to the pointer.
import { quadtree } from "d3-quadtree";

/**
 * Return the key of the point nearest to a pixel, or undefined if all are farther than `reach`
 * pixels. Of two at the same distance the later one, which is drawn on top.
 */
export function nearest<K>(
  [x, y]: readonly number[],
  points: Iterable<readonly [key: K, pixel: readonly number[]]>,
  reach: number,
): K | undefined {
  let best: K | undefined,
    least = reach;
  for (const [key, [px, py]] of points) {
    const distance = Math.hypot(px - x, py - y);
    if (distance <= least) [best, least] = [key, distance];
  }
  return best;
}

/** Search among many points: indices into `xs` and `ys`, found in logarithmic time. */
export class PointIndex {
  private readonly tree;

  /** Points whose x or y is not a number are left out. */
  constructor(xs: ArrayLike<number>, ys: ArrayLike<number>) {
    this.tree = quadtree<number>()
      .x((i) => xs[i])
      .y((i) => ys[i])
      .addAll(Array.from(xs, (_, i) => i));
  }

  /** Return the index of the point nearest to (x, y), or undefined if none is within `reach`. */
  nearest(x: number, y: number, reach = Infinity): number | undefined {
    return this.tree.find(x, y, reach);
  }
}
