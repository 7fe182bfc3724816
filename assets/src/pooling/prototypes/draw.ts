// Painting of the plane of local features; all numbers come from Python.
import type { At, Box, Look, One, Plane } from "./types.ts";
import type { Context, Ink, Theme } from "../../kit/types.ts";
import { drawing } from "../../kit/dom.ts";
import { halo, INK, LISTS, niceStep, lineOutlined } from "../../kit/colours.ts";
import { plane as planeView } from "../../kit/figure/view.ts";

// Colour, marker shape and dash pattern of each shown class.
export const CLASS = LISTS.classes;
export const PICKED = { light: INK.light.picked, dark: INK.dark.picked };
export const SHAPES = ["circle", "square", "triangle"],
  DASHES: number[][] = [[], [9, 4], [3, 3]];

export function mark(ctx: Context, kind: string, x: number, y: number, r: number) {
  ctx.beginPath();
  if (kind === "square") ctx.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r);
  else if (kind === "triangle") {
    ctx.moveTo(x, y - 1.1 * r);
    ctx.lineTo(x + r, y + 0.75 * r);
    ctx.lineTo(x - r, y + 0.75 * r);
    ctx.closePath();
  } else if (kind === "diamond") {
    ctx.moveTo(x, y - 1.25 * r);
    ctx.lineTo(x + 1.25 * r, y);
    ctx.lineTo(x, y + 1.25 * r);
    ctx.lineTo(x - 1.25 * r, y);
    ctx.closePath();
  } else ctx.arc(x, y, r, 0, 7);
}
// Return the view of Python's box, y up, on a square of `size` pixels.
export const boxView = ([left, bottom, side]: Box, size: number) =>
  planeView([left + side / 2, bottom + side / 2, side / 2], size);

// Return the images of the patches with sharp pixels, created once.
export function patchesOf(answer: Plane) {
  const [m, s] = answer.shapes.patches;
  return Array.from({ length: m }, (_, i) =>
    bitmap(answer.patches.subarray(3 * s * s * i, 3 * s * s * (i + 1)), s, s),
  );
}

export function bitmap(rgb: Uint8Array, width: number, height: number) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height }),
    image = new ImageData(width, height);
  for (let i = 0; i < width * height; i++)
    image.data.set([rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2], 255], 4 * i);
  drawing(canvas).putImageData(image, 0, 0);
  return canvas;
}

function polygons(values: Float32Array, lengths: number[]) {
  let at = 0;
  return lengths.map((n) =>
    Array.from({ length: n }, () => [values[2 * at], values[2 * at++ + 1]]),
  );
}

function trace(ctx: Context, corners: number[][], at: At) {
  ctx.beginPath();
  corners.forEach(([x, y], i) => ctx[i ? "lineTo" : "moveTo"](...at(x, y)));
  if (corners.length > 2) ctx.closePath();
}

// Paint the plane. view = {shown, hover (prototype or -1), pointed (row or -1), show: {features,
// patches, hulls, averages}}
export function paintPlane(
  ctx: Context,
  size: number,
  plane: Plane,
  image: One,
  patches: HTMLCanvasElement[],
  view: Look,
  theme: Theme,
) {
  const ink = INK[theme],
    colours = CLASS[theme],
    picked = PICKED[theme],
    box = boxView(plane.box, size),
    at: At = (x, y) => box.to([x, y]),
    { show } = view;
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, size, size);
  const cells = polygons(plane.cell, plane.cells),
    top = Math.max(...image.histogram);
  cells.forEach((cell, i) => {
    if (cell.length < 3) return;
    trace(ctx, cell, at);
    ctx.globalAlpha = 0.5 * (image.histogram[i] / top);
    ctx.fillStyle = picked;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = ink.axis;
    ctx.lineWidth = 1;
    ctx.stroke();
  });
  const side = Math.max(14, Math.min(34, (0.42 * size) / Math.sqrt(plane.cells.length)));
  if (show.features) {
    const [left, bottom, span] = plane.box;
    let i = 0;
    plane.features.forEach((count, slot) => {
      ctx.fillStyle = colours[slot];
      ctx.globalAlpha = count > 1500 ? 0.28 : 0.45;
      for (let k = 0; k < count; k++, i++) {
        const [x, y] = at(
          left + (plane.cloud[2 * i] / 65535) * span,
          bottom + (plane.cloud[2 * i + 1] / 65535) * span,
        );
        ctx.fillRect(x - 1, y - 1, 2, 2);
      }
    });
    ctx.globalAlpha = 1;
  }
  if (show.patches)
    patches.forEach((patch, i) => {
      const [x, y] = at(plane.prototypes[2 * i], plane.prototypes[2 * i + 1]),
        s = i === view.hover ? 1.5 * side : side;
      const px = Math.min(Math.max(x - s / 2, 1), size - s - 1),
        py = Math.min(Math.max(y - s / 2, 1), size - s - 1);
      ctx.imageSmoothingEnabled = patch.width > 8;
      ctx.drawImage(patch, px, py, s, s);
      ctx.strokeStyle = image.histogram[i] > 0 ? picked : ink.faint;
      ctx.lineWidth = image.histogram[i] > 0 ? 2 : 1;
      ctx.strokeRect(px, py, s, s);
    });
  else
    for (let i = 0; i < plane.cells.length; i++) {
      mark(ctx, "diamond", ...at(plane.prototypes[2 * i], plane.prototypes[2 * i + 1]), 3.5);
      ctx.fillStyle = ink.text;
      ctx.fill();
    }
  if (show.hulls) {
    // All rims first, then the colours: of hulls that share an edge, each remains visible, because
    // the dashes of the later ones leave gaps.
    const hulls = polygons(plane.hull, plane.hulls),
      outline = (width: number, look: (slot: number) => [colour: string, dash: number[]]) =>
        hulls.forEach((corners, slot) => {
          if (!corners.length) return;
          const [colour, dash] = look(slot);
          trace(ctx, corners, at);
          ctx.lineWidth = width;
          ctx.strokeStyle = colour;
          ctx.setLineDash(dash);
          ctx.stroke();
        });
    outline(5, () => [ink.page, []]);
    outline(2.4, (slot) => [colours[slot], DASHES[slot]]);
    ctx.setLineDash([]);
  }
  if (show.averages) points(ctx, plane, view, at, colours, ink, 3.6);
  for (let j = 0; j < image.own.length / 2; j++) {
    const i = image.assigned[j],
      from = at(image.own[2 * j], image.own[2 * j + 1]),
      to = at(plane.prototypes[2 * i], plane.prototypes[2 * i + 1]);
    if (!image.weight[j]) continue;
    ctx.strokeStyle = picked;
    ctx.globalAlpha = view.hover < 0 || view.hover === i ? 0.8 : 0.15;
    ctx.lineWidth = 1.2;
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
    mark(ctx, "circle", ...from, 2.6);
    ctx.fillStyle = picked;
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  arrow(ctx, at(...image.image.pooled), at(...image.image.combination), ink, 6);
  scaleBar(ctx, size, plane.box[2], ink);
}

// Draw the average of each image of the shown classes.
export function points(
  ctx: Context,
  plane: Plane,
  view: Look,
  at: At,
  colours: string[],
  ink: Ink,
  r: number,
) {
  ctx.lineWidth = 1;
  for (let i = 0; i < plane.place.length; i++) {
    const slot = view.shown.indexOf(plane.place[i]);
    if (slot < 0) continue;
    mark(
      ctx,
      SHAPES[slot],
      ...at(plane.pooled[2 * i], plane.pooled[2 * i + 1]),
      i === view.pointed ? 2 * r : r,
    );
    ctx.fillStyle = colours[slot];
    ctx.fill();
    ctx.strokeStyle = i === view.pointed ? ink.text : ink.page;
    ctx.stroke();
  }
}

// Draw a line from the average (ring) to the combination of prototypes (diamond).
export function arrow(ctx: Context, [x, y]: number[], [u, v]: number[], ink: Ink, r: number) {
  lineOutlined(
    ctx,
    [x, y],
    [u, v],
    [
      [ink.page, 6],
      [ink.text, 2.4],
    ],
  );
  for (const [kind, px, py, fill] of [
    ["circle", x, y, ink.page],
    ["diamond", u, v, ink.text],
  ] as const) {
    mark(ctx, kind, px, py, r);
    ctx.fillStyle = fill;
    ctx.fill();
    ctx.lineWidth = 2;
    ctx.strokeStyle = kind === "circle" ? ink.text : ink.page;
    ctx.stroke();
  }
}

function scaleBar(ctx: Context, size: number, side: number, ink: Ink) {
  const step = niceStep(side, 6),
    long = (step / side) * size;
  ctx.strokeStyle = ink.text;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.moveTo(12, size - 14.5);
  ctx.lineTo(12, size - 9.5);
  ctx.lineTo(12 + long, size - 9.5);
  ctx.lineTo(12 + long, size - 14.5);
  ctx.stroke();
  ctx.font = "11.5px system-ui, sans-serif";
  ctx.textAlign = "left";
  halo(ctx, String(Number(step.toFixed(3))), 12, size - 19, ink.text, ink.page);
}
