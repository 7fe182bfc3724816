// The three points of a triplet: their drag handles and their rows in a panel.
import type { Attributes, Point, Theme } from "./types.ts";
import { el, tidy } from "./dom.ts";
import { POINTS } from "./colours.ts";

export type Row = { probe: HTMLInputElement; boxes: HTMLInputElement[]; mark: HTMLElement };

const TINY = 5e-5; // coordinates below this are shown as 0

// Return a drag handle for each point of a triplet.
// also: further actions of a handle, for its label
export const pointHandles = (also: string = "", more: Attributes = {}) =>
  Object.fromEntries(
    POINTS.map((name) => [
      name,
      el("button", {
        class: "handle",
        "data-point": name,
        title: `Drag the ${name}, or move it with the arrow keys${also}`,
        ...more,
      }),
    ]),
  ) as Record<Point, HTMLButtonElement>;

// Return the rows of the three points: radio button, name, and one box per axis. A typed number is
// clamped to `reach`, as Python does, and the box then shows the actual coordinate: onMove(name,
// axis, x) may return another place (snapped, wrapped).
export function pointRows(
  ink: Record<Theme, Record<Point, string>>,
  {
    onProbe,
    onMove,
    axes = ["x", "y"],
    space = "plane",
    reach = 100,
  }: {
    onProbe(name: Point): void;
    onMove(name: Point, axis: number, x: number): number[] | void;
    axes?: string[];
    space?: string;
    reach?: number;
  },
) {
  let seen: Record<Point, number[]>; // scene last shown
  const rows = {} as Record<Point, Row>,
    grid = el(
      "div",
      {
        class: "points",
        style: `grid-template-columns: 20px minmax(0, 1fr) repeat(${axes.length}, 74px)`,
      },
      el("small", { title: `the point that scans the ${space}` }, "scan"),
      el("span"),
      ...axes.map((axis) => el("small", {}, axis)),
    );
  for (const name of POINTS) {
    const probe = el("input", {
      type: "radio",
      name: "probe",
      value: name,
      "aria-label": `scan with ${name}`,
      title: `Scan with this point: colour and arrows show its loss and force at each position`,
    });
    probe.addEventListener("change", () => onProbe(name));
    const boxes = axes.map((label, axis) => {
      const box = el("input", { type: "number", step: "any", "aria-label": `${name} ${label}` });
      box.addEventListener("change", () => {
        const x = box.value === "" ? NaN : Number(box.value);
        if (!Number.isFinite(x)) {
          box.value = tidy(seen[name][axis]);
          return;
        }
        const within = Math.abs(x) < TINY ? 0 : Math.min(Math.max(x, -reach), reach);
        box.value = tidy((onMove(name, axis, within) ?? { [axis]: within })[axis]);
      });
      return box;
    });
    const mark = el("i", { class: name });
    grid.append(probe, el("span", { class: "swatch" }, mark, name), ...boxes);
    rows[name] = { probe, boxes, mark };
  }
  const show = (scene: Record<Point, number[]> & { probe?: unknown }, theme: Theme) => {
    seen = scene;
    for (const name of POINTS) {
      rows[name].probe.checked = scene.probe === name;
      rows[name].mark.style.background = ink[theme][name];
      rows[name].boxes.forEach((box, axis) => {
        const { activeElement } = box.getRootNode() as Document | ShadowRoot;
        if (box !== activeElement) box.value = tidy(scene[name][axis]);
      });
    }
  };
  return { grid, show };
}
