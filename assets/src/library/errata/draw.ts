// Figure of a counter-example as SVG: plane, triplet, and both gradients on each point; all numbers
// come from Python.
import type { Gradient, Label, Pixels, Scene, Side, TruthAnswer } from "./types.ts";
import type { Child, Ink, Place, Point, Theme } from "../../kit/types.ts";
import { drawing } from "../../kit/dom.ts";
import { INK, LETTER, POINTS, niceStep, rampColour } from "../../kit/colours.ts";
import { toPixels } from "../../kit/plane/view.ts";

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 0.23; // length of the longest of the six arrows, as a share of the frame

export function svg(
  tag: string,
  attributes: Record<string, string | number>,
  ...children: Child[]
) {
  const node = document.createElementNS(SVG, tag) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

// Return the map of the difference, n x n, as a data URL.
export function raster({ n, shade }: TruthAnswer, theme: Theme) {
  const canvas = document.createElement("canvas"),
    image = new ImageData(n, n);
  const table = Array.from({ length: 256 }, (_, i) => rampColour(i / 255, theme));
  for (let row = 0; row < n; row++)
    for (let col = 0; col < n; col++)
      image.data.set([...table[shade[row * n + col]], 255], ((n - 1 - row) * n + col) * 4);
  canvas.width = canvas.height = n;
  drawing(canvas).putImageData(image, 0, 0);
  return canvas.toDataURL();
}

export function figure(
  scene: Scene,
  answer: TruthAnswer | undefined,
  background: string,
  size: number,
  theme: Theme,
) {
  const ink = INK[theme],
    at = toPixels(scene.view, size),
    layers = [svg("rect", { width: size, height: size, fill: ink.page })];
  if (answer) {
    const [x, y, half] = answer.view,
      [left, top] = at([x - half, y + half]),
      [right] = at([x + half, y]);
    layers.push(
      svg("image", {
        href: background,
        x: left,
        y: top,
        width: right - left,
        height: right - left,
        preserveAspectRatio: "none",
      }),
    );
  }
  layers.push(grid(scene.view, size, ink), triangle(scene, at, ink));
  if (answer) layers.push(...arrows(scene, answer, at, size, theme));
  layers.push(...POINTS.map((name) => mark(name, at(scene[name]), ink, name === scene.probe)));
  return layers;
}

function grid(view: Place, size: number, ink: Ink) {
  const [x, y, half] = view,
    step = niceStep(2 * half),
    at = toPixels(view, size),
    digits = Math.max(0, -Math.floor(Math.log10(step))),
    group = svg("g", {});
  for (const [axis, centre] of [
    [0, x],
    [1, y],
  ] as const) {
    for (let k = Math.ceil((centre - half) / step); k * step <= centre + half; k++) {
      const place = at(axis ? [0, k * step] : [k * step, 0])[axis];
      group.append(
        svg(
          "line",
          axis
            ? { x1: 0, x2: size, y1: place, y2: place, stroke: ink.grid }
            : { x1: place, x2: place, y1: 0, y2: size, stroke: ink.grid },
        ),
      );
      if (place > 16 && place < size - 16)
        group.append(
          text(
            (k * step).toFixed(digits),
            axis ? [5, place + 4] : [place, size - 5],
            ink.text,
            ink.rim,
            axis ? "start" : "middle",
            11,
            400,
          ),
        );
    }
  }
  return group;
}

function triangle(scene: Scene, at: (place: Place) => Pixels, ink: Ink) {
  const [a, p, n] = POINTS.map((name) => at(scene[name]));
  return svg(
    "g",
    { "stroke-width": 1.4, fill: "none" },
    ...(
      [
        [a, p, ink.positive],
        [a, n, ink.negative],
        [p, n, ink.negative],
      ] as const
    ).map(([[x1, y1], [x2, y2], stroke]) => svg("line", { x1, y1, x2, y2, stroke, opacity: 0.55 })),
  );
}

// Draw both gradients of a point at one scale. True: solid and wide; printed: dashed on top, so
// that both are visible if they agree.
function arrows(
  scene: Scene,
  answer: TruthAnswer,
  at: (place: Place) => Pixels,
  size: number,
  theme: Theme,
) {
  const ink = INK[theme],
    all = [...answer.printed, ...answer.true].filter(finite).map((g) => Math.hypot(...g));
  const k = (LONGEST * size) / Math.max(...all, 1e-12),
    drawn: SVGElement[] = [],
    labels: Label[] = [];
  POINTS.forEach((name, i) => {
    const from = at(scene[name]);
    for (const [side, gradient] of [
      ["true", answer.true[i]],
      ["printed", answer.printed[i]],
    ] as const) {
      if (!finite(gradient)) {
        labels.push({
          side,
          at: [from[0], from[1] + (side === "true" ? 28 : 42)],
          words: "not finite",
          anchor: "middle",
        });
        continue;
      }
      const length = Math.hypot(...gradient),
        to = [from[0] + gradient[0] * k, from[1] - gradient[1] * k];
      if (length * k < 3) continue;
      drawn.push(arrow(from, to, side, name, theme, (answer.apart[i] ?? 1) < 1e-9));
      labels.push({
        side,
        length,
        i,
        at: labelPlace(from, to, size),
        words: length.toPrecision(3),
        anchor: "middle",
      });
    }
  });
  // If the two arrows of a point agree, one number serves both; other numbers avoid each other.
  const kept = labels.filter(
    (l) =>
      !(
        l.side === "printed" &&
        labels.some(
          (o) =>
            o.side === "true" &&
            o.i === l.i &&
            o.i !== undefined &&
            (answer.apart[o.i] ?? 1) < 1e-9,
        )
      ),
  );
  const near = (l: Label, o: Label) =>
    o !== l && o.placed && Math.abs(o.at[0] - l.at[0]) < 44 && Math.abs(o.at[1] - l.at[1]) < 14;
  for (const label of kept) {
    const step = label.at[1] > size / 2 ? -14 : 14;
    while (kept.some((o) => near(label, o))) label.at[1] += step;
    label.placed = true;
  }
  return [
    ...drawn,
    ...kept.map((l) =>
      text(l.words, l.at, colourOf(l.side, theme, true), ink.rim, l.anchor, 12.5, 700),
    ),
  ];
}

const finite = (g: Gradient): g is number[] => g.every((x) => x !== null);
// Contrast of 4.5 to the page, as fill and as text.
export const colourOf = (side: Side, theme: Theme, letters = false) =>
  INK[theme][`${side === "true" ? "corrected" : "printed"}${letters ? "Text" : ""}`];

function arrow(
  [x, y]: number[],
  [tx, ty]: number[],
  side: Side,
  name: string,
  theme: Theme,
  agree: boolean,
) {
  const ink = INK[theme],
    length = Math.hypot(tx - x, ty - y),
    ux = (tx - x) / length,
    uy = (ty - y) / length;
  const [most, wide] = side === "true" ? [20, 10] : [agree ? 11 : 15, agree ? 4.5 : 6],
    head = Math.min(most, length * 0.6);
  const end = [tx - ux * head * 0.7, ty - uy * head * 0.7],
    colour = colourOf(side, theme);
  const line = (stroke: string, width: number, dash = "") =>
    svg("line", {
      x1: x,
      y1: y,
      x2: end[0],
      y2: end[1],
      stroke,
      "stroke-width": width,
      ...(dash ? { "stroke-dasharray": dash } : {}),
    });
  const tip = `${tx},${ty} ${tx - ux * head - uy * wide},${ty - uy * head + ux * wide} ${tx - ux * head + uy * wide},${ty - uy * head - ux * wide}`;
  return svg(
    "g",
    { class: `arrow ${side}`, "data-point": name, "data-to": `${tx.toFixed(2)},${ty.toFixed(2)}` },
    ...(side === "true"
      ? [
          line(ink.rim, 10.5),
          svg("polygon", { points: tip, fill: ink.rim, stroke: ink.rim, "stroke-width": 3 }),
          line(colour, 7.5),
        ]
      : [...(agree ? [] : [line(ink.rim, 4.6)]), line(colour, 2.8, "7 5")]),
    svg("polygon", {
      points: tip,
      fill: colour,
      stroke: ink.rim,
      "stroke-width": side === "true" ? 0 : 0.8,
    }),
  );
}

function labelPlace([x, y]: number[], [tx, ty]: number[], size: number): Pixels {
  const length = Math.hypot(tx - x, ty - y),
    inside = (v: number, room: number) => Math.min(Math.max(v, room), size - room);
  return [inside(tx + ((tx - x) / length) * 22, 24), inside(ty + ((ty - y) / length) * 14 + 4, 16)];
}

function mark(name: Point, [x, y]: number[], ink: Ink, probe: boolean) {
  const shape =
    name === "negative"
      ? svg("rect", { x: x - 9, y: y - 9, width: 18, height: 18 })
      : svg("circle", { cx: x, cy: y, r: 10 });
  for (const [key, value] of [
    ["fill", ink[name]],
    ["stroke", ink.rim],
    ["stroke-width", 2.5],
  ] as const)
    shape.setAttribute(key, String(value));
  const ring = probe
    ? [svg("circle", { cx: x, cy: y, r: 15, fill: "none", stroke: ink[name], "stroke-width": 1.5 })]
    : [];
  return svg(
    "g",
    {},
    shape,
    ...ring,
    text(LETTER[name], [x, y + 4.5], ink.rim, "none", "middle", 12, 700),
  );
}

function text(
  words: string,
  [x, y]: number[],
  fill: string,
  rim: string,
  anchor: string,
  px: number,
  weight: number,
) {
  return svg(
    "text",
    {
      x,
      y,
      fill,
      stroke: rim,
      "stroke-width": rim === "none" ? 0 : 3.5,
      "paint-order": "stroke",
      "stroke-linejoin": "round",
      "text-anchor": anchor,
      "font-size": px,
      "font-weight": weight,
      "font-family": "system-ui, sans-serif",
    },
    words,
  );
}
