// Map over the two angles that determine a triplet on the circle: P and N, relative to the anchor.
import type { AngleMap, Frame, Scene, SphereAnswer } from "./types.ts";
import type { Context, Ink, Point, Theme } from "../../../kit/types.ts";
import { drawing } from "../../../kit/dom.ts";
import { INK, halo, rampColour } from "../../../kit/colours.ts";
import { veiled } from "../../../kit/veil.ts";

const ROOM = { left: 46, right: 12, top: 12, bottom: 40 }; // margins of the map, px
export const wrap = (degrees: number) => degrees - 360 * Math.round(degrees / 360); // wraps to -180..180

export function mapRasters(answer: SphereAnswer, theme: Theme) {
  const { n } = answer.map as AngleMap,
    { map_shade: shade, map_active: bits } = answer,
    colour = new ImageData(n, n),
    veil = new ImageData(n, n);
  for (let row = 0; row < n; row++) {
    for (let col = 0; col < n; col++) {
      const from = row * n + col,
        to = ((n - 1 - row) * n + col) * 4;
      colour.data.set([...rampColour(shade[from] / 255, theme), 255], to);
      veil.data[to + 3] = bits[from >> 3] & (128 >> (from & 7)) ? 0 : 255;
    }
  }
  return [colour, veil].map((image) => {
    const canvas = new OffscreenCanvas(n, n);
    drawing(canvas).putImageData(image, 0, 0);
    return canvas;
  });
}

export function mapFrame(size: number) {
  const side = size - Math.max(ROOM.left + ROOM.right, ROOM.top + ROOM.bottom),
    left = ROOM.left,
    top = ROOM.top;
  return {
    side,
    left,
    top,
    to: (([x, y]: number[]) => [
      left + (x / 360 + 0.5) * side,
      top + (0.5 - y / 360) * side,
    ]) as Frame["to"],
    from: (([u, v]: number[]) => [
      ((u - left) / side - 0.5) * 360,
      (0.5 - (v - top) / side) * 360,
    ]) as Frame["from"],
  };
}

export function paintMap(
  ctx: Context,
  size: number,
  scene: Scene,
  answer: SphereAnswer | undefined,
  rasters: OffscreenCanvas[] | undefined,
  theme: Theme,
) {
  const ink = INK[theme],
    frame = mapFrame(size),
    { side, left, top, to } = frame;
  ctx.clearRect(0, 0, size, size);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, side, side);
  ctx.clip();
  if (rasters && answer?.map) {
    // Nodes lie on the frame: half a cell extends beyond it.
    const cell = side / (answer.map.n - 1);
    ctx.imageSmoothingEnabled = true;
    ctx.drawImage(rasters[0], left - cell / 2, top - cell / 2, side + cell, side + cell);
    if (scene.region)
      veiled(
        ctx,
        size,
        rasters[1],
        { left: left - cell / 2, top: top - cell / 2, side: side + cell },
        ink,
      );
    lines(ctx, answer, answer.map, frame, scene.region, ink);
  }
  const here = [
    wrap(scene.positive[0] - scene.anchor[0]),
    wrap(scene.negative[0] - scene.anchor[0]),
  ];
  guides(ctx, frame, ink);
  sweep(ctx, scene.probe, here, frame);
  ctx.restore();
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.strokeRect(left, top, side, side);
  scaleText(ctx, frame, ink);
  const [x, y] = to(here);
  ctx.beginPath();
  ctx.arc(x, y, 8, 0, 7);
  ctx.fillStyle = INK.light.selected;
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
  { map_lines: ends }: SphereAnswer,
  map: AngleMap,
  { left, top, side }: Frame,
  region: boolean,
  ink: Ink,
) {
  let from = 0;
  const draw = (count: number, visible: boolean) => {
    ctx.beginPath();
    for (let i = 0; i < count; i++, from++) {
      const x = left + (ends[2 * from] / 65535) * side,
        y = top + side - (ends[2 * from + 1] / 65535) * side;
      if (i) ctx.lineTo(x, y);
      else ctx.moveTo(x, y);
    }
    if (visible) ctx.stroke();
  };
  ctx.strokeStyle = ink.outer;
  ctx.lineWidth = 1.9;
  for (const count of map.outer) draw(count, region);
  ctx.setLineDash([6, 4]);
  for (const count of map.inner) draw(count, region);
  ctx.setLineDash([]);
  ctx.lineWidth = 0.8;
  ctx.strokeStyle = ink.faint;
  for (const count of map.bands) draw(count, true);
}

// Draw where two points coincide: P = A, N = A, P = N.
function guides(ctx: Context, { to }: Frame, ink: Ink) {
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
function sweep(ctx: Context, probe: Point, [p, n]: number[], { to }: Frame) {
  ctx.strokeStyle = INK.light.selected;
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

function scaleText(ctx: Context, { to, left, top, side }: Frame, ink: Ink) {
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
