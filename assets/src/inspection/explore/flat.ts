// Fallback painter for browsers without WebGL2: stamps one small image per colour and shape.
import type { Cloud } from "./cloud.ts";
import type { Marks } from "./types.ts";
import { drawing } from "../../kit/dom.ts";
import { shape } from "../../kit/plot.ts";
import { Order } from "./order.ts";

const MOST = 30_000; // images stamped per frame
const SHAPES = ["circle", "square", "triangle", "diamond"];

export class Painter {
  private readonly ctx: CanvasRenderingContext2D;
  private readonly order = new Order(MOST);
  constructor(canvas: HTMLCanvasElement) {
    this.ctx = drawing(canvas);
  }

  paint(
    cloud: Cloud,
    { keys, states, table, shaped, middle, scale, radius, faint, paper, ink, window }: Marks,
  ) {
    const { ctx } = this,
      { width, height } = ctx.canvas,
      stamps: Map<number, OffscreenCanvas> = new Map(),
      css = (rgb: number[]) => `rgb(${rgb.map((v) => 255 * v)})`;
    const kind = (key: number) =>
      shaped === 0 ? "circle" : shaped === 1 ? SHAPES[key & 3] : key === 0 ? "cross" : "circle";
    const stamp = (key: number, chosen: number) => {
      const side = Math.ceil(2.6 * radius + 4),
        stamped = new OffscreenCanvas(side, side),
        c = drawing(stamped),
        at = 4 * (key & 255);
      c.fillStyle = `rgba(${table[at]}, ${table[at + 1]}, ${table[at + 2]}, ${table[at + 3] / 255})`;
      c.strokeStyle = css(chosen ? ink : paper);
      c.lineWidth = 0.8;
      shape(c, kind(key), side / 2, side / 2, radius);
      c.fill();
      if (chosen || radius > 3) c.stroke();
      return stamped;
    };
    ctx.clearRect(0, 0, width, height);
    const { rows, front } = this.order.rowsToDraw(cloud, states, window);
    rows.forEach((i, k) => {
      const x = (width / 2) * (1 + (cloud.x(i) - middle[0]) * scale[0]),
        y = (height / 2) * (1 - (cloud.y(i) - middle[1]) * scale[1]);
      if (x < -9 || y < -9 || x > width + 9 || y > height + 9) return;
      const name = 2 * (keys[i] & 255) + (states[i] >> 1);
      const stamped = stamps.get(name) ?? stamp(keys[i], states[i] >> 1);
      stamps.set(name, stamped);
      ctx.globalAlpha = k < front ? faint : 1;
      ctx.drawImage(stamped, x - stamped.width / 2, y - stamped.height / 2);
    });
  }
}
