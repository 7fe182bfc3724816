// Window onto the unit square of the points (y up), and its mapping to CSS pixels and back.
import type { Cloud } from "./cloud.ts";
const MOST_ZOOM = 200; // at this zoom the 65,536 positions per axis are still finer than pixels

export class Camera {
  x = 0.5; // centre of the window
  y = 0.5;
  zoom = 1;
  width = 0; // size of the frame
  height = 0;
  side = 1; // side of the whole square in pixels without zoom

  // Set the frame to width x height CSS pixels: without zoom all points just fit, for any aspect
  // ratio.
  frame(width: number, height: number, extent: { size: number }[]) {
    this.width = width;
    this.height = height;
    if (extent) this.side = Math.min(width / extent[0].size, height / extent[1].size);
  }

  get scale() {
    return this.side * this.zoom;
  }
  pixels(x: number, y: number) {
    return [
      this.width / 2 + (x - this.x) * this.scale,
      this.height / 2 - (y - this.y) * this.scale,
    ];
  }
  at(cloud: Cloud, i: number) {
    return this.pixels(cloud.x(i), cloud.y(i));
  }
  place(px: number, py: number) {
    return [
      this.x + (px - this.width / 2) / this.scale,
      this.y - (py - this.height / 2) / this.scale,
    ];
  }

  window() {
    const w = this.width / 2 / this.scale,
      h = this.height / 2 / this.scale;
    return { left: this.x - w, right: this.x + w, bottom: this.y - h, top: this.y + h };
  }

  closer(factor: number, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.place(px, py);
    this.zoom = Math.min(MOST_ZOOM, Math.max(1, this.zoom * factor));
    const [u, v] = this.place(px, py);
    this.look(this.x + x - u, this.y + y - v);
  }

  look(x: number, y: number) {
    this.x = Math.min(1, Math.max(0, x));
    this.y = Math.min(1, Math.max(0, y));
  }
  showAll() {
    this.x = 0.5;
    this.y = 0.5;
    this.zoom = 1;
  }

  clip() {
    return {
      middle: [this.x, this.y],
      scale: [(2 * this.scale) / this.width, (2 * this.scale) / this.height],
    };
  }
}
