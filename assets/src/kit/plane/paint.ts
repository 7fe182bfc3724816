// Painting of the plane; all numbers come from Python. In plane coordinates y points up; the canvas
// is square.
import type { Box, Extra, Painted, Rasters, Scene } from "./types.ts";
import type { Context, Ink, Theme } from "../types.ts";
import { INK, halo, rampColour, signedColour } from "../colours.ts";
import { bitmap, coloured, masked, polylines, stripes, veiled } from "../figure/raster.ts";
import { grid, numbers } from "../figure/axes.ts";
import { plane } from "../figure/view.ts";
import { edgeForces, hoverMark, resultants } from "./forces.ts";
import { arrows, cutLine, discs, mining, points, streams, triangle } from "./layers.ts";

// Return the two rasters of an answer, n x n: the colour, and a veil over places without a force.
// Computed once per answer.
export function rasterise(
  field: Pick<Painted, "n" | "shade" | "active">,
  theme: Theme,
  signed = false,
) {
  const { n, shade, active } = field;
  const colour = signed
    ? (i: number) => signedColour(Math.max((i - 128) / 127, -1), theme)
    : (i: number) => rampColour(i / 255, theme);
  const table = Array.from({ length: 256 }, (_, i) => colour(i));
  return {
    colour: shade && bitmap(n, coloured(shade, table)),
    veil: active && bitmap(n, masked(active)),
  };
}

// Draw a field on a clear canvas: its contents and the switches of the scene select the layers.
export function paint(
  ctx: Context,
  size: number,
  scene: Scene,
  field: Painted | undefined,
  rasters: Rasters | undefined,
  theme: Theme,
  extra: Extra = {},
) {
  const ink = INK[theme],
    view = plane(scene.view, size),
    at = view.to;
  if (!field) {
    grid(ctx, view, ink);
  } else {
    // The last answer may belong to a previous view: draw it at its own place.
    const [fx, fy, fh] = field.view,
      [left, top] = at([fx - fh, fy + fh]),
      side = at([fx + fh, fy])[0] - left;
    const box = { left, top, side };
    ctx.imageSmoothingEnabled = true;
    if (rasters?.colour) ctx.drawImage(rasters.colour, left, top, side, side);
    if (field.patches) outside(ctx, field, box, size, ink);
    else if (rasters?.veil && scene.region !== false) veiled(ctx, size, rasters.veil, box, ink);
    grid(ctx, view, ink);
    if (field.contours) contours(ctx, field, box, ink, !extra.moving);
    if (scene.region !== false) boundaries(ctx, field, box, ink);
    if (field.mining) mining(ctx, scene, field.mining, at, size, ink);
    if (field.discs) discs(ctx, scene, field.discs, at, size, ink);
    if (field.streams) streams(ctx, field, box, ink);
    if (field.arrows) arrows(ctx, field, box, ink);
  }
  if (scene.cut) cutLine(ctx, scene, at, ink);
  triangle(ctx, scene, at, ink);
  if (field) {
    const scale = extra.forceScale ?? 1;
    if (scene.edges) edgeForces(ctx, scene, field, at, ink, scale, extra);
    if (scene.forces !== false)
      resultants(ctx, scene, field, at, size, ink, scene.edges ? scale : null, extra);
  }
  numbers(ctx, view, ink);
  points(ctx, scene, at, ink);
  if (extra.hover) hoverMark(ctx, scene, extra.hover, at, size, ink);
}

// Veil and hatch everything outside the active region.
function outside(ctx: Context, field: Painted, box: Box, size: number, ink: Ink) {
  const path = new Path2D(),
    corners = field.patches as Uint16Array,
    { left, top, side } = box;
  path.rect(0, 0, size, size);
  let at = 0;
  for (const count of field.rings) {
    for (let i = 0; i < count; i++, at++) {
      const x = left + (corners[2 * at] / 65535) * side,
        y = top + side - (corners[2 * at + 1] / 65535) * side;
      if (i) path.lineTo(x, y);
      else path.moveTo(x, y);
    }
    path.closePath();
  }
  ctx.fillStyle = stripes(ctx, ink);
  ctx.fill(path, "evenodd");
}

function boundaries(ctx: Context, field: Painted, box: Box, ink: Ink) {
  ctx.strokeStyle = ink.outer;
  ctx.lineWidth = 1.75;
  const at = polylines(ctx, field.corners, field.outer, 0, box);
  ctx.setLineDash([6, 4]);
  polylines(ctx, field.corners, field.inner, at, box);
  ctx.setLineDash([]);
}

function contours(ctx: Context, field: Painted, box: Box, ink: Ink, named: boolean) {
  const labels: { x: number; y: number; text: string }[] = [];
  let at = 0;
  ctx.lineWidth = 1;
  for (const [level, counts] of field.contours ?? []) {
    ctx.strokeStyle = level < 0 ? ink.positive : ink.contour;
    ctx.globalAlpha = 0.75;
    at = polylines(ctx, field.contours_at, counts, at, box, (x, y) => {
      if (labels.every((l) => Math.hypot(l.x - x, l.y - y) > 60))
        labels.push({ x, y, text: String(Number(level.toPrecision(2))) });
    });
  }
  ctx.globalAlpha = 1;
  if (!named) return; // labels that jump during a gesture would distract
  ctx.font = "10.5px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const { x, y, text } of labels) halo(ctx, text, x, y, ink.text, ink.rim);
}
