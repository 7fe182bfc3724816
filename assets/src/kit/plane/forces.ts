// Forces on the three points: their sums with numbers, their parts along the edges, and the force at
// a place under the pointer.
import type { At, Extra, Hover, Painted, Scene } from "./types.ts";
import type { Context, Ink, Place } from "../types.ts";
import { POINTS, halo } from "../colours.ts";
import { circle } from "./layers.ts";

// Return the length of an arrow in px: 85 px for a force of 1 in a plane of 568 px, growing ever
// more slowly; the number at the arrow gives the magnitude. With a scale (px per unit):
// proportional.
export const reach = (magnitude: number, size: number, scale: number | null | undefined) =>
  scale
    ? magnitude * scale
    : (150 * (1 - Math.exp(-magnitude / 1.6)) + 16) * Math.min(1, size / 568);

function arrow(
  ctx: Context,
  [x, y]: number[],
  [ux, uy]: number[],
  length: number,
  colour: string,
  rim: string,
  width: number,
) {
  const head = Math.min(4 + 2.5 * width, length * 0.6),
    tx = x + ux * length,
    ty = y + uy * length;
  for (const [ink, grow] of [
    [rim, 1.5],
    [colour, 0],
  ] as const) {
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.lineWidth = width + 2 * grow;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(tx - ux * head * 0.7, ty - uy * head * 0.7);
    ctx.stroke();
    ctx.beginPath();
    const wide = head / 2 + grow;
    ctx.moveTo(tx + ux * 2 * grow, ty + uy * 2 * grow);
    ctx.lineTo(tx - ux * head - uy * wide, ty - uy * head + ux * wide);
    ctx.lineTo(tx - ux * head + uy * wide, ty - uy * head - ux * wide);
    ctx.fill();
  }
  return [tx, ty];
}

type Spot = { left: number; top: number; align: CanvasTextAlign };
type Rect = { left: number; top: number; right: number; bottom: number };

// Return the position of an arrow's number: beyond its tip, or at the side of the arrow if the
// frame, a point, another number or a button is in the way.
// u: direction of the arrow, of length 1
// size: of the frame, px
// others: numbers already placed
// covered: area covered by buttons
export function numberPlace(
  from: readonly number[],
  tip: readonly number[],
  u: readonly number[],
  size: number,
  points: readonly (readonly number[])[],
  others: readonly Spot[],
  covered?: Rect | null,
): Spot {
  const wide = 32,
    high = 16,
    floor = size - 20; // the numbers of the axis are below this
  const begin = ({ left, align }: Spot) =>
    left - { left: 0, center: wide / 2, right: wide }[align as "left"];
  const free = (place: Spot) => {
    const x = begin(place);
    const off = (px: number, py: number) =>
      Math.hypot(px - Math.min(Math.max(px, x), x + wide), py - place.top);
    return (
      x >= 2 &&
      x + wide <= size - 2 &&
      place.top >= 8 &&
      place.top <= floor &&
      !(
        covered &&
        x < covered.right &&
        x + wide > covered.left &&
        place.top - high / 2 < covered.bottom &&
        place.top + high / 2 > covered.top
      ) &&
      points.every(([px, py]) => off(px, py) > 18) &&
      others.every((l) => Math.abs(begin(l) - x) > wide + 2 || Math.abs(l.top - place.top) >= high)
    );
  };
  const before = (u[0] < -0.3 ? "right" : u[0] > 0.3 ? "left" : "center") as CanvasTextAlign;
  const ahead = { left: tip[0] + u[0] * 10, top: tip[1] + u[1] * 14, align: before };
  const tries: Spot[] = [ahead];
  for (const back of [8, 26, 44, 62, 90, 120])
    for (const side of [1, -1]) {
      const [nx, ny] = [-u[1] * side, u[0] * side],
        [x, y] = [tip[0] - u[0] * back, tip[1] - u[1] * back];
      // too close to the start of the arrow
      if ((x - from[0]) * u[0] + (y - from[1]) * u[1] < 12) continue;
      const align = nx < -0.3 ? "right" : nx > 0.3 ? "left" : "center";
      tries.push({ left: x + nx * 12, top: y + ny * 16, align });
    }
  const inside = (v: number, room: number) => Math.min(Math.max(v, room), size - room);
  return tries.find(free) ?? { ...ahead, left: inside(ahead.left, 34), top: inside(ahead.top, 20) };
}

export function resultants(
  ctx: Context,
  scene: Scene,
  field: Painted,
  at: At,
  size: number,
  ink: Ink,
  scale: number | null | undefined,
  { told = field, covered }: Pick<Extra, "told" | "covered">,
) {
  const labels: (ReturnType<typeof numberPlace> & { text: string })[] = [];
  const places = POINTS.map((name) => at(scene[name]));
  POINTS.forEach((_, i) => {
    const [fx, fy] = field.forces[i],
      magnitude = Math.hypot(fx, fy);
    if (!(magnitude > 1e-9)) return;
    const u = [fx / magnitude, -fy / magnitude];
    const tip = arrow(ctx, places[i], u, reach(magnitude, size, scale), ink.force, ink.rim, 4);
    labels.push({
      ...numberPlace(places[i], tip, u, size, places, labels, covered),
      text: Math.hypot(...told.forces[i]).toPrecision(3),
    });
  });
  ctx.font = "600 12px system-ui, sans-serif"; // numbers on top of all arrows
  ctx.textBaseline = "middle";
  for (const { left, top, align, text } of labels) {
    ctx.textAlign = align;
    halo(ctx, text, left, top, ink.forceText, ink.rim, 4);
  }
}

// Draw each force decomposed along the edges: pulls blue, pushes vermillion, the remainder grey,
// with magnitudes at the edges.
export function edgeForces(
  ctx: Context,
  scene: Scene,
  field: Painted,
  at: At,
  ink: Ink,
  scale: number,
  { told = field }: Pick<Extra, "told">,
) {
  const { strengths, residuals } = field,
    place: Record<string, Place> = {
      a: at(scene.anchor),
      p: at(scene.positive),
      n: at(scene.negative),
    };
  const along = (from: Place, to: Place) => {
    const dx = to[0] - from[0],
      dy = to[1] - from[1],
      d = Math.hypot(dx, dy) || 1;
    return [dx / d, dy / d];
  };
  for (const [edge, sign, colour] of [
    ["ap", 1, ink.positive],
    ["an", -1, ink.negative],
    ["pn", -1, ink.negative],
  ] as const) {
    const strength = strengths[edge] * sign,
      [x, y] = edge;
    if (Math.abs(strength) * scale < 2) continue;
    for (const [from, to] of [
      [x, y],
      [y, x],
    ]) {
      const u = along(place[from], place[to]),
        s = Math.sign(strength);
      arrow(
        ctx,
        place[from],
        [u[0] * s, u[1] * s],
        Math.abs(strength) * scale,
        colour,
        ink.rim,
        2.5,
      );
    }
  }
  residuals.forEach(([fx, fy], i) => {
    const magnitude = Math.hypot(fx, fy);
    if (magnitude * scale > 2)
      arrow(
        ctx,
        at(scene[POINTS[i]]),
        [fx / magnitude, -fy / magnitude],
        magnitude * scale,
        ink.residual,
        ink.rim,
        2.5,
      );
  });
  ctx.font = "600 11.5px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const [edge, word, colour, share] of [
    ["ap", "pull", ink.positiveText, 0.5],
    ["an", "push", ink.negativeText, 0.4],
    ["pn", "push", ink.negativeText, 0.58],
  ] as const) {
    const [from, to] = [place[edge[0]], place[edge[1]]];
    if (Math.abs(strengths[edge]) < 1e-9 || Math.hypot(from[0] - to[0], from[1] - to[1]) < 50)
      continue;
    halo(
      ctx,
      `${word} ${told.strengths[edge].toPrecision(3)}`,
      from[0] + (to[0] - from[0]) * share,
      from[1] + (to[1] - from[1]) * share,
      colour,
      ink.rim,
      4,
    );
  }
}

export function hoverMark(
  ctx: Context,
  scene: Scene,
  hover: Hover,
  at: At,
  size: number,
  ink: Ink,
) {
  const [x, y] = at(hover.at),
    [fx, fy] = hover.force,
    magnitude = Math.hypot(fx, fy);
  ctx.strokeStyle = ink[scene.probe];
  ctx.lineWidth = 1.5;
  circle(ctx, [x, y], 5);
  if (magnitude > 1e-9)
    arrow(
      ctx,
      [x, y],
      [fx / magnitude, -fy / magnitude],
      reach(magnitude, size, null) * 0.6,
      ink.force,
      ink.rim,
      2.5,
    );
}
