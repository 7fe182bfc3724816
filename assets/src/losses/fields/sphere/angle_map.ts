// Map over the two angles that determine a triplet on the circle: P and N, relative to the anchor.
import type { Scene, SphereAnswer } from "./types.ts";
import type { Square } from "../../../kit/figure/raster.ts";
import type { View } from "../../../kit/figure/view.ts";
import type { Context, Ink, Place, Point, Theme } from "../../../kit/types.ts";
import { halo, rampColour } from "../../../kit/colours.ts";
import { bitmap, coloured, masked, polylines, veiled } from "../../../kit/figure/raster.ts";
import { chart } from "../../../kit/figure/view.ts";

const RANGE = { low: -180, high: 180 },
  MARGIN = { left: 46, right: 12, top: 12, bottom: 46 };

/** Wrap an angle to -180..180 degrees. */
export const wrap = (degrees: number): number => degrees - 360 * Math.round(degrees / 360);

/** Return the angles of P and N from A, wrapped, in degrees. */
export const bothAngles = ({ anchor, positive, negative }: Scene): Place =>
  [positive, negative].map(([angle]) => wrap(angle - anchor[0]));

/** Return the view of the map: angle of P to the right, angle of N upwards. */
export const mapView = (width: number, height: number): View =>
  chart({ x: RANGE, y: RANGE }, width, height, MARGIN);

/** Return the colours of an answer with a map, and its veil over places without a force. */
export function mapRasters({ map, map_shade, map_active }: SphereAnswer, theme: Theme) {
  const n = map?.n ?? 0,
    table = Array.from({ length: 256 }, (_, i) => rampColour(i / 255, theme));
  return [bitmap(n, coloured(map_shade, table)), bitmap(n, masked(map_active))];
}

/** Draw the map with the line that the ring shows, and a mark at the triplet. */
export function paintMap(
  ctx: Context,
  view: View,
  scene: Scene,
  answer: SphereAnswer | undefined,
  rasters: OffscreenCanvas[] | undefined,
  ink: Ink,
): void {
  const { left, top, right } = view.area,
    side = right - left,
    here = bothAngles(scene);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, side, side);
  ctx.clip();
  if (rasters && answer?.map) {
    // Nodes lie on the frame: half a cell extends beyond it.
    const cell = side / (answer.map.n - 1),
      box = { left: left - cell / 2, top: top - cell / 2, side: side + cell };
    ctx.imageSmoothingEnabled = true;
    ctx.drawImage(rasters[0], box.left, box.top, box.side, box.side);
    if (scene.region) veiled(ctx, view.width, rasters[1], box, ink);
    lines(ctx, answer, { left, top, side }, scene.region, ink);
  }
  guides(ctx, view, ink);
  sweep(ctx, scene.probe, here, view, ink);
  ctx.restore();
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.strokeRect(left, top, side, side);
  scaleText(ctx, view, side, ink);
  const [x, y] = view.to(here);
  ctx.beginPath();
  ctx.arc(x, y, 8, 0, 7);
  ctx.fillStyle = ink.selected;
  ctx.strokeStyle = ink.rim;
  ctx.lineWidth = 2.5;
  ctx.fill();
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(x, y, 9.5, 0, 7);
  ctx.strokeStyle = ink.outer;
  ctx.lineWidth = 1.3;
  ctx.stroke();
}

function lines(
  ctx: Context,
  { map, map_lines: ends }: SphereAnswer,
  square: Square,
  region: boolean,
  ink: Ink,
) {
  const { outer = [], inner = [], bands = [] } = map ?? {},
    corners = (counts: number[]) => counts.reduce((a, b) => a + b, 0);
  if (region) {
    ctx.strokeStyle = ink.outer;
    ctx.lineWidth = 1.9;
    const next = polylines(ctx, ends, outer, 0, square);
    ctx.setLineDash([6, 4]);
    polylines(ctx, ends, inner, next, square);
    ctx.setLineDash([]);
  }
  ctx.lineWidth = 0.8;
  ctx.strokeStyle = ink.faint;
  polylines(ctx, ends, bands, corners(outer) + corners(inner), square);
}

// Draw where two points coincide: P = A, N = A, P = N.
function guides(ctx: Context, { to }: View, ink: Ink) {
  ctx.font = "600 11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  for (const [text, from, end, mid] of [
    ["P = A", [0, -180], [0, 180], [0, -168]],
    ["N = A", [-180, 0], [180, 0], [-150, 0]],
    ["P = N", [-180, -180], [180, 180], [140, 140]],
  ] as const) {
    ctx.strokeStyle = ink.text;
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 4]);
    ctx.beginPath();
    ctx.moveTo(...to(from));
    ctx.lineTo(...to(end));
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.textAlign = "center";
    halo(ctx, text, ...to(mid), ink.text, ink.rim, 3);
  }
}

// Draw the line of the map that the ring shows, along which the scanning point moves.
function sweep(ctx: Context, probe: Point, [p, n]: number[], { to }: View, ink: Ink) {
  ctx.strokeStyle = ink.selected;
  ctx.lineWidth = 2;
  ctx.beginPath();
  const line = (from: number[], end: number[]) => {
    ctx.moveTo(...to(from));
    ctx.lineTo(...to(end));
  };
  if (probe === "negative") line([p, -180], [p, 180]);
  else if (probe === "positive") line([-180, n], [180, n]);
  else
    for (const turn of [-360, 0, 360]) line([p - 720, n - 720 + turn], [p + 720, n + 720 + turn]);
  ctx.stroke();
}

function scaleText(ctx: Context, { to, area: { left, top } }: View, side: number, ink: Ink) {
  ctx.font = "11px system-ui, sans-serif";
  ctx.fillStyle = ink.text;
  for (const angle of [-180, -90, 0, 90, 180]) {
    const text = `${angle}°`.replace("-", "−"),
      [x] = to([angle, 0]),
      [, y] = to([0, angle]);
    ctx.textAlign = angle === 180 ? "right" : angle === -180 ? "left" : "center";
    ctx.textBaseline = "top";
    ctx.fillText(text, x, top + side + 5);
    ctx.textAlign = "right";
    ctx.textBaseline = angle === 180 ? "top" : angle === -180 ? "bottom" : "middle";
    ctx.fillText(text, left - 5, y);
  }
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.fillText("angle of P, from A", left + side / 2, top + side + 38);
  ctx.save();
  ctx.translate(10, top + side / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textBaseline = "middle";
  ctx.fillText("angle of N, from A", 0, 0);
  ctx.restore();
}
