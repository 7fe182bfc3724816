// Description of the clamp, and placement of the numbers at force arrows.
import { tidy } from "../dom.ts";

export type Spot = { left: number; top: number; align: CanvasTextAlign };
export type Rect = { left: number; top: number; right: number; bottom: number };

// Return the position of an arrow's number: beyond its tip, or at the side of the arrow if the
// frame, a point, another number or a button is in the way.
// u: direction of the arrow, of length 1
// size: of the frame, px
// others: numbers already placed
// covered: area covered by buttons
export function numberPlace(
  from: readonly number[],
  tip: readonly number[],
  u: readonly number[],
  size: number,
  points: readonly (readonly number[])[],
  others: readonly Spot[],
  covered?: Rect | null,
): Spot {
  const wide = 32,
    high = 16,
    floor = size - 20; // the numbers of the axis are below this
  const begin = ({ left, align }: Spot) =>
    left - { left: 0, center: wide / 2, right: wide }[align as "left"];
  const free = (place: Spot) => {
    const x = begin(place);
    const off = (px: number, py: number) =>
      Math.hypot(px - Math.min(Math.max(px, x), x + wide), py - place.top);
    return (
      x >= 2 &&
      x + wide <= size - 2 &&
      place.top >= 8 &&
      place.top <= floor &&
      !(
        covered &&
        x < covered.right &&
        x + wide > covered.left &&
        place.top - high / 2 < covered.bottom &&
        place.top + high / 2 > covered.top
      ) &&
      points.every(([px, py]) => off(px, py) > 18) &&
      others.every((l) => Math.abs(begin(l) - x) > wide + 2 || Math.abs(l.top - place.top) >= high)
    );
  };
  const before = (u[0] < -0.3 ? "right" : u[0] > 0.3 ? "left" : "center") as CanvasTextAlign;
  const ahead = { left: tip[0] + u[0] * 10, top: tip[1] + u[1] * 14, align: before };
  const tries: Spot[] = [ahead];
  for (const back of [8, 26, 44, 62, 90, 120])
    for (const side of [1, -1]) {
      const [nx, ny] = [-u[1] * side, u[0] * side],
        [x, y] = [tip[0] - u[0] * back, tip[1] - u[1] * back];
      // too close to the start of the arrow
      if ((x - from[0]) * u[0] + (y - from[1]) * u[1] < 12) continue;
      const align = nx < -0.3 ? "right" : nx > 0.3 ? "left" : "center";
      tries.push({ left: x + nx * 12, top: y + ny * 16, align });
    }
  const inside = (v: number, room: number) => Math.min(Math.max(v, room), size - room);
  return tries.find(free) ?? { ...ahead, left: inside(ahead.left, 34), top: inside(ahead.top, 20) };
}

// Return how a loss follows from its energy E, and which triplets have no gradient.
// positive: E is above 0 for every triplet
// m2: upper clamp; null: none
export function clamping(positive: boolean, m2: number | null) {
  if (positive && m2 === null) return "The loss is E, which is above 0 for every triplet.";
  if (positive)
    return `The loss is E, clipped at ${tidy(m2)}; above, the gradient is 0. E is above 0 for every triplet.`;
  return m2 === null
    ? "The loss is E clipped at 0: only triplets with E > 0 have a gradient."
    : `The loss is E clipped to [0, ${tidy(m2)}]: outside this range the gradient is 0.`;
}
