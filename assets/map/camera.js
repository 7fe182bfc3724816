// The window onto the square of the points: shares of the square, y upwards, to CSS pixels and
// back.
const MOST_ZOOM = 200; // as deep as the 65,536 places of an axis are still finer than pixels

export class Camera {
  constructor() {
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1, width: 0, height: 0, side: 1 });
  }

  // The frame is width x height CSS pixels: without zoom all points just fit, whatever the shape of
  // either.
  frame(width, height, extent) {
    Object.assign(this, { width, height });
    if (extent) this.side = Math.min(width / extent[0].size, height / extent[1].size);
  }

  get scale() {
    return this.side * this.zoom;
  }
  pixels(x, y) {
    return [
      this.width / 2 + (x - this.x) * this.scale,
      this.height / 2 - (y - this.y) * this.scale,
    ];
  }
  at(cloud, i) {
    return this.pixels(cloud.x(i), cloud.y(i));
  }
  place(px, py) {
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

  closer(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.place(px, py);
    this.zoom = Math.min(MOST_ZOOM, Math.max(1, this.zoom * factor));
    const [u, v] = this.place(px, py);
    this.look(this.x + x - u, this.y + y - v);
  }

  look(x, y) {
    this.x = Math.min(1, Math.max(0, x));
    this.y = Math.min(1, Math.max(0, y));
  }
  whole() {
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1 });
  }

  clip() {
    return {
      middle: [this.x, this.y],
      scale: [(2 * this.scale) / this.width, (2 * this.scale) / this.height],
    };
  }
}
