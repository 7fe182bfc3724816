// Places of names: at their points if there is room, else next to them; none over another or over
// an image.

/** @typedef {{ x: number, y: number, width: number, height: number, gap?: number }} Name the middle it wants, its size, and how far next to its point it may stand */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/** @typedef {{ x: number, y: number, moved: boolean }} Place its middle; moved: it stands beside its point */

const GAP = 11; // pixels between a point and a name next to it

// From the point itself outwards; a name that fits nowhere waits for more zoom.
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
 * @param {Name[]} names the most important first
 * @param {{ width: number, height: number }} frame
 * @param {number} most
 * @param {Box[]} images which no name may cover
 * @returns {(Place | null)[]}
 */
export function placed(names, frame, most, images = []) {
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
