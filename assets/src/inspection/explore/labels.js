// Placement of names: at their points if there is space, else next to them; no name covers another
// or an image.

/**
 * @typedef {{ x: number, y: number, width: number, height: number, gap?: number }} Name desired centre, size, and its largest distance from the point
 */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/** @typedef {{ x: number, y: number, moved: boolean }} Place centre; moved: next to its point */

const GAP = 11; // pixels between a point and a name next to it

// Candidate positions from the point outwards; a name that fits nowhere is omitted until the zoom
// is larger.
/** @type {[number, number][]} */
const WAYS = [
  [0, 0],
  [0, -1],
  [0, 1],
  [1, 0],
  [-1, 0],
  [1, -1],
  [-1, -1],
  [1, 1],
  [-1, 1],
];

/**
 * @param {Name[]} names most important first
 * @param {{ width: number, height: number }} frame
 * @param {number} most
 * @param {Box[]} images areas that no name may cover
 * @returns {(Place | null)[]}
 */
export function placeNames(names, frame, most, images = []) {
  const taken = [...images];
  return names.map(({ x, y, width, height, gap = GAP }) => {
    if (taken.length >= most + images.length) return null;
    for (const [right, down] of WAYS) {
      const u = x + right * (width / 2 + gap),
        v = y + down * (height / 2 + gap),
        left = u - width / 2,
        top = v - height / 2;
      if (left < 0 || top < 0 || left + width > frame.width || top + height > frame.height)
        continue;
      if (
        taken.some((o) => left < o[2] && o[0] < left + width && top < o[3] && o[1] < top + height)
      )
        continue;
      taken.push([left, top, left + width, top + height]);
      return { x: u, y: v, moved: right !== 0 || down !== 0 };
    }
    return null;
  });
}
