// Pen that draws on the canvas of a chart, in units of its axes.
import type { Context, Ink, Theme } from "../types.ts";
import type { Axis, Tick } from "../figure/axes.ts";
import { INK, halo } from "../colours.ts";
import { position, ticks } from "../figure/axes.ts";

export interface Frame {
  width: number; // CSS pixels, like `pad`
  height: number;
  pad: { left: number; right: number; top: number; bottom: number };
  x: Axis;
  y: Axis;
}
export interface Stroke {
  width?: number;
  dash?: number[];
  alpha?: number;
}
export interface Words {
  dx?: number;
  dy?: number;
  align?: "left" | "right";
  colour?: string;
}
export type Segment = [x0: number, y0: number, x1: number, y1: number];
const OVERHANG = 6; // pixels by which lines and dots may exceed the axes

export class Pen {
  ink: Ink;
  left: number; // edges of the area between the axes
  right: number;
  top: number;
  base: number;
  x: (value: number) => number; // pixels of a value
  y: (value: number) => number;
  ctx: Context;
  frame: Frame;

  // Clear the canvas.
  constructor(ctx: Context, frame: Frame, theme: Theme) {
    const { width, height, pad, x, y } = frame;
    this.ctx = ctx;
    this.frame = frame;
    this.ink = INK[theme];
    this.left = pad.left;
    this.right = width - pad.right;
    this.top = pad.top;
    this.base = height - pad.bottom;
    this.x = position(x, this.left, this.right);
    this.y = position(y, this.base, this.top);
    ctx.clearRect(0, 0, width, height);
    ctx.font = "11.5px system-ui, sans-serif";
  }

  // Draw the numbers and the name of the x axis, each with a line across the chart or a short mark
  // at a base line.
  xAxis(most: number, line: "grid" | "mark" = "grid") {
    const { ctx, ink, left, right, top, base, frame } = this,
      isMark = line === "mark";
    ctx.fillStyle = ink.text;
    ctx.textAlign = "center";
    const lines: Segment[] = isMark ? [[left, base + 0.5, right, base + 0.5]] : [];
    for (const { value, text } of ticks(frame.x, most)) {
      const x = Math.round(this.x(value)) + 0.5;
      lines.push([x, isMark ? base + 4 : top, x, base]);
      ctx.fillText(text, x, base + (isMark ? 17 : 14));
    }
    this.segments(lines, isMark ? ink.axis : ink.grid);
    ctx.fillText(frame.x.name ?? "", (left + right) / 2, frame.height - 4);
  }

  // Draw the numbers of the y axis, each with a line across the chart.
  yAxis(marks: Tick[] = ticks(this.frame.y, 5)) {
    const { ctx, ink, left, right } = this;
    ctx.fillStyle = ink.text;
    ctx.textAlign = "right";
    const lines = marks.map(({ value, text }): Segment => {
      const y = Math.round(this.y(value)) + 0.5;
      if (text) ctx.fillText(text, left - 5, y + 3);
      return [left, y, right, y];
    });
    this.segments(lines, ink.grid);
  }

  // Draw something that is cut off where it leaves the area between the axes by more than
  // `overhang` pixels.
  inside(draw: () => void, overhang = OVERHANG) {
    const { ctx, left, right, top, base } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top - overhang, right - left + overhang, base - top + 2 * overhang);
    ctx.clip();
    draw();
    ctx.restore();
  }

  // Draw a line through points; points with NaN are skipped.
  curve(xs: ArrayLike<number>, ys: ArrayLike<number>, colour: string, stroke: Stroke = {}) {
    const { ctx } = this;
    ctx.beginPath();
    for (let i = 0; i < xs.length; i++) ctx.lineTo(this.x(xs[i]), this.y(ys[i]));
    this.stroke(colour, { width: 1.8, ...stroke });
  }

  across(y: number, colour: string, stroke: Stroke = {}) {
    this.segments([[this.left, this.y(y), this.right, this.y(y)]], colour, stroke);
  }

  down(x: number, colour: string, stroke: Stroke = {}) {
    const at = Math.round(this.x(x)) + 0.5;
    this.segments([[at, this.top, at, this.base]], colour, stroke);
  }

  dot(x: number, y: number, colour: string, radius = 3.2, rim = this.ink.rim) {
    const { ctx } = this;
    ctx.beginPath();
    ctx.arc(this.x(x), this.y(y), radius, 0, 7);
    this.fill(colour);
    this.stroke(rim, { width: 0.9 });
  }

  square(x: number, y: number, colour: string, radius = 3.4) {
    const { ctx } = this;
    ctx.beginPath();
    ctx.rect(this.x(x) - radius, this.y(y) - radius, 2 * radius, 2 * radius);
    this.fill(colour);
    this.stroke(this.ink.rim, { width: 0.9 });
  }

  // Draw a text at a point, moved so that it stays between the axes.
  text(words: string, x: number, y: number, look: Words = {}) {
    const { ctx, ink } = this,
      { dx = 0, dy = 0, align = "left", colour = ink.text } = look,
      length = ctx.measureText(words).width,
      start = this.x(x) + dx - (align === "right" ? length : 0),
      shown = Math.min(Math.max(start, this.left + 2), this.right - length);
    ctx.textAlign = "left";
    halo(ctx, words, shown, this.y(y) + dy, colour, ink.page);
  }

  // Draw lines between points in pixels.
  segments(lines: Segment[], colour: string, stroke?: Stroke) {
    const { ctx } = this;
    ctx.beginPath();
    for (const [x0, y0, x1, y1] of lines) {
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
    }
    this.stroke(colour, stroke);
  }

  // Fill the current path.
  fill(colour: string, alpha = 1) {
    this.ctx.fillStyle = colour;
    this.ctx.globalAlpha = alpha;
    this.ctx.fill();
    this.ctx.globalAlpha = 1;
  }

  // Stroke the current path.
  stroke(colour: string, { width = 1, dash, alpha = 1 }: Stroke = {}) {
    const { ctx } = this;
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.globalAlpha = alpha;
    if (dash) ctx.setLineDash(dash);
    ctx.stroke();
    if (dash) ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  }
}
