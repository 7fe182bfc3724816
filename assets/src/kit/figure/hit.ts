// Hit testing: the point nearest to the pointer.

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
