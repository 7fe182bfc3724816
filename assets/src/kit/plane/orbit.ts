// The way of the negative around the pair, which shows visitors that the forces turn.
import type { Place, Point } from "../types.ts";

/**
 * Return the place of the negative after a share 0..1 of a turn around the middle of anchor and
 * positive; a full turn ends exactly where it began.
 */
export function orbitOf({ anchor, positive, negative }: Record<Point, Place>) {
  const home = [...negative],
    [x, y] = [0, 1].map((i) => (anchor[i] + positive[i]) / 2),
    radius = Math.hypot(home[0] - x, home[1] - y),
    from = Math.atan2(home[1] - y, home[0] - x);
  return (share: number): Place => {
    const angle = from + 2 * Math.PI * share;
    return share % 1 ? [x + radius * Math.cos(angle), y + radius * Math.sin(angle)] : home;
  };
}
