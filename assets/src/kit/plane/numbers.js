// Description of the clamp, and placement of the numbers at force arrows.
import { tidy } from "../dom.js";

/** @typedef {{ left: number, top: number, align: CanvasTextAlign }} Spot */
/** @typedef {{ left: number, top: number, right: number, bottom: number }} Rect */

/**
 * Return the position of an arrow's number: beyond its tip, or at the side of the arrow if the
 * frame, a point, another number or a button is in the way.
 *
 * @param {readonly number[]} from
 * @param {readonly number[]} tip
 * @param {readonly number[]} u direction of the arrow, of length 1
 * @param {number} size of the frame, px
 * @param {readonly (readonly number[])[]} points
 * @param {readonly Spot[]} others numbers already placed
 * @param {Rect | null} [covered] area covered by buttons
 * @returns {Spot}
 */
export function numberPlace(from, tip, u, size, points, others, covered) {
  const wide = 32,
    high = 16,
    floor = size - 20; // the numbers of the axis are below this
  const begin = (/** @type {Spot} */ { left, align }) =>
    left - { left: 0, center: wide / 2, right: wide }[/** @type {"left"} */ (align)];
  const free = (/** @type {Spot} */ place) => {
    const x = begin(place);
    const off = (/** @type {number} */ px, /** @type {number} */ py) =>
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
  const before = /** @type {CanvasTextAlign} */ (
    u[0] < -0.3 ? "right" : u[0] > 0.3 ? "left" : "center"
  );
  const ahead = { left: tip[0] + u[0] * 10, top: tip[1] + u[1] * 14, align: before };
  /** @type {Spot[]} */
  const tries = [ahead];
  for (const back of [8, 26, 44, 62, 90, 120])
    for (const side of [1, -1]) {
      const [nx, ny] = [-u[1] * side, u[0] * side],
        [x, y] = [tip[0] - u[0] * back, tip[1] - u[1] * back];
      // too close to the start of the arrow
      if ((x - from[0]) * u[0] + (y - from[1]) * u[1] < 12) continue;
      const align = nx < -0.3 ? "right" : nx > 0.3 ? "left" : "center";
      tries.push({ left: x + nx * 12, top: y + ny * 16, align });
    }
  const inside = (/** @type {number} */ v, /** @type {number} */ room) =>
    Math.min(Math.max(v, room), size - room);
  return tries.find(free) ?? { ...ahead, left: inside(ahead.left, 34), top: inside(ahead.top, 20) };
}

/**
 * Return how a loss follows from its energy E, and which triplets have no gradient.
 *
 * @param {boolean} positive E is above 0 for every triplet
 * @param {number | null} m2 upper clamp; null: none
 */
export function clamping(positive, m2) {
  if (positive && m2 === null) return "The loss is E, which is above 0 for every triplet.";
  if (positive)
    return `The loss is E, clipped at ${tidy(m2)}; above, the gradient is 0. E is above 0 for every triplet.`;
  return m2 === null
    ? "The loss is E clipped at 0: only triplets with E > 0 have a gradient."
    : `The loss is E clipped to [0, ${tidy(m2)}]: outside this range the gradient is 0.`;
}
