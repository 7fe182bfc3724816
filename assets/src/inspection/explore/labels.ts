// Placement of names: at their points if there is space, else next to them; no name covers another
// or an image.

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
// images: areas that no name may cover
export function placeNames(
  names: Name[],
  frame: { width: number; height: number },
  most: number,
  images: Box[] = [],
): (Place | null)[] {
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
