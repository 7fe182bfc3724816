// Painting of one pooling's plane: hulls, bags, tokens, prototypes; all numbers come from Python.
import type { Shown, SideFrame } from "./types.ts";
import type { Context, Ink, Theme } from "../../kit/types.ts";
import { INK, LISTS, halo, niceStep } from "../../kit/colours.ts";
import { shape } from "../../kit/plot.ts";

// Eight Okabe-Ito colours, used twice: classes 9 to 16 are squares with dashed hulls.
const COLOURS = LISTS.classes;
export const colourOf = (label: number, theme: Theme) => COLOURS[theme][label % 8];
export const shapeOf = (label: number) => (label < 8 ? "circle" : "square");
export const OWN = 4; // own tokens per class
const REACH = 0.33; // half the width of the view: the box of +-0.3 plus a margin

export const toPixels =
  (size: number): ((x: number, y: number) => [number, number]) =>
  (x, y) => [((x + REACH) / (2 * REACH)) * size, ((REACH - y) / (2 * REACH)) * size];

// Paint a plane. chosen: the highlighted class, or null; shown = {samples, hulls, prototypes}.
export function paintPlane(
  ctx: Context,
  size: number,
  frame: SideFrame,
  labels: ArrayLike<number>,
  { chosen, shown, bound }: { chosen: number | null; shown: Shown; bound: number },
  theme: Theme,
) {
  const ink = INK[theme],
    at = toPixels(size),
    shared = frame.classes * OWN,
    scale = Math.max(0.72, Math.min(size / 460, 1.15));
  const order = [...Array(frame.classes).keys()].sort(
    (a, b) => Number(a === chosen) - Number(b === chosen),
  );
  const faint = (label: number) => (chosen === null || chosen === label ? 1 : 0.16);
  ctx.globalAlpha = 1;
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, size, size);
  grid(ctx, size, at, bound, ink);

  if (shown.hulls)
    for (const label of order) {
      const corners = frame.hulls[label];
      if (!corners.length) continue;
      ctx.beginPath();
      for (let i = 0; i < corners.length; i += 2)
        ctx[i ? "lineTo" : "moveTo"](...at(corners[i], corners[i + 1]));
      ctx.closePath();
      ctx.fillStyle = ctx.strokeStyle = colourOf(label, theme);
      ctx.globalAlpha =
        (chosen === label ? 0.2 : 0.05) * (chosen === null || chosen === label ? 1 : 0.4);
      ctx.fill();
      ctx.globalAlpha =
        (chosen === label ? 1 : 0.6) * (chosen === null || chosen === label ? 1 : 0.3);
      ctx.lineWidth = chosen === label ? 2.4 : 1.1;
      ctx.setLineDash(label < 8 ? [] : [5, 3]);
      ctx.stroke();
      ctx.setLineDash([]);
    }

  if (shown.samples) {
    for (let i = 0; i < labels.length; i++) {
      const [x, y] = at(frame.samples[2 * i], frame.samples[2 * i + 1]);
      ctx.globalAlpha = 0.62 * faint(labels[i]);
      ctx.fillStyle = colourOf(labels[i], theme);
      shape(ctx, shapeOf(labels[i]), x, y, 2.9 * scale);
      ctx.fill();
    }
  }

  if (shown.prototypes) {
    ctx.globalAlpha = chosen === null ? 0.75 : 0.3;
    ctx.strokeStyle = ink.text;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let i = 0; i < frame.prototypes.length; i += 2) {
      const [x, y] = at(frame.prototypes[i], frame.prototypes[i + 1]);
      ctx.moveTo(x + 4 * scale, y);
      ctx.arc(x, y, 4 * scale, 0, 7);
    }
    ctx.stroke();
  }

  // Own tokens: large markers with an outline.
  for (const label of order)
    for (let t = label * OWN; t < (label + 1) * OWN; t++) {
      const [x, y] = at(frame.tokens[2 * t], frame.tokens[2 * t + 1]);
      ctx.globalAlpha = faint(label);
      shape(ctx, shapeOf(label), x, y, (chosen === label ? 8 : 6) * scale);
      ctx.fillStyle = colourOf(label, theme);
      ctx.fill();
      ctx.lineWidth = 1.4;
      ctx.strokeStyle = ink.rim;
      ctx.stroke();
    }

  // Shared tokens: diamonds with names; for a chosen class their size is the weight that class
  // gives them.
  ctx.globalAlpha = 1;
  ctx.font = `600 ${Math.round(11.5 * Math.max(scale, 0.9))}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (let s = 0; s < OWN; s++) {
    const t = shared + s,
      [x, y] = at(frame.tokens[2 * t], frame.tokens[2 * t + 1]);
    const used = chosen === null || frame.active(chosen, t);
    shape(ctx, "diamond", x, y, 8.4 * scale);
    ctx.fillStyle = used ? ink.anchor : ink.page;
    ctx.fill();
    ctx.lineWidth = 1.8;
    ctx.strokeStyle = used ? ink.rim : ink.anchor;
    ctx.stroke();
    const left = x > size - 34 * scale;
    ctx.textAlign = left ? "right" : "left";
    halo(ctx, `S${s + 1}`, x + (left ? -11 : 11) * scale, y, ink.text, ink.page, 3.5);
  }
  ctx.textBaseline = "alphabetic";
}

function grid(
  ctx: Context,
  size: number,
  at: (x: number, y: number) => [number, number],
  bound: number,
  ink: Ink,
) {
  const step = niceStep(2 * REACH, 6);
  ctx.strokeStyle = ink.grid;
  ctx.lineWidth = 1;
  ctx.font = "11px system-ui, sans-serif";
  ctx.fillStyle = ink.faint;
  ctx.textAlign = "center";
  for (let v = Math.ceil(-REACH / step) * step; v <= REACH; v += step) {
    const [x, y] = at(v, v).map((p) => Math.round(p) + 0.5);
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, size);
    ctx.moveTo(0, y);
    ctx.lineTo(size, y);
    ctx.stroke();
    if (x > 14 && x < size - 14) ctx.fillText(String(Number(v.toFixed(2))), x, size - 5);
  }
  const [x, y] = at(-bound, bound),
    [right, down] = at(bound, -bound);
  ctx.strokeStyle = ink.faint;
  ctx.setLineDash([3, 4]);
  ctx.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, right - x, down - y);
  ctx.setLineDash([]);
}

// Return the class of the own token or bag nearest to a pixel, or null if none is near.
export function classAt(
  frame: SideFrame,
  labels: ArrayLike<number>,
  size: number,
  px: number,
  py: number,
  reach: number,
) {
  const at = toPixels(size);
  let best: number | null = null;
  let least = reach;
  const look = (x: number, y: number, label: number, bonus: number) => {
    const [u, v] = at(x, y),
      d = Math.hypot(u - px, v - py) - bonus;
    if (d < least) [best, least] = [label, d];
  };
  for (let i = 0; i < labels.length; i++)
    look(frame.samples[2 * i], frame.samples[2 * i + 1], labels[i], 0);
  for (let t = 0; t < frame.classes * OWN; t++)
    look(frame.tokens[2 * t], frame.tokens[2 * t + 1], Math.floor(t / OWN), 4);
  return best;
}
