// Snapping: the nearest position of a point that satisfies the chosen constraint.
import type { Place, Point } from "../types.ts";
import type { Scene } from "./types.ts";
import { POINTS, niceStep } from "../colours.ts";
import { rounded } from "../figure/view.ts";

const APART = 0.05, // points closer than this on the circle are separated
  HEIGHT = Math.sqrt(3) / 2; // of an equilateral triangle of side 1

type Snapped = Pick<Scene, Point | "snap" | "view" | "probe">;

/** Return the distance between two positions of the grid. */
const gridStep = (scene: Snapped) => niceStep(2 * scene.view[2]) / 4;

/** Return the step of an arrow key: a hundredth, or as much as reaches another position. */
export const keyStep = (scene: Snapped): number =>
  ({ free: 0.01, grid: gridStep(scene), circle: 0.01, equilateral: 10, isosceles: 0.02 })[
    scene.snap
  ];

function onCircle([x, y]: Place, [cx, cy]: Place, radius: number): Place {
  const [dx, dy] = [x - cx, y - cy],
    d = Math.hypot(dx, dy);
  return d ? [cx + (dx / d) * radius, cy + (dy / d) * radius] : [cx + radius, cy];
}

/** Return the position that a point takes when it is moved to `place`; `radius`: of the circle. */
export function snapped(scene: Snapped, name: Point, place: Place, radius = 1): Place {
  const [first, second] = POINTS.filter((k) => k !== name).map((k) => scene[k]),
    away = ([x, y]: Place) => Math.hypot(x - place[0], y - place[1]),
    nearest = (places: Place[]) => places.reduce((a, b) => (away(a) <= away(b) ? a : b));
  const [mx, my] = [(first[0] + second[0]) / 2, (first[1] + second[1]) / 2],
    [ex, ey] = [second[0] - first[0], second[1] - first[1]],
    side = Math.hypot(ex, ey),
    along = side ? ((place[0] - mx) * -ey + (place[1] - my) * ex) / side ** 2 : 0;
  const found = {
    free: () => place,
    grid: () => place.map((v) => Math.round(v / gridStep(scene)) * gridStep(scene)),
    circle: () => onCircle(place, [0, 0], radius),
    equilateral: () =>
      nearest([
        [mx - ey * HEIGHT, my + ex * HEIGHT],
        [mx + ey * HEIGHT, my - ex * HEIGHT],
      ]),
    isosceles: () =>
      side
        ? nearest([
            [mx - ey * along, my + ex * along],
            onCircle(place, first, side),
            onCircle(place, second, side),
          ])
        : place,
  }[scene.snap]();
  return found.map(rounded);
}

/**
 * Apply a snap that was just chosen: to all points on the grid or the circle, where they are kept
 * apart, and to the scanning point of a triangle.
 */
export function snapNow(scene: Snapped, radius = 1): void {
  const all = scene.snap === "grid" || scene.snap === "circle";
  for (const name of all ? POINTS : [scene.probe])
    scene[name] = snapped(scene, name, scene[name], radius);
  if (scene.snap !== "circle") return;
  const [c, s] = [Math.cos(Math.PI / 6), Math.sin(Math.PI / 6)];
  POINTS.forEach((name, i) => {
    const meets = (k: Point) =>
      Math.hypot(scene[k][0] - scene[name][0], scene[k][1] - scene[name][1]) < APART;
    while (POINTS.slice(0, i).some(meets)) {
      const [x, y] = scene[name];
      scene[name] = [c * x - s * y, s * x + c * y].map(rounded);
    }
  });
}
