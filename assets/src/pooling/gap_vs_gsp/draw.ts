// Painting of one pooling's plane: hulls, bags, tokens, prototypes; all numbers come from Python.
import type { Shown, SideFrame } from "./types.ts";
import type { View } from "../../kit/figure/view.ts";
import type { Context, Theme } from "../../kit/types.ts";
import { INK, LISTS, halo } from "../../kit/colours.ts";
import { shape } from "../../kit/plot.ts";

// Eight Okabe-Ito colours, used twice: classes 9 to 16 are squares with dashed hulls.
const COLOURS = LISTS.classes;
export const colourOf = (label: number, theme: Theme) => COLOURS[theme][label % 8];
export const shapeOf = (label: number) => (label < 8 ? "circle" : "square");
export const OWN = 4; // own tokens per class

// Paint a plane. chosen: the highlighted class, or null; shown = {samples, hulls, prototypes}.
export function paintPlane(
  ctx: Context,
  view: View,
  frame: SideFrame,
  labels: ArrayLike<number>,
  { chosen, shown, bound }: { chosen: number | null; shown: Shown; bound: number },
  theme: Theme,
) {
  const ink = INK[theme],
    at = (x: number, y: number) => view.to([x, y]),
    size = view.width,
    shared = frame.classes * OWN,
    scale = Math.max(0.72, Math.min(size / 460, 1.15));
  const order = [...Array(frame.classes).keys()].sort(
    (a, b) => Number(a === chosen) - Number(b === chosen),
  );
  const faint = (label: number) => (chosen === null || chosen === label ? 1 : 0.16);
  const [left, top] = at(-bound, bound),
    [right, bottom] = at(bound, -bound);
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.setLineDash([3, 4]);
  ctx.strokeRect(Math.round(left) + 0.5, Math.round(top) + 0.5, right - left, bottom - top);
  ctx.setLineDash([]);

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
    const isLeft = x > size - 34 * scale; // of its token
    ctx.textAlign = isLeft ? "right" : "left";
    halo(ctx, `S${s + 1}`, x + (isLeft ? -11 : 11) * scale, y, ink.text, ink.page, 3.5);
  }
  ctx.textBaseline = "alphabetic";
}

// Return the class of the own token or bag nearest to a pixel, or null if none is near.
export function classAt(
  frame: SideFrame,
  labels: ArrayLike<number>,
  { to }: View,
  [px, py]: readonly number[],
  reach: number,
) {
  let best: number | null = null;
  let least = reach;
  const look = (x: number, y: number, label: number, bonus: number) => {
    const [u, v] = to([x, y]),
      d = Math.hypot(u - px, v - py) - bonus;
    if (d < least) [best, least] = [label, d];
  };
  for (let i = 0; i < labels.length; i++)
    look(frame.samples[2 * i], frame.samples[2 * i + 1], labels[i], 0);
  for (let t = 0; t < frame.classes * OWN; t++)
    look(frame.tokens[2 * t], frame.tokens[2 * t + 1], Math.floor(t / OWN), 4);
  return best;
}
