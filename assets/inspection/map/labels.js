// Where names stand: at their points if there is room, else beside them, and none over another.

/** @typedef {{ x: number, y: number, width: number, height: number }} Name the middle it wants, and its size */
/** @typedef {{ x: number, y: number, moved: boolean }} Place its middle; moved: it stands beside its point */

const GAP = 11; // pixels between a point and a name beside it: one at the point leaves it room

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
 * @returns {(Place | null)[]}
 */
export function placed(names, frame, most) {
  /** @type {[left: number, top: number, right: number, bottom: number][]} */
  const taken = [];
  return names.map(({ x, y, width, height }) => {
    if (taken.length >= most) return null;
    for (const [right, down] of WAYS) {
      const u = x + right * (width / 2 + GAP),
        v = y + down * (height / 2 + GAP),
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
