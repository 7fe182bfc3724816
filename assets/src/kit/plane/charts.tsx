// Two small charts next to the plane, as SVG: pull and push over edge length, and the energy along
// a cut. Without a GPU, a second animated canvas would cost the plane one frame in four; a changed
// path costs next to nothing.
import type { JSX } from "preact";
import type { Axis } from "../figure/axes.ts";
import type { Theme } from "../types.ts";
import type { Field, Scene } from "./types.ts";
import { render } from "preact";
import { useMemo } from "preact/hooks";
import { position, ticks } from "../figure/axes.ts";
import { INK } from "../colours.ts";

const SIZE = { width: 380, height: 190 },
  LEFT = 40,
  RIGHT = SIZE.width - 10,
  TOP = 10,
  BASE = SIZE.height - 32,
  MIDDLE = (TOP + BASE) / 2,
  OVERHANG = 4, // pixels by which curves may exceed the axes
  BOX = { x: LEFT, y: TOP - OVERHANG, width: RIGHT - LEFT, height: BASE - TOP + 2 * OVERHANG },
  LIMIT = 1e4; // largest value that is drawn

// Return an empty chart; `name` describes it until it is drawn.
export function chart(name: string) {
  const root = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  root.setAttribute("class", "chart");
  root.setAttribute("role", "img");
  root.setAttribute("aria-label", name);
  root.setAttribute("viewBox", `0 0 ${SIZE.width} ${SIZE.height}`);
  return root;
}

interface Axes {
  x: Axis;
  y: Axis;
  theme: Theme;
}

// Numbers and names of both axes, and a line per number of the y axis.
function Frame({ x, y, theme }: Axes) {
  return useMemo(() => {
    const [px, py] = places({ x, y }),
      ink = INK[theme],
      look = { fill: ink.text, "font-size": 11 };
    return (
      <>
        {ticks(x, 5).map(({ value, text }) => (
          <text {...look} x={px(value)} y={BASE + 13} text-anchor="middle">
            {text}
          </text>
        ))}
        {ticks(y, 4).map(({ value, text }) => (
          <>
            <line x1={LEFT} x2={RIGHT} y1={py(value)} y2={py(value)} stroke={ink.axis} />
            <text {...look} x={LEFT - 5} y={py(value) + 4} text-anchor="end">
              {text}
            </text>
          </>
        ))}
        <text {...look} x={(LEFT + SIZE.width) / 2} y={SIZE.height - 4} text-anchor="middle">
          {x.name}
        </text>
        <text {...look} text-anchor="middle" transform={`translate(10 ${MIDDLE}) rotate(-90)`}>
          {y.name}
        </text>
      </>
    );
  }, [theme, x.low, x.high, y.low, y.high]);
}

const places = ({ x, y }: Pick<Axes, "x" | "y">) =>
  [position(x, LEFT, RIGHT), position(y, BASE, TOP)] as const;

function show(root: SVGElement, label: string, axes: Axes, curves: JSX.Element[]) {
  root.setAttribute("aria-label", label);
  render(
    <>
      <Frame {...axes} />
      <svg class="curves" {...BOX} viewBox={Object.values(BOX).join(" ")}>
        {curves}
      </svg>
    </>,
    root,
  );
}

// Return a curve through values at equal distances, the first and last one at `from` and `to`.
function curve(
  axes: Axes,
  [from, to]: [number, number],
  values: ArrayLike<number>,
  look: { stroke: string; "stroke-width"?: number; "stroke-dasharray"?: string },
) {
  const [px, py] = places(axes),
    step = (to - from) / (values.length - 1);
  const points = Array.from(values, (value, i) => {
    const y = Math.min(Math.max(value, -LIMIT), LIMIT);
    return `${px(from + i * step).toFixed(1)} ${py(y).toFixed(1)}`;
  });
  return <path d={`M${points.join("L")}`} fill="none" stroke-width={2} {...look} />;
}

// Round up in coarse steps, so that the axes stay still during a gesture.
function roundUp(value: number) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 1.5, 2, 3, 5, 7.5, 10].find((m) => m * power >= value) ?? 10);
}

const MARKERS = {
  ap: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0",
  an: "M-4.5 -4.5H4.5V4.5H-4.5Z",
  pn: "M0 -6.4L6.4 0L0 6.4L-6.4 0Z",
};
const EDGES = ["ap", "an", "pn"] as const;

/** Return the pull or push along an edge at the lengths 1/n, 2/n, ..., 1 of the reach. */
export function lawOf({ laws, shapes }: Field, edge: (typeof EDGES)[number]) {
  const count = shapes.laws[1],
    i = EDGES.indexOf(edge);
  return laws.subarray(i * count, (i + 1) * count);
}

/** Return true if a law is 0 at each length. */
export const isNoForce = (law: Float32Array) => law.every((v) => Math.abs(v) <= 1e-9);

// Draw pull and push over the length of their own edges and mark the current lengths. Markers of
// inactive triplets are hollow.
export function lawsChart(root: SVGElement, field: Field, theme: Theme) {
  const ink = INK[theme],
    { reach, edges, hit } = field,
    count = field.shapes.laws[1];
  const shown = (
    [
      ["ap", "pull", ink.positive, undefined],
      ["an", "push", ink.negative, undefined],
      ["pn", "push", ink.negative, "4 4"],
    ] as const
  )
    .map(([edge, force, colour, dash]) => {
      const law = lawOf(field, edge),
        length = edges[edge];
      return { edge, force, colour, dash, law, length, here: interpolate(law, length / reach) };
    })
    .filter(({ law }) => !isNoForce(law));
  const here = shown.map((each) => each.here),
    lowest = Math.min(0, ...here),
    low = lowest < -1e-9 ? -roundUp(-lowest * 1.15) : 0,
    high = roundUp(Math.max(1, ...here) * 1.15),
    axes: Axes = {
      x: { low: 0, high: reach, name: "length of the edge d" },
      y: { low, high, name: "force" },
      theme,
    },
    [px, py] = places(axes),
    forces = shown.map(
      (each) =>
        `${each.force} ${each.here.toPrecision(3)} at d(${each.edge.toUpperCase()}) = ${each.length.toPrecision(3)}`,
    );
  show(root, `Forces against edge length: ${forces.join("; ")}`, axes, [
    ...shown.map(({ law, colour, dash }) =>
      curve(axes, [reach / count, reach], law, { stroke: colour, "stroke-dasharray": dash }),
    ),
    ...shown.map(({ edge, colour, length, here: force }) => (
      <path
        d={MARKERS[edge]}
        transform={`translate(${px(length).toFixed(1)} ${py(force).toFixed(1)})`}
        stroke-width={2}
        fill={hit ? colour : ink.page}
        stroke={hit ? ink.rim : colour}
      />
    )),
  ]);
}

// Return the value of a law at a share of its reach.
function interpolate(law: Float32Array, share: number) {
  const n = law.length,
    place = Math.min(Math.max(share * n - 1, 0), n - 1),
    i = Math.min(Math.floor(place), n - 2);
  return law[i] + (law[i + 1] - law[i]) * (place - i);
}

// Draw the energy along the cut: raw as a thin dashed line, clamped as a bold line.
export function cutChart(root: SVGElement, field: Field, scene: Scene, theme: Theme) {
  const ink = INK[theme],
    count = field.shapes.cut[1],
    cut = field.cut as Float32Array,
    raw = cut.subarray(0, count),
    clamped = cut.subarray(count),
    [x0, y0, x1, y1] = scene.line,
    length = Math.hypot(x1 - x0, y1 - y0) || 1,
    top = Math.max(...clamped),
    bottom = Math.min(...raw),
    high = roundUp(Math.max(top * 1.1, 0.2)),
    low = Math.max(bottom < 0 ? -roundUp(-bottom) : 0, -high),
    axes: Axes = {
      x: { low: 0, high: length, name: "along the cut (dashed: before the clamp)" },
      y: { low, high, name: "energy" },
      theme,
    };
  const lowest = Math.min(...clamped).toPrecision(3),
    label = `Energy along the cut of length ${length.toPrecision(3)}: loss between ${lowest} and ${top.toPrecision(3)}, before the clamp down to ${bottom.toPrecision(3)}`;
  show(root, label, axes, [
    curve(axes, [0, length], raw, {
      stroke: ink.residual,
      "stroke-width": 1.5,
      "stroke-dasharray": "3 3",
    }),
    curve(axes, [0, length], clamped, { stroke: ink.contour, "stroke-width": 2.2 }),
  ]);
}
