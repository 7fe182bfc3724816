// Placement of names: at their points if there is space, else next to them; no name covers another
// or an image, and on request as few points as possible.

// desired centre, size, and its largest distance from the point
export type Name = { x: number; y: number; width: number; height: number; gap?: number };
export type Box = [left: number, top: number, right: number, bottom: number];
// centre; moved: next to its point
export type Place = { x: number; y: number; moved: boolean };

const GAP = 11; // pixels between a point and a name next to it

// Candidate positions from the point outwards; a name that fits nowhere is omitted until the zoom
// is larger.
const WAYS: [number, number][] = [
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

// names: most important first
// kept: areas that no name may cover
// cost: number of points that an area covers, Infinity if it may not be used; the first of the
// cheapest positions is chosen
export function placeNames(
  names: Name[],
  frame: { width: number; height: number },
  most: number,
  kept: Box[] = [],
  cost: (box: Box) => number = () => 0,
): (Place | null)[] {
  const taken = [...kept];
  return names.map(({ x, y, width, height, gap = GAP }) => {
    if (taken.length >= most + kept.length) return null;
    let best: { place: Place; box: Box; cost: number } | null = null;
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
      const box: Box = [left, top, left + width, top + height],
        covered = cost(box);
      if (covered < (best?.cost ?? Infinity))
        best = {
          place: { x: u, y: v, moved: right !== 0 || down !== 0 },
          box,
          cost: covered,
        };
      if (!covered) break;
    }
    if (best) taken.push(best.box);
    return best?.place ?? null;
  });
}
