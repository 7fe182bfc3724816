// The three points of a triplet: their drag handles and their rows in a panel.
/** @import { Attributes, Point, Theme } from "./types.js" */
import { el, tidy } from "./dom.js";
import { POINTS } from "./colours.js";

/** @typedef {{ probe: HTMLInputElement, boxes: HTMLInputElement[], mark: HTMLElement }} Row */

const TINY = 5e-5; // coordinates below this are shown as 0

// Return a drag handle for each point of a triplet.
/**
 * @param {string} [also] further actions of a handle, for its label
 * @param {Attributes} [more]
 */
export const pointHandles = (also = "", more = {}) =>
  /** @type {Record<Point, HTMLButtonElement>} */ (
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
    )
  );

// Return the rows of the three points: radio button, name, and one box per axis. A typed number is
// clamped to `reach`, as Python does, and the box then shows the actual coordinate: onMove(name,
// axis, x) may return another place (snapped, wrapped).
/**
 * @param {Record<Theme, Record<Point, string>>} ink
 * @param {{
 * onProbe(name: Point): void,
 * onMove(name: Point, axis: number, x: number): number[] | void,
 * axes?: string[],
 * space?: string,
 * reach?: number,
 * }} settings
 */
export function pointRows(
  ink,
  { onProbe, onMove, axes = ["x", "y"], space = "plane", reach = 100 },
) {
  /** @type {Record<Point, number[]>} */
  let seen; // scene last shown
  const rows = /** @type {Record<Point, Row>} */ ({}),
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
  const show = (
    /** @type {Record<Point, number[]> & { probe?: unknown }} */ scene,
    /** @type {Theme} */ theme,
  ) => {
    seen = scene;
    for (const name of POINTS) {
      rows[name].probe.checked = scene.probe === name;
      rows[name].mark.style.background = ink[theme][name];
      rows[name].boxes.forEach((box, axis) => {
        const { activeElement } = /** @type {Document | ShadowRoot} */ (box.getRootNode());
        if (box !== activeElement) box.value = tidy(scene[name][axis]);
      });
    }
  };
  return { grid, show };
}
