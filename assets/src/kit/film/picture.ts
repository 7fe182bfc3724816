// The figure of a page as one image: its canvases, thumbnails and headings as they lie on the page.
import type { Filmed } from "../types.ts";
import { drawing } from "../dom.ts";
import { LONGEST_SIDE } from "./formats.ts";

export interface Picture {
  canvas: HTMLCanvasElement;
  draw(): void; // draws the current state
}

// Return the bounds of the figure on the page, in CSS pixels, and a function that draws it.
export function figureLayers(app: Filmed) {
  const shown = layers(app.whole),
    boxes = shown.map((node) => node.getBoundingClientRect()),
    left = Math.min(...boxes.map((b) => b.left)),
    top = Math.min(...boxes.map((b) => b.top));
  return {
    left,
    top,
    width: Math.max(...boxes.map((b) => b.right)) - left,
    height: Math.max(...boxes.map((b) => b.bottom)) - top,
    draw(ctx: CanvasRenderingContext2D) {
      app.paint?.(); // WebGL canvases can be read only right after painting
      shown.forEach((node, i) => drawLayer(ctx, node, boxes[i]));
    },
  };
}

// Fill a canvas with the background of the page.
export function clear(ctx: CanvasRenderingContext2D, whole: HTMLElement) {
  ctx.resetTransform();
  ctx.fillStyle = getComputedStyle(whole).getPropertyValue("--st-background-color") || "#fff";
  ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
}

// Return the figure of a page as an image; the first drawing determines its size.
export function figureOf(app: Filmed): Picture {
  const canvas = document.createElement("canvas"),
    ctx = drawing(canvas);
  let scale = 0;
  return {
    canvas,
    draw() {
      const { left, top, width, height, draw } = figureLayers(app);
      if (!scale) {
        scale = Math.min(LONGEST_SIDE / width, LONGEST_SIDE / height, 2);
        canvas.width = 2 * Math.round((width * scale) / 2); // video encoders need even sides
        canvas.height = 2 * Math.round((height * scale) / 2);
      }
      clear(ctx, app.whole);
      ctx.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
      draw(ctx);
    },
  };
}

type Layer = HTMLCanvasElement | HTMLImageElement | HTMLHeadingElement;

// Return the visible canvases, thumbnails and headings of a figure.
const layers = (whole: HTMLElement) =>
  [
    ...whole.querySelectorAll<Layer>(".frame canvas, .frame img.thumb, .view .strip, .view h4"),
  ].filter((node) => node.getBoundingClientRect().width > 0);

function drawLayer(ctx: CanvasRenderingContext2D, node: Layer, box: DOMRect) {
  const { left, top, width, height } = box,
    style = getComputedStyle(node);
  if (node instanceof HTMLHeadingElement) {
    const size = parseFloat(style.fontSize) * (node.currentCSSZoom ?? 1);
    ctx.fillStyle = style.color;
    ctx.font = `${style.fontWeight} ${size}px ${style.fontFamily}`;
    ctx.textBaseline = "middle";
    const text = [...node.childNodes].map((child) => child.textContent).join("  ");
    ctx.fillText(text, left, top + height / 2, width);
    return;
  }
  ctx.drawImage(node, left, top, width, height);
  if (node instanceof HTMLCanvasElement) return;
  ctx.strokeStyle = style.borderColor;
  ctx.lineWidth = 3;
  ctx.strokeRect(left, top, width, height);
}
