// Orthographic projection of the sphere. Directions are unit vectors in Python's axes; a look has the
// three directions right, up and eye (towards the viewer).
import type { At, Look, Vector } from "./types.ts";
import type { View } from "../../../kit/figure/view.ts";
import type { Place } from "../../../kit/types.ts";
import { pixels } from "../../../kit/figure/view.ts";
import { FILL } from "./surface.ts";

const RAD = Math.PI / 180;

/** Return the direction of a longitude and latitude in degrees. */
export const direction = ([lon, lat]: Vector) => [
  Math.cos(lat * RAD) * Math.cos(lon * RAD),
  Math.cos(lat * RAD) * Math.sin(lon * RAD),
  Math.sin(lat * RAD),
];
/** Return the longitude and latitude of a direction in degrees. */
export const place = ([x, y, z]: Vector): [number, number] => [
  Math.atan2(y, x) / RAD,
  Math.atan2(z, Math.hypot(x, y)) / RAD,
];
export const dot = (a: Vector, b: Vector) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const along = (a: Vector, s: number, b: Vector) => [
  a[0] + s * b[0],
  a[1] + s * b[1],
  a[2] + s * b[2],
];
export const cross = (a: Vector, b: Vector) => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];

/** Return the three directions of a viewer at a longitude and latitude in degrees. */
export function lookFrom([lon, lat]: Place): Look {
  const s = Math.sin(lon * RAD),
    c = Math.cos(lon * RAD),
    t = Math.sin(lat * RAD),
    k = Math.cos(lat * RAD);
  return { right: [-s, c, 0], up: [-t * c, -t * s, k], eye: [k * c, k * s, t] };
}

/** Return pixels and depth (towards the viewer, in radii) of a direction. */
export function projector(view: Look, size: number): At {
  const r = FILL * size,
    c = size / 2;
  return (v) => [c + r * dot(v, view.right), c - r * dot(v, view.up), dot(v, view.eye)];
}

/** Return the direction under a pixel. Beyond the rim it continues around the back. */
export function grasp(view: Look, size: number, [x, y]: readonly number[], front: boolean) {
  const r = FILL * size;
  let u = (x - size / 2) / r,
    v = (size / 2 - y) / r,
    length = Math.hypot(u, v),
    side = front ? 1 : -1;
  if (length > 1) {
    const back = Math.max(2 - length, 0.05) / length;
    [u, v, side] = [u * back, v * back, -side];
    length = Math.hypot(u, v);
  }
  const depth = side * Math.sqrt(Math.max(0, 1 - length * length));
  return [0, 1, 2].map((i) => u * view.right[i] + v * view.up[i] + depth * view.eye[i]);
}

/** Return the view of the globe for handles on its front, or on its back. */
export function globeView(eye: Place, front: () => boolean, width: number, height: number): View {
  const look = lookFrom(eye),
    at = projector(look, width);
  return {
    ...pixels(width, height),
    open: true,
    to(angles) {
      const [x, y] = at(direction(angles));
      return [x, y];
    },
    from: (pixel) => place(grasp(look, width, pixel, front())),
  };
}
