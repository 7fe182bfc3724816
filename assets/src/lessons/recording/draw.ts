// Painting of recordings: proxies among their samples in a disc, and curves over the frames.
import type { Place, RecordingData } from "./types.ts";
import type { Context } from "../../kit/types.ts";
import type { Frame } from "../../kit/figure/spec.ts";
import { paintSteps } from "../../kit/chart/steps.tsx";
import { LISTS } from "../../kit/colours.ts";
import { plane } from "../../kit/figure/view.ts";
import { SHAPES, shape } from "../../kit/plot.ts";

const UNIT = 1000; // units per radius of the disc
const RIM = 1.06; // half the side of the view, in radii of the disc
const SMOOTH = 15; // frames per running mean
// Colours by class, as on paper (dmlcore/figures/recordings.py).
export const COLOURS = LISTS.recording;
export const DASHES = [[], [7, 3], [7, 3, 2, 3], [2, 3]];
export const PROJECTIONS = {
  label: "samples, and diamonds among them",
  view: (width: number, height: number) => plane([0, 0, RIM], width, height),
};

// Paint the disc between two frames.
export function paintProjections(
  ctx: Context,
  { view, ink, theme }: Frame,
  { places, labels, proxies, steps }: RecordingData,
  [from, to, share]: Place,
) {
  // When a projection ends, two frames have the same step: proxies jump there, as they did in
  // training.
  const jumps = steps[from] === steps[to] && share < 1,
    colours = COLOURS[theme],
    value = (i: number) => {
      const a = places[from][i];
      return (jumps ? a : a + share * (places[to][i] - a)) / UNIT;
    },
    at = (i: number) => view.to([value(2 * i), value(2 * i + 1)]);
  ctx.strokeStyle = ink.faint;
  ctx.beginPath();
  ctx.arc(...view.to([0, 0]), view.scale, 0, 7);
  ctx.stroke();
  ctx.globalAlpha = 0.6;
  labels.forEach((label, i) => {
    ctx.fillStyle = colours[label];
    shape(ctx, SHAPES[label % SHAPES.length], ...at(i), 3.4);
    ctx.fill();
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ink.text;
  ctx.lineWidth = 1.2;
  const count = places[from].length / 2 - labels.length;
  for (let i = 0; i < count; i++) {
    ctx.fillStyle = colours[Math.floor(i / proxies)];
    shape(ctx, "diamond", ...at(labels.length + i), 7);
    ctx.fill();
    ctx.stroke();
  }
}

// Paint curve `index` over all frames, with a line between two of them.
export function paintCurves(
  ctx: Context,
  { view, theme }: Frame,
  { curves, steps }: RecordingData,
  [from, to, share]: Place,
  index: number,
) {
  const { title, values, noisy } = curves[index],
    lines = values[0].map((_, i) => {
      const value = (k: number) => values[k][i],
        line = { colour: COLOURS[theme][i], dash: DASHES[i] };
      return noisy ? { ...line, value: recent(values, i), noisy: value } : { ...line, value };
    }),
    at = { last: steps.length - 1, step: from + share * (to - from) };
  paintSteps(ctx, view, lines, at, { title, theme });
}

// Return the running mean of a curve over the last frames.
const recent = (values: number[][], i: number) => (k: number) => {
  const rows = values.slice(Math.max(0, k + 1 - SMOOTH), k + 1);
  return rows.reduce((sum, row) => sum + row[i], 0) / rows.length;
};
