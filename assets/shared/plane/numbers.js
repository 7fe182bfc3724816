// Words of the clamp, and places for the numbers of the force arrows in the plane.
import { tidy } from "../dom.js";

/** @typedef {{ left: number, top: number, align: CanvasTextAlign }} Spot */
/** @typedef {{ left: number, top: number, right: number, bottom: number }} Rect */

/**
 * Where the number of an arrow stands: before its tip; where the frame ends there, or a point,
 * another number or the buttons over the plane lie there, beside the arrow.
 * @param {readonly number[]} from
 * @param {readonly number[]} tip
 * @param {readonly number[]} u the arrow's direction, of length 1
 * @param {number} size of the frame, px
 * @param {readonly (readonly number[])[]} points
 * @param {readonly Spot[]} others numbers that have their place
 * @param {Rect | null} [covered] by buttons
 * @returns {Spot}
 */
export function numberPlace(from, tip, u, size, points, others, covered) {
  const wide = 32,
    high = 16,
    floor = size - 20; // below: the numbers of the axis
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
      if ((x - from[0]) * u[0] + (y - from[1]) * u[1] < 12) continue; // no more of the arrow
      const align = nx < -0.3 ? "right" : nx > 0.3 ? "left" : "center";
      tries.push({ left: x + nx * 12, top: y + ny * 16, align });
    }
  const inside = (/** @type {number} */ v, /** @type {number} */ room) =>
    Math.min(Math.max(v, room), size - room);
  return tries.find(free) ?? { ...ahead, left: inside(ahead.left, 34), top: inside(ahead.top, 20) };
}

/**
 * Say how a loss follows from its energy E, and which triplets have no gradient for it.
 *
 * @param {boolean} positive E is above 0 for every triplet
 * @param {number | null} m2 the upper clamp; null: none
 */
export function clamping(positive, m2) {
  if (positive && m2 === null) return "The loss is E, which is above 0 for every triplet.";
  if (positive)
    return `The loss is E, which is above 0 for every triplet, but at most ${tidy(m2)}: from there on the gradient is 0.`;
  return m2 === null
    ? "The loss is E, but at least 0: only triplets with E > 0 have a gradient."
    : `The loss is E clipped to [0, ${tidy(m2)}]: outside this range the gradient is 0.`;
}
