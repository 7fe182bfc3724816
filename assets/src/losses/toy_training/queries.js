// Queries and their neighbours as images: one row per query with the pooling weights on the query,
// then its nearest neighbours, right or wrong. Everything comes from Python; one file holds all
// images.
/** @import { History } from "./history.js" */
/** @import { Known, ImageSheet, Row, Scene } from "./types.js" */
/** @import { Context, Ink, Theme } from "../../kit/types.js" */
import { INK } from "../../kit/colours.js";
import { projector } from "./cloud.js";

const AVERAGE = 64,
  RIGHT = "#009E73",
  WRONG = "#D55E00",
  GAP = 5;

// Return the images of an answer, once the browser has decoded them.
/** @param {Known} known */
export async function sheetOf({ sheet, columns, side }) {
  const image = await createImageBitmap(
    new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (sheet)], { type: "image/jpeg" }),
  );
  return { image, columns, side };
}

// Return the rows of neighbours and the weight map of each query of a side at a step.
/**
 * @param {History} history
 * @param {number} i
 * @param {number} step
 */
export function rowsOf({ data, sides }, i, step) {
  const found = sides[i]?.asked.get(step);
  if (!found || !data) return [];
  return data.queries.map((query, q) => ({
    query,
    next: [...found.neighbours.subarray(q * found.count, (q + 1) * found.count)],
    weights: found.weights?.subarray(q * found.positions, (q + 1) * found.positions),
  }));
}

/**
 * @param {Row} row
 * @param {ArrayLike<number>} labels
 */
export const rightOf = (row, labels) =>
  row.next.filter((k) => labels[k] === labels[row.query]).length;

// Mark each query on the map and draw a line to each of its neighbours.
/**
 * @param {Context} ctx
 * @param {number} size
 * @param {Scene} scene
 * @param {Row[]} rows
 */
export function linkQueries(ctx, size, scene, rows) {
  const at = projector(scene, scene.window, size);
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
    ctx.strokeStyle = "#E69F00";
    ctx.lineWidth = 2.4;
    ctx.beginPath();
    ctx.arc(x, y, 8, 0, 7);
    ctx.stroke();
  }
}

// Size in CSS pixels: as wide as the canvas, one row per query.
/**
 * @param {Context} ctx
 * @param {number} width
 * @param {Row[]} rows
 * @param {ArrayLike<number>} labels
 * @param {ImageSheet} sheet
 * @param {Theme} theme
 */
export function paintQueries(ctx, width, rows, labels, sheet, theme) {
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

/**
 * @param {Context} ctx
 * @param {ImageSheet} images
 * @param {number} k
 * @param {number} x
 * @param {number} y
 * @param {number} tile
 */
function drawTile(ctx, { image, columns, side }, k, x, y, tile) {
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
/**
 * @param {Context} ctx
 * @param {Uint8Array} weights
 * @param {number} x
 * @param {number} y
 * @param {number} tile
 */
function weigh(ctx, weights, x, y, tile) {
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

/**
 * @param {Context} ctx
 * @param {boolean} right
 * @param {number} x
 * @param {number} y
 * @param {number} r
 * @param {Ink} ink
 */
function mark(ctx, right, x, y, r, ink) {
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
