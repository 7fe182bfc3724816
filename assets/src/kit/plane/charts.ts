// Two small charts next to the plane, as SVG: pull and push over edge length, and the energy along
// a cut. Without a GPU, a second animated canvas would cost the plane one frame in four; a changed
// path costs next to nothing.
import type { Field, Scene } from "./types.ts";
import type { Theme } from "../types.ts";
import { INK, niceStep } from "../colours.ts";

const SIZE = { width: 380, height: 190 },
  ROOM = { left: 40, right: 10, top: 10, bottom: 32 };

function svg(
  tag: string,
  attributes: Record<string, string | number> = {},
  ...children: (Node | string)[]
) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

export const chart = (name: string) =>
  svg("svg", {
    class: "chart",
    role: "img",
    "aria-label": name,
    viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
  });

// Draw the frame of a chart, only if its ranges, names or theme changed. Return its scales and the
// layer for curves.
function framed(
  root: SVGElement,
  theme: Theme,
  [x0, x1]: number[],
  [y0, y1]: number[],
  xName: string,
  yName: string,
) {
  const px = (x: number) =>
    ROOM.left + ((x - x0) / (x1 - x0)) * (SIZE.width - ROOM.left - ROOM.right);
  const py = (y: number) =>
    SIZE.height - ROOM.bottom - ((y - y0) / (y1 - y0)) * (SIZE.height - ROOM.top - ROOM.bottom);
  const key = [theme, x0, x1, y0, y1].join();
  if (root.dataset.frame !== key) {
    root.dataset.frame = key;
    const ink = INK[theme],
      digits = (step: number) => Math.max(0, -Math.floor(Math.log10(step))),
      parts = [];
    const text = (x: number, y: number, anchor: string, words: string, more = {}) =>
      parts.push(
        svg(
          "text",
          { x, y, "text-anchor": anchor, fill: ink.text, "font-size": 11, ...more },
          words,
        ),
      );
    const xs = niceStep(x1 - x0, 5),
      ys = niceStep(y1 - y0, 4);
    for (let k = Math.ceil(x0 / xs); k * xs <= x1 + 1e-9; k++)
      text(px(k * xs), SIZE.height - ROOM.bottom + 13, "middle", (k * xs).toFixed(digits(xs)));
    for (let k = Math.ceil(y0 / ys); k * ys <= y1 + 1e-9; k++) {
      parts.push(
        svg("line", {
          x1: ROOM.left,
          x2: SIZE.width - ROOM.right,
          y1: py(k * ys),
          y2: py(k * ys),
          stroke: ink.axis,
        }),
      );
      text(ROOM.left - 5, py(k * ys) + 4, "end", (k * ys).toFixed(digits(ys)));
    }
    text((ROOM.left + SIZE.width) / 2, SIZE.height - 4, "middle", xName);
    const middle = (SIZE.height - ROOM.bottom + ROOM.top) / 2;
    text(10, middle, "middle", yName, { transform: `rotate(-90 10 ${middle})` });
    const clip = svg("svg", {
      class: "curves",
      x: ROOM.left,
      y: ROOM.top - 4,
      width: SIZE.width - ROOM.left - ROOM.right,
      height: SIZE.height - ROOM.top - ROOM.bottom + 8,
      viewBox: `${ROOM.left} ${ROOM.top - 4} ${SIZE.width - ROOM.left - ROOM.right} ${SIZE.height - ROOM.top - ROOM.bottom + 8}`,
    });
    root.replaceChildren(...parts, clip);
  }
  return { px, py, curves: root.querySelector(".curves") as Element };
}

const line = (
  xs: (i: number) => number,
  ys: ArrayLike<number>,
  px: (x: number) => number,
  py: (y: number) => number,
) =>
  Array.from(
    ys,
    (y, i) =>
      `${i ? "L" : "M"}${px(xs(i)).toFixed(1)} ${py(Math.min(Math.max(y, -1e4), 1e4)).toFixed(1)}`,
  ).join("");
const curve = (d: string, stroke: string, dash: string, width = 2) => ({
  d,
  stroke,
  fill: "none",
  transform: "",
  "stroke-width": width,
  "stroke-dasharray": dash,
});

// Update the paths of a layer. Paths are reused; only changed attributes are written.
function put(parent: Element, paths: Record<string, string | number>[]) {
  while (parent.children.length < paths.length) parent.append(svg("path"));
  while (parent.children.length > paths.length) parent.lastChild?.remove();
  paths.forEach((attributes, i) => {
    for (const [key, value] of Object.entries(attributes))
      if (parent.children[i].getAttribute(key) !== String(value))
        parent.children[i].setAttribute(key, String(value));
  });
}

// Round a range up in steps, so that the axes stay still during a gesture.
const upTo = (value: number) => {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 1.5, 2, 3, 5, 7.5, 10].find((m) => m * power >= value) ?? 10);
};

// Draw pull and push over the length of their own edges and mark the current lengths. Markers of
// inactive triplets are hollow.
export function lawsChart(root: SVGElement, field: Field, theme: Theme) {
  const ink = INK[theme],
    k = field.shapes.laws[1],
    { reach, laws, edges } = field;
  const law = (i: number) => laws.subarray(i * k, (i + 1) * k),
    x = (i: number) => ((i + 1) * reach) / k;
  const value = (i: number, d: number) => {
    const t = Math.min(Math.max((d / reach) * k - 1, 0), k - 1),
      j = Math.min(Math.floor(t), k - 2),
      f = t - j;
    return law(i)[j] * (1 - f) + law(i)[j + 1] * f;
  };
  const marks = (
    [
      ["ap", ink.positive, "none"],
      ["an", ink.negative, "none"],
      ["pn", ink.negative, "4 4"],
    ] as const
  ).map(([edge, colour, dash], i) => ({
    edge,
    colour,
    dash,
    law: law(i),
    here: value(i, edges[edge]),
  }));
  const shown = marks.filter((m) => m.law.some((v) => Math.abs(v) > 1e-9)),
    here = shown.map((m) => m.here);
  const high = upTo(Math.max(1, ...here) * 1.15),
    lowest = Math.min(0, ...here),
    low = lowest < -1e-9 ? -upTo(-lowest * 1.15) : 0;
  const { px, py, curves } = framed(
    root,
    theme,
    [0, reach],
    [low, high],
    "length of the edge d",
    "force",
  );
  put(curves, [
    ...shown.map((m) => curve(line(x, m.law, px, py), m.colour, m.dash)),
    ...shown.map((m) => {
      const shape =
          m.edge === "ap" ? "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0" : "M-4.5 -4.5H4.5V4.5H-4.5Z",
        style = field.hit
          ? { fill: m.colour, stroke: ink.rim }
          : { fill: ink.page, stroke: m.colour };
      return {
        d: shape,
        transform: `translate(${px(edges[m.edge]).toFixed(1)} ${py(m.here).toFixed(1)})`,
        "stroke-width": 2,
        "stroke-dasharray": "none",
        ...style,
      };
    }),
  ]);
  root.setAttribute(
    "aria-label",
    `Forces against edge length: ${shown.map((m) => `${m.edge === "ap" ? "pull" : "push"} ${m.here.toPrecision(3)} at d(${m.edge.toUpperCase()}) = ${edges[m.edge].toPrecision(3)}`).join("; ")}`,
  );
}

// Draw the energy along the cut: raw as a thin dashed line, clamped as a bold line.
export function cutChart(root: SVGElement, field: Field, scene: Scene, theme: Theme) {
  const ink = INK[theme],
    k = field.shapes.cut[1],
    cut = field.cut as Float32Array,
    raw = cut.subarray(0, k),
    clamped = cut.subarray(k);
  const [x0, y0, x1, y1] = scene.line,
    length = Math.hypot(x1 - x0, y1 - y0) || 1,
    x = (i: number) => (i / (k - 1)) * length;
  const top = Math.max(...clamped),
    bottom = Math.min(...raw),
    high = upTo(Math.max(top * 1.1, 0.2)),
    low = Math.max(bottom < 0 ? -upTo(-bottom) : 0, -high);
  const { px, py, curves } = framed(
    root,
    theme,
    [0, length],
    [low, high],
    "along the cut (dashed: before the clamp)",
    "energy",
  );
  put(curves, [
    curve(line(x, raw, px, py), ink.residual, "3 3", 1.5),
    curve(line(x, clamped, px, py), ink.contour, "none", 2.2),
  ]);
  root.setAttribute(
    "aria-label",
    `Energy along the cut of length ${length.toPrecision(3)}: loss between ${Math.min(...clamped).toPrecision(3)} and ${top.toPrecision(3)}, before the clamp down to ${bottom.toPrecision(3)}`,
  );
}
