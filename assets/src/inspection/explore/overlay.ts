// Layers over the points: images, lines to neighbours, names, rings, the lasso.
import type { Explore } from "./explore.tsx";
import type { Cloud } from "./cloud.ts";
import type { Box, Name } from "./labels.ts";
import type { View } from "../../kit/figure/view.ts";
import type { Context, Ink } from "../../kit/types.ts";
import { INK, halo } from "../../kit/colours.ts";
import { windowOf } from "./camera.ts";
import { STEPS } from "./cloud.ts";
import { RIGHT, SELECTED, WRONG, cssColour } from "./colours.ts";
import { radius } from "./figure.ts";
import { contoursNow } from "./files.ts";
import { placeNames } from "./labels.ts";
import { matches } from "./state.ts";

const UNJUDGED = INK.light.unjudged; // lines to neighbours without labels
const MOST_IMAGES = 150,
  MOST_NAMES = 50,
  MOST_TRIED = 300,
  MOST_LINES = 8,
  NARROW = 480, // px of width below which names are smaller and spare the points
  MOST_COVERED = 3, // points under a name in a narrow map with more than FEW_CLASSES
  FEW_CLASSES = 36, // most classes of a map that names each of them, also within a dense cloud
  DIM = 0.35; // opacity of a name whose point is not highlighted

// Everything that a layer needs to draw.
interface Layer {
  ctx: Context;
  map: Explore;
  cloud: Cloud;
  view: View;
  ink: string;
  paper: string;
  at(row: number): [number, number]; // pixels of a point
}

export const shortened = (name: string, most = 24) =>
  name.length > most ? [...name].slice(0, most - 1).join("") + "…" : name;

// Paint all layers; return the number of images, and whether some name is displaced from its point.
export function paintOver(ctx: Context, map: Explore, view: View, ink: Ink, exported: boolean) {
  const { s } = map,
    cloud = s.cloud.peek() as Cloud,
    at = (row: number) => view.to([cloud.x(row), cloud.y(row)]),
    layer: Layer = { ctx, map, cloud, view, ink: ink.text, paper: ink.page, at },
    size = radius(map, view),
    hovered = exported ? -1 : s.hovered.peek(),
    { own, labelled } = s.data.peek(),
    line = s.line.peek();
  if (s.look.contours.peek()) contours(layer);
  const images = s.look.images.peek() ? thumbnails(layer, hovered) : [];
  lines(layer);
  const moved =
    s.look.names.peek() && labelled && names(layer, images, exported ? [] : corners(view));
  for (const row of s.marked.peek()) ring(layer, at(row), size + 7, SELECTED);
  if (own) ownImage(layer, view.to(own));
  if (hovered >= 0) ring(layer, at(hovered), size + 4, layer.ink);
  if (line) lasso(layer, line);
  return { images: images.length, moved };
}

// Return the areas of the map under its notes and its buttons.
const corners = ({ width, height }: View): Box[] => [
  [0, height - 30, 212, height],
  [width - 112, height - 46, width, height],
];

// Describe the marks that are drawn.
export function describeMarks({ s }: Explore, drawn: ReturnType<typeof paintOver>) {
  const wrong = drawn.images > 0 && s.look.colour.peek() === "right";
  return [
    drawn.moved && "point with a dot: its name is next to it",
    s.card.peek()?.near &&
      (s.data.peek().labelled
        ? "green line: same class, dashed orange: another class"
        : "blue line: nearest neighbours"),
    wrong && "green frame: nearest neighbour right, dashed orange: wrong",
    s.marked.peek().length > 0 && "orange ring: sample of the link",
  ]
    .filter(Boolean)
    .join(" · ");
}

// Stroke the current path with a rim in the colour of the page.
function rimmed({ ctx, paper }: Layer, colour: string, width: number, dash: number[] = []) {
  ctx.strokeStyle = paper;
  ctx.lineWidth = width + 2.5;
  ctx.stroke();
  ctx.setLineDash(dash);
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.stroke();
  ctx.setLineDash([]);
}

function ring(layer: Layer, [x, y]: number[], r: number, colour: string) {
  layer.ctx.beginPath();
  layer.ctx.arc(x, y, r, 0, 2 * Math.PI);
  rimmed(layer, colour, 2.5);
}

// Mark the position of the visitor's own image.
function ownImage(layer: Layer, [x, y]: [number, number]) {
  const { ctx, ink, paper } = layer;
  ring(layer, [x, y], 9, SELECTED);
  ring(layer, [x, y], 2, SELECTED);
  ctx.font = "600 13px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  halo(ctx, "your image", x, y - 15, ink, paper, 4);
}

// Draw points as images if so few are in view that all images fit; the hovered one is in front.
// Returns positions of the images
function thumbnails({ ctx, map, cloud, view, paper, at }: Layer, hovered: number): Box[] {
  const { s, thumbs } = map,
    states = s.states.peek(),
    painted = s.painted.peek(),
    rows = cloud.within(windowOf(view), MOST_IMAGES);
  if (!painted || !rows.length || rows.length > MOST_IMAGES) return [];
  const boxes: Box[] = [],
    room = Math.sqrt((view.width * view.height) / rows.length),
    side = Math.min(72, Math.max(26, 0.55 * room)),
    front = (row: number) => 2 * Number(row === hovered) + (states[row] & 1);
  rows.sort((a, b) => front(a) - front(b));
  for (const row of rows) {
    const image = thumbs.get(s.data.peek().images + cloud.indices[row]);
    if (!image) continue;
    const [x, y] = at(row),
      longest = Math.max(image.naturalWidth, image.naturalHeight),
      k = (row === hovered ? 1.5 * side : side) / longest,
      w = k * image.naturalWidth,
      h = k * image.naturalHeight,
      key = painted.keys[row];
    ctx.globalAlpha = states[row] & 1 ? 1 : 0.3;
    ctx.fillStyle = paper;
    ctx.fillRect(x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4);
    ctx.drawImage(image, x - w / 2, y - h / 2, w, h);
    // the colour of its point, dashed if the nearest neighbour is wrong
    ctx.strokeStyle = cssColour(painted.table, key & 255);
    ctx.setLineDash(painted.colour === "right" && key === 0 ? [5, 3] : []);
    ctx.lineWidth = states[row] & 2 ? 4 : 2;
    ctx.strokeRect(x - w / 2 - 1, y - h / 2 - 1, w + 2, h + 2);
    boxes.push([x - w / 2 - 2, y - h / 2 - 2, x + w / 2 + 2, y + h / 2 + 2]);
  }
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
  return boxes;
}

// Draw a line through the places of a list.
function trace(ctx: Context, view: View, places: number[][]) {
  places.forEach((place, k) => ctx[k ? "lineTo" : "moveTo"](...view.to(place)));
}

// Draw density contours; heavier lines mean denser regions.
function contours({ ctx, map, view, ink }: Layer) {
  const found = contoursNow(map);
  if (!found) return;
  const { xy, ends, shares } = found;
  ctx.strokeStyle = ink;
  ctx.lineWidth = 1;
  let from = 0;
  shares.forEach((share, k) => {
    const places = Array.from({ length: ends[k] - from }, (_, i) => [
      xy[2 * (from + i)] / STEPS,
      xy[2 * (from + i) + 1] / STEPS,
    ]);
    ctx.globalAlpha = 0.75 - 0.5 * share;
    ctx.beginPath();
    trace(ctx, view, places);
    ctx.stroke();
    from = ends[k];
  });
  ctx.globalAlpha = 1;
}

// Draw lines from the opened point to its nearest neighbours: correct ones solid, wrong ones
// dashed.
function lines(layer: Layer) {
  const { ctx, map, at } = layer,
    { labelled } = map.s.data.peek(),
    card = map.s.card.peek();
  for (const { row, right: same } of card?.near?.neighbours.slice(0, MOST_LINES) ?? []) {
    const right = same || !labelled,
      colour = !labelled ? UNJUDGED : right ? RIGHT : WRONG;
    ctx.beginPath();
    ctx.moveTo(...at(card?.row ?? row));
    ctx.lineTo(...at(row));
    rimmed(layer, colour, 2, right ? [] : [6, 4]);
    ring(layer, at(row), 7, colour);
  }
}

// Write the largest classes first, each at its most central point or next to it; a name is dimmed
// with its point.
// images, kept: areas that no name may cover
// Returns true if some name is displaced, with a dot in its point
function names({ ctx, map, cloud, view, ink, paper, at }: Layer, images: Box[], kept: Box[]) {
  const { s } = map,
    states = s.states.peek(),
    counts = s.counts.peek().classes,
    { left, right, bottom, top } = windowOf(view),
    narrow = view.width < NARROW;
  ctx.font = `600 ${narrow ? 11 : 12.5}px ${map.font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const wanted: (Name & { text: string; dim: boolean })[] = [];
  for (const c of s.bySize.peek()) {
    const [u, v] = [cloud.x(c.row), cloud.y(c.row)],
      shown = (counts?.[c.place] ?? 1) > 0 && matches(s, c.label);
    if (!shown || u < left || u > right || v < bottom || v > top) continue;
    const [x, y] = at(c.row),
      text = shortened(c.name),
      image = images.find((o) => x > o[0] && x < o[2] && y > o[1] && y < o[3]),
      gap = image && Math.max(image[2] - image[0], image[3] - image[1]) / 2,
      width = ctx.measureText(text).width + 8;
    wanted.push({ text, dim: !(states[c.row] & 1), x, y, width, height: narrow ? 15 : 17, gap });
    if (wanted.length >= MOST_TRIED) break;
  }
  const covered = ([x0, y0, x1, y1]: Box) => {
    const [west, north] = view.from([x0, y0]),
      [east, south] = view.from([x1, y1]);
    const box = { left: west, right: east, bottom: south, top: north },
      few = s.bySize.peek().length <= FEW_CLASSES,
      { length } = cloud.within(box, few ? Infinity : MOST_COVERED);
    return few || length <= MOST_COVERED ? length : Infinity;
  };
  let moved = false;
  placeNames(wanted, view, MOST_NAMES, [...images, ...kept], narrow ? covered : undefined).forEach(
    (place, k) => {
      if (!place) return;
      const { text, dim, gap, x, y } = wanted[k];
      ctx.globalAlpha = dim ? DIM : 1;
      if (place.moved && !gap) {
        ctx.beginPath();
        ctx.arc(x, y, 1.8, 0, 2 * Math.PI);
        ctx.fillStyle = ink;
        ctx.fill();
        moved = true;
      }
      halo(ctx, text, place.x, place.y, ink, paper, 4);
    },
  );
  ctx.globalAlpha = 1;
  return moved;
}

function lasso(layer: Layer, line: number[][]) {
  const { ctx, view, ink } = layer;
  ctx.beginPath();
  trace(ctx, view, line);
  ctx.closePath();
  ctx.fillStyle = "rgba(230, 159, 0, .14)";
  ctx.fill();
  rimmed(layer, ink, 1.5, [6, 4]);
}
