// Window onto the unit square of the points, y up: its centre and zoom, as the address keeps them.
import type { View } from "../../kit/figure/view.ts";
import { plane } from "../../kit/figure/view.ts";
const MOST_ZOOM = 200; // at this zoom the 65,536 positions per axis are still finer than pixels

export class Camera {
  x = 0.5;
  y = 0.5;
  zoom = 1;

  // Return the view of a canvas. Without zoom all points just fit, for any aspect ratio; extent:
  // their range along both axes.
  view(width: number, height: number, [wide, high]: number[]): View {
    const shorter = Math.min(width, height),
      side = Math.min(width / wide, height / high);
    return plane([this.x, this.y, shorter / (2 * side * this.zoom)], width, height);
  }

  // Return the limits of zooming for a view of this camera.
  limits({ window }: View) {
    const whole = (window?.[2] ?? 0) * this.zoom;
    return { closest: whole / MOST_ZOOM, farthest: whole };
  }

  // Take over the window of `view` after it was zoomed.
  take({ window }: View, [x, y, half]: number[]) {
    const zoom = (this.zoom * (window?.[2] ?? half)) / half;
    this.zoom = zoom < 1 + 1e-6 ? 1 : Math.min(zoom, MOST_ZOOM);
    this.look(x, y);
  }

  // Move the centre; it stays on the square.
  look(x: number, y: number, zoom = this.zoom) {
    this.x = Math.min(1, Math.max(0, x));
    this.y = Math.min(1, Math.max(0, y));
    this.zoom = Math.min(MOST_ZOOM, Math.max(1, zoom));
  }

  // Move the content by pixels of a view.
  pan({ scale }: View, dx: number, dy: number) {
    this.look(this.x - dx / scale, this.y + dy / scale);
  }
}

// Return the part of the square that a view shows.
export function windowOf({ from, width, height }: View) {
  const [left, top] = from([0, 0]),
    [right, bottom] = from([width, height]);
  return { left, right, bottom, top };
}

// Return the mapping to WebGL's coordinates: centre and scale along both axes.
export const clipOf = ({ window = [], scale, width, height }: View) => ({
  middle: [window[0], window[1]],
  scale: [(2 * scale) / width, (2 * scale) / height],
});
