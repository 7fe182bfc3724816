// Queries and their neighbours as images: one row per query with the pooling weights on the query,
// then its nearest neighbours, right or wrong. Everything comes from Python; one file holds all
// images.
import type { History } from "./history.ts";
import type { Known, ImageSheet, Row, Scene } from "./types.ts";
import type { View } from "../../kit/figure/view.ts";
import type { Context, Ink, Theme } from "../../kit/types.ts";
import { INK } from "../../kit/colours.ts";
import { projector } from "./cloud.ts";

const AVERAGE = 64,
  RIGHT = INK.light.right,
  WRONG = INK.light.wrong,
  GAP = 5;

// Return the images of an answer, once the browser has decoded them.
export async function sheetOf({ sheet, columns, side }: Known) {
  const image = await createImageBitmap(
    new Blob([sheet as Uint8Array<ArrayBuffer>], { type: "image/jpeg" }),
  );
  return { image, columns, side };
}

// Return the rows of neighbours and the weight map of each query of a side at a step.
export function rowsOf({ data, sides }: History, i: number, step: number) {
  const found = sides[i]?.asked.get(step);
  if (!found || !data) return [];
  return data.queries.map((query, q) => ({
    query,
    next: [...found.neighbours.subarray(q * found.count, (q + 1) * found.count)],
    weights: found.weights?.subarray(q * found.positions, (q + 1) * found.positions),
  }));
}

export const rightOf = (row: Row, labels: ArrayLike<number>) =>
  row.next.filter((k) => labels[k] === labels[row.query]).length;

// Mark each query on the map and draw a line to each of its neighbours.
export function linkQueries(ctx: Context, { to }: View, scene: Scene, rows: Row[]) {
  const place = projector(scene),
    at = (i: number) => to(place(i));
  for (const { query, next } of rows) {
    const [x, y] = at(query);
    for (const k of next) {
      const right = scene.labels[k] === scene.labels[query],
        [toX, toY] = at(k);
      ctx.strokeStyle = right ? RIGHT : WRONG;
      ctx.lineWidth = right ? 2 : 1.2;
      ctx.setLineDash(right ? [] : [4, 3]);
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(toX, toY);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.strokeStyle = INK.light.selected;
    ctx.lineWidth = 2.4;
    ctx.beginPath();
    ctx.arc(x, y, 8, 0, 7);
    ctx.stroke();
  }
}

// Size in CSS pixels: as wide as the canvas, one row per query.
export function paintQueries(
  ctx: Context,
  width: number,
  rows: Row[],
  labels: ArrayLike<number>,
  sheet: ImageSheet,
  theme: Theme,
) {
  const count = 1 + Math.max(0, ...rows.map((row) => row.next.length)),
    tile = Math.floor((width - GAP * (count + 1)) / count),
    ink = INK[theme];
  ctx.clearRect(0, 0, width, rows.length * (tile + GAP) + GAP);
  rows.forEach((row, r) => {
    const y = r * (tile + GAP) + GAP / 2;
    drawTile(ctx, sheet, row.query, GAP / 2, y, tile);
    if (row.weights) weigh(ctx, row.weights, GAP / 2, y, tile);
    row.next.forEach((k, c) => {
      const x = (c + 1) * (tile + GAP) + 2 * GAP,
        right = labels[k] === labels[row.query];
      drawTile(ctx, sheet, k, x, y, tile);
      ctx.lineWidth = 3;
      ctx.strokeStyle = right ? RIGHT : WRONG;
      ctx.setLineDash(right ? [] : [5, 3]);
      ctx.strokeRect(x + 1.5, y + 1.5, tile - 3, tile - 3);
      ctx.setLineDash([]);
      const radius = Math.min(7, tile / 6);
      mark(ctx, right, x + tile - radius - 2, y + radius + 2, radius, ink);
    });
  });
}

function drawTile(
  ctx: Context,
  { image, columns, side }: ImageSheet,
  k: number,
  x: number,
  y: number,
  tile: number,
) {
  ctx.drawImage(
    image,
    (k % columns) * side,
    Math.floor(k / columns) * side,
    side,
    side,
    x,
    y,
    tile,
    tile,
  );
}

// Shade an image: dark where the pooling weight is below the average, orange where it is above.
function weigh(ctx: Context, weights: Uint8Array, x: number, y: number, tile: number) {
  const n = Math.round(Math.sqrt(weights.length)),
    cell = tile / n;
  weights.forEach((w, k) => {
    const more = (w - AVERAGE) / AVERAGE;
    ctx.fillStyle =
      more < 0
        ? `rgba(0, 0, 0, ${Math.min(0.8, -1.6 * more)})`
        : `rgba(230, 159, 0, ${Math.min(0.65, 0.8 * more)})`;
    ctx.fillRect(x + (k % n) * cell, y + Math.floor(k / n) * cell, cell + 0.5, cell + 0.5);
  });
}

function mark(ctx: Context, right: boolean, x: number, y: number, r: number, ink: Ink) {
  ctx.fillStyle = ink.page;
  ctx.beginPath();
  ctx.arc(x, y, r, 0, 7);
  ctx.fill();
  ctx.font = `bold ${1.6 * r}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = right ? RIGHT : WRONG;
  ctx.fillText(right ? "✓" : "✗", x, y + 0.5);
}
