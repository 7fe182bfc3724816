// Drawing of a triplet on the sphere as seen from its anchor.
import type { Triplet } from "./types.ts";
import type { Context, Ink, Place } from "../../../kit/types.ts";
import { halo } from "../../../kit/colours.ts";
import { pointMark } from "../../../kit/plane/layers.ts";

/** Draw a triplet. Distance from the centre is the angle to the anchor; the rim is its antipode. */
export function paintTriplet(
  ctx: Context,
  size: number,
  triplet: Triplet | null | undefined,
  ink: Ink,
): void {
  const half = size / 2,
    radius = Math.max(half - 16, 0); // no size while the visitor leaves the page
  const to = ([x, y]: readonly number[]): [number, number] => [
    half + x * radius,
    half - y * radius,
  ];
  ctx.font = "10px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const degrees of [45, 90, 135, 180]) {
    ctx.lineWidth = 1;
    ctx.strokeStyle = degrees === 180 ? ink.faint : (ink.axis ?? ink.grid);
    ctx.beginPath();
    ctx.arc(half, half, (radius * degrees) / 180, 0, 2 * Math.PI);
    ctx.stroke();
    halo(ctx, `${degrees}°`, half, half + (radius * degrees) / 180, ink.text, ink.page, 3);
  }
  if (!triplet) {
    halo(ctx, "no such triplet", half, half - 14, ink.text, ink.page, 4);
    return;
  }
  const {
    positive: [p],
    negative: [n],
    arc,
  } = triplet.sphere;
  const path = (line: Place[], colour: string, dash: number[]) => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.setLineDash(dash);
    ctx.beginPath();
    for (const q of line) ctx.lineTo(...to(q));
    ctx.stroke();
    ctx.setLineDash([]);
  };
  path([[0, 0], p], ink.positive, []);
  path([[0, 0], n], ink.negative, [4, 4]);
  path(arc, ink.negative, [4, 4]);
  pointMark(ctx, "anchor", to([0, 0]), ink);
  pointMark(ctx, "positive", to(p), ink);
  pointMark(ctx, "negative", to(n), ink);
}
