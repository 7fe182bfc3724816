// Painting of the maps; all numbers come from Python. Similarities run from -1 to 1, to the right
// and upwards.
import type { Frame, WeightMap, PairWeightsAnswer, Triplet } from "./types.ts";
import type { Context, Ink, Place, Theme } from "../../../kit/types.ts";
import { drawing } from "../../../kit/dom.ts";
import { INK, halo, rampColour, signedColour } from "../../../kit/colours.ts";

const MARGIN = 30; // pixels left and below for the axes

// Return the square of the map within a canvas of `size` pixels, with the mappings between
// similarities and pixels.
export function frameOf(size: number): Frame {
  const side = size - MARGIN - 6;
  return {
    left: MARGIN,
    top: 6,
    side,
    to: ([x, y]: number[]) => [MARGIN + ((x + 1) / 2) * side, 6 + ((1 - y) / 2) * side],
    from: ([u, v]: number[]) => [((u - MARGIN) / side) * 2 - 1, 1 - ((v - 6) / side) * 2],
  };
}

// Return the colours of one map; transparent where no triplet exists.
export function rasterise(
  { n, exists, signed }: PairWeightsAnswer,
  weight: Uint8Array,
  theme: Theme,
) {
  const table = Array.from({ length: 256 }, (_, i) =>
    signed ? signedColour(Math.max((i - 128) / 127, -1), theme) : rampColour(i / 255, theme),
  );
  const image = new ImageData(n, n);
  for (let row = 0; row < n; row++) {
    for (let col = 0; col < n; col++) {
      const from = row * n + col;
      image.data.set([...table[weight[from]], exists[from]], ((n - 1 - row) * n + col) * 4);
    }
  }
  const canvas = new OffscreenCanvas(n, n);
  drawing(canvas).putImageData(image, 0, 0);
  return canvas;
}

export function paintMap(
  ctx: Context,
  size: number,
  { raster, lines, corners, at, hover }: WeightMap,
  theme: Theme,
) {
  const ink = INK[theme],
    frame = frameOf(size),
    { left, top, side, to } = frame;
  ctx.clearRect(0, 0, size, size);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, side, side);
  ctx.clip();
  ctx.strokeStyle = ink.hatch;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let x = -side; x < side; x += 8) {
    ctx.moveTo(left + x, top + side);
    ctx.lineTo(left + x + side, top);
  }
  ctx.stroke();
  if (raster && lines && corners) {
    ctx.imageSmoothingEnabled = true;
    ctx.drawImage(raster, left, top, side, side);
    let k = 0;
    ctx.strokeStyle = ink.outer;
    ctx.lineWidth = 1.75;
    for (const [name, dash] of [
      ["outer", []],
      ["inner", [6, 4]],
    ] as const) {
      ctx.setLineDash(dash);
      for (const count of lines[name]) {
        ctx.beginPath();
        for (let i = 0; i < count; i++, k++) {
          const [x, y] = to([corners[2 * k] / 32767.5 - 1, corners[2 * k + 1] / 32767.5 - 1]);
          if (i) ctx.lineTo(x, y);
          else ctx.moveTo(x, y);
        }
        ctx.stroke();
      }
    }
    ctx.setLineDash([]);
  }
  const [x0, y0] = to([-1, -1]),
    [x1, y1] = to([1, 1]);
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.setLineDash([1, 4]);
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1); // pair and rival equally similar
  ctx.stroke();
  ctx.setLineDash([]);
  if (hover) cross(ctx, to(hover), ink, false);
  cross(ctx, to(at), ink, true);
  ctx.restore();
  axes(ctx, size, frame, ink);
}

function cross(ctx: Context, [x, y]: number[], ink: Ink, pinned: boolean) {
  for (const [colour, width] of [
    [ink.rim, 4],
    [ink.text, 1.75],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    if (pinned) ctx.arc(x, y, 7, 0, 2 * Math.PI);
    ctx.moveTo(x - 12, y);
    ctx.lineTo(x - 4, y);
    ctx.moveTo(x + 4, y);
    ctx.lineTo(x + 12, y);
    ctx.moveTo(x, y - 12);
    ctx.lineTo(x, y - 4);
    ctx.moveTo(x, y + 4);
    ctx.lineTo(x, y + 12);
    ctx.stroke();
  }
}

function axes(ctx: Context, size: number, { left, top, side, to }: Frame, ink: Ink) {
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.strokeRect(left + 0.5, top + 0.5, side, side);
  ctx.fillStyle = ink.text;
  ctx.font = "11px system-ui, sans-serif";
  for (const v of [-1, -0.5, 0.5, 1]) {
    const [x] = to([v, 0]),
      [, y] = to([0, v]),
      label = String(v).replace("-", "−");
    ctx.textAlign = v === -1 ? "left" : v === 1 ? "right" : "center";
    ctx.textBaseline = "alphabetic";
    ctx.fillText(label, x, size - 10);
    ctx.textAlign = "right";
    ctx.textBaseline = v === -1 ? "bottom" : v === 1 ? "top" : "middle";
    ctx.fillText(label, left - 5, y);
  }
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  named(ctx, "ap", left + side / 2, size - 10);
  named(ctx, "an", left - 15, top + side / 2 + 4);
}

function named(ctx: Context, pair: string, x: number, y: number) {
  ctx.font = "italic 13px Georgia, serif";
  ctx.fillText("S", x - 5, y);
  ctx.font = "italic 9px Georgia, serif";
  ctx.fillText(pair, x + 5, y + 4);
}

// Draw the sphere as seen from the anchor: the distance from the centre is the angle to the anchor,
// the rim is its antipode.
export function paintSphere(
  ctx: Context,
  size: number,
  triplet: Triplet | null | undefined,
  theme: Theme,
) {
  const ink = INK[theme],
    half = size / 2,
    radius = Math.max(half - 16, 0); // no size while the visitor leaves the page
  const to: (place: readonly number[]) => [number, number] = ([x, y]) => [
    half + x * radius,
    half - y * radius,
  ];
  ctx.clearRect(0, 0, size, size);
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
    line.forEach((q, i) => {
      if (i) ctx.lineTo(...to(q));
      else ctx.moveTo(...to(q));
    });
    ctx.stroke();
    ctx.setLineDash([]);
  };
  path([[0, 0], p], ink.positive, []);
  path([[0, 0], n], ink.negative, [4, 4]);
  path(arc, ink.negative, [4, 4]);
  for (const [name, letter, at] of [
    ["anchor", "A", [0, 0]],
    ["positive", "P", p],
    ["negative", "N", n],
  ] as const) {
    const [x, y] = to(at);
    ctx.fillStyle = ink[name];
    ctx.strokeStyle = ink.rim;
    ctx.lineWidth = 2;
    ctx.beginPath();
    if (name === "negative") ctx.rect(x - 8, y - 8, 16, 16);
    else ctx.arc(x, y, 9, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
    ctx.fillStyle = ink.rim;
    ctx.font = "700 11px system-ui, sans-serif";
    ctx.fillText(letter, x, y + 0.5);
  }
}
