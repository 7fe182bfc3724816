// Placement of the images of the three points: each next to its own point, covering no point, no
// other image and, if possible, no other mark.

const SIDE = 42,
  ROOM = 27; // side of an image in CSS pixels; distance of its centre from the edge
const AROUND = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8].map(
  (k) => (k * Math.PI) / 8,
);
const near = (a: number[], b: number[], reach: number) =>
  Math.max(Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1])) < reach;

// Return the centres of the images for points [[x, y], ...] of a square plane: away from the other
// points if that place is free, else rotated about the point, and only then farther away.
// drawn: places [[x, y], ...] to keep visible: arrows, their ends
export function placeThumbnails(points: number[][], size: number, drawn: number[][] = []) {
  const middle = [0, 1].map((i) => points.reduce((sum, p) => sum + p[i], 0) / points.length);
  const inside = (v: number) => Math.min(Math.max(v, ROOM), size - ROOM),
    placed: number[][] = [];
  points.forEach((point, i) => {
    const dx = point[0] - middle[0],
      dy = point[1] - middle[1];
    const out = Math.hypot(dx, dy) > 1 ? Math.atan2(dy, dx) : Math.PI / 2 + (i * 2 * Math.PI) / 3;
    const places = [46, 64, 90, 120].flatMap((away) =>
      AROUND.map((turn) => [
        inside(point[0] + away * Math.cos(out + turn)),
        inside(point[1] + away * Math.sin(out + turn)),
      ]),
    );
    const free = (p: number[]) =>
      // a point's own marker has this radius
      placed.every((q) => !near(p, q, SIDE + 2)) && points.every((q) => !near(p, q, SIDE / 2 + 10));
    const clear = (p: number[]) => drawn.every((q) => !near(p, q, SIDE / 2 + 8));
    placed.push(places.find((p) => free(p) && clear(p)) ?? places.find(free) ?? places[0]);
  });
  return placed;
}

// Return places along arrows from points to their tips, and the places of their numbers.
export function along(points: number[][], tips: (number[] | null)[]) {
  return points.flatMap(([x, y], i) => {
    const tip = tips[i];
    if (!tip) return [];
    const [dx, dy] = [tip[0] - x, tip[1] - y],
      length = Math.hypot(dx, dy),
      steps = Math.ceil(length / 12);
    const number = [tip[0] + (16 * dx) / (length || 1), tip[1] + (16 * dy) / (length || 1)];
    return [
      ...Array.from({ length: steps }, (_, k) => [
        x + (dx * (k + 1)) / steps,
        y + (dy * (k + 1)) / steps,
      ]),
      number,
    ];
  });
}
