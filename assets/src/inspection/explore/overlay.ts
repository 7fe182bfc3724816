// Layers over the points: images, lines to neighbours, names, rings, the lasso.
import type { Neighbour } from "./types.ts";
import type { MapView } from "./explore.ts";
import type { Box } from "./labels.ts";
import type { Context } from "../../kit/types.ts";
import { INK } from "../../kit/colours.ts";
import { STEPS } from "./cloud.ts";
import { placeNames } from "./labels.ts";

export const { right: RIGHT, wrong: WRONG, selected: SELECTED } = INK.light;
const UNJUDGED = INK.light.unjudged; // lines to neighbours without labels
const MOST_IMAGES = 150,
  MOST_NAMES = 50,
  MOST_TRIED = 300,
  MOST_LINES = 8,
  DIM = 0.35, // opacity of a name whose point is not highlighted
  KEPT = 600;

export const shortened = (name: string, most = 24) =>
  name.length > most ? [...name].slice(0, most - 1).join("") + "…" : name;

// Images by address, fetched once; `arrived` is called whenever another image can be drawn.
export class ImageCache {
  arrived: () => void;
  ready: WeakSet<HTMLImageElement>;
  kept: Map<string, HTMLImageElement>;
  constructor(arrived: () => void) {
    this.arrived = arrived;
    this.ready = new WeakSet();
    this.kept = new Map();
  }

  get(address: string) {
    const image = this.kept.get(address) ?? this.fetchImage(address);
    this.kept.delete(address); // mark as most recently used
    this.kept.set(address, image);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(oldest);
    }
    return this.ready.has(image) ? image : null;
  }

  fetchImage(address: string) {
    const image = new Image();
    image.onload = () => {
      this.ready.add(image);
      this.arrived();
    };
    image.src = address;
    return image;
  }
}

export function paintOver(ctx: Context, map: MapView) {
  const { camera, cloud, ink, paper } = map;
  ctx.clearRect(0, 0, camera.width, camera.height);
  if (map.look.contours) contours(ctx, map);
  const images = map.look.images ? thumbnails(ctx, map) : [];
  map.imagesDrawn = images.length;
  if (map.near) lines(ctx, map, map.near.row, map.near.neighbours.slice(0, MOST_LINES));
  map.namesMoved = map.look.names && map.data.labelled && names(ctx, map, images);
  for (const row of map.marked) ring(ctx, camera.at(cloud, row), map.radius() + 7, SELECTED, paper);
  if (map.data.own) drawOwnImage(ctx, map, map.data.own);
  if (map.hovered >= 0) ring(ctx, camera.at(cloud, map.hovered), map.radius() + 4, ink, paper);
  if (map.line) lasso(ctx, map, map.line);
}

// Mark the position of the visitor's own image.
function drawOwnImage(ctx: Context, map: MapView, [u, v]: number[]) {
  const [x, y] = map.camera.pixels(u, v);
  ring(ctx, [x, y], 9, SELECTED, map.paper);
  ring(ctx, [x, y], 2, SELECTED, map.paper);
  ctx.font = "600 13px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  ctx.lineWidth = 4;
  ctx.strokeStyle = map.paper;
  ctx.strokeText("your image", x, y - 15);
  ctx.fillStyle = map.ink;
  ctx.fillText("your image", x, y - 15);
}

function ring(ctx: Context, [x, y]: number[], r: number, colour: string, paper: string) {
  for (const [style, width] of [
    [paper, 5],
    [colour, 2.5],
  ] as const) {
    ctx.beginPath();
    ctx.arc(x, y, r, 0, 2 * Math.PI);
    ctx.strokeStyle = style;
    ctx.lineWidth = width;
    ctx.stroke();
  }
}

// Draw points as images if so few are in view that all images fit; the hovered one is in front.
// Returns positions of the images
function thumbnails(ctx: Context, map: MapView): Box[] {
  const { camera, cloud, data, hovered } = map,
    rows = cloud.within(camera.window(), MOST_IMAGES);
  if (!rows.length || rows.length > MOST_IMAGES) return [];
  const boxes: Box[] = [];
  const room = Math.sqrt((camera.width * camera.height) / rows.length),
    side = Math.min(72, Math.max(26, 0.55 * room));
  const front = (row: number) => 2 * Number(row === hovered) + (map.states[row] & 1);
  rows.sort((a, b) => front(a) - front(b));
  for (const row of rows) {
    const image = map.thumbs.get(data.images + cloud.indices[row]);
    if (!image) continue;
    const s = row === hovered ? 1.5 * side : side,
      [x, y] = camera.at(cloud, row),
      k = s / Math.max(image.naturalWidth, image.naturalHeight);
    const w = k * image.naturalWidth,
      h = k * image.naturalHeight,
      { colour, dashed } = map.edge(row);
    ctx.globalAlpha = map.states[row] & 1 ? 1 : 0.3;
    ctx.fillStyle = map.paper;
    ctx.fillRect(x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4);
    ctx.drawImage(image, x - w / 2, y - h / 2, w, h);
    ctx.strokeStyle = colour;
    ctx.lineWidth = map.states[row] & 2 ? 4 : 2;
    ctx.setLineDash(dashed ? [5, 3] : []);
    ctx.strokeRect(x - w / 2 - 1, y - h / 2 - 1, w + 2, h + 2);
    boxes.push([x - w / 2 - 2, y - h / 2 - 2, x + w / 2 + 2, y + h / 2 + 2]);
  }
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
  return boxes;
}

// Draw density contours; heavier lines mean denser regions.
function contours(ctx: Context, map: MapView) {
  const found = map.contours();
  if (!found) return;
  const { camera } = map,
    { xy, ends, shares } = found;
  ctx.strokeStyle = map.ink;
  ctx.lineWidth = 1;
  let from = 0;
  shares.forEach((share, k) => {
    ctx.globalAlpha = 0.75 - 0.5 * share;
    ctx.beginPath();
    for (let i = from; i < ends[k]; i++) {
      const [x, y] = camera.pixels(xy[2 * i] / STEPS, xy[2 * i + 1] / STEPS);
      ctx[i > from ? "lineTo" : "moveTo"](x, y);
    }
    ctx.stroke();
    from = ends[k];
  });
  ctx.globalAlpha = 1;
}

// Draw lines from the opened point to its nearest neighbours: correct ones solid, wrong ones
// dashed.
function lines(
  ctx: Context,
  { camera, cloud, data, paper }: MapView,
  from: number,
  neighbours: Neighbour[],
) {
  const [x, y] = camera.at(cloud, from);
  neighbours.forEach(({ row, right: same }) => {
    const right = same || !data.labelled,
      colour = !data.labelled ? UNJUDGED : right ? RIGHT : WRONG;
    const [u, v] = camera.at(cloud, row);
    for (const [style, width] of [
      [paper, 4],
      [colour, 2],
    ] as const) {
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(u, v);
      ctx.strokeStyle = style;
      ctx.lineWidth = width;
      ctx.setLineDash(right || style === paper ? [] : [6, 4]);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ring(ctx, [u, v], 7, colour, paper);
  });
}

// Write the largest classes first, each at its most central point or next to it; a name is dimmed
// with its point.
// images: areas that no name may cover
// Returns true if some name is displaced, with a dot in its point
function names(ctx: Context, map: MapView, images: Box[]): boolean {
  const { camera, cloud } = map,
    view = camera.window();
  ctx.font = `600 12.5px ${map.font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  const wanted: {
    text: string;
    dim: boolean;
    x: number;
    y: number;
    width: number;
    height: number;
    gap?: number;
  }[] = [];
  for (const c of map.bySize) {
    const x = cloud.x(c.row),
      y = cloud.y(c.row);
    if (!map.isVisible(c) || x < view.left || x > view.right || y < view.bottom || y > view.top)
      continue;
    const at = camera.at(cloud, c.row),
      text = shortened(c.name);
    const image = images.find((o) => at[0] > o[0] && at[0] < o[2] && at[1] > o[1] && at[1] < o[3]);
    wanted.push({
      text,
      dim: !(map.states[c.row] & 1),
      x: at[0],
      y: at[1],
      width: ctx.measureText(text).width + 8,
      height: 17,
      ...(image && { gap: Math.max(image[2] - image[0], image[3] - image[1]) / 2 }),
    });
    if (wanted.length >= MOST_TRIED) break;
  }
  let moved = false;
  placeNames(wanted, camera, MOST_NAMES, images).forEach((place, k) => {
    if (!place) return;
    const { text, dim, gap, x, y } = wanted[k];
    ctx.globalAlpha = dim ? DIM : 1;
    if (place.moved && !gap) {
      dot(ctx, x, y, map.ink);
      moved = true;
    }
    ctx.strokeStyle = map.paper;
    ctx.lineWidth = 4;
    ctx.strokeText(text, place.x, place.y);
    ctx.fillStyle = map.ink;
    ctx.fillText(text, place.x, place.y);
  });
  ctx.globalAlpha = 1;
  return moved;
}

// Mark the point of a displaced name with a dot.
function dot(ctx: Context, x: number, y: number, colour: string) {
  ctx.beginPath();
  ctx.arc(x, y, 1.8, 0, 2 * Math.PI);
  ctx.fillStyle = colour;
  ctx.fill();
}

function lasso(ctx: Context, { camera, ink, paper }: MapView, line: number[][]) {
  ctx.beginPath();
  line.forEach(([u, v], k) => {
    const [x, y] = camera.pixels(u, v);
    ctx[k ? "lineTo" : "moveTo"](x, y);
  });
  ctx.closePath();
  ctx.fillStyle = "rgba(230, 159, 0, .14)";
  ctx.fill();
  for (const [style, width] of [
    [paper, 4],
    [ink, 1.5],
  ] as const) {
    ctx.strokeStyle = style;
    ctx.lineWidth = width;
    ctx.setLineDash(style === ink ? [6, 4] : []);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}
