// Layers over the plane of a real triplet: images next to the points, the circle of the sphere, and
// the ends of one step.
import type { Fields } from "../../kit/plane/plane.ts";
import type { Point } from "../../kit/types.ts";
import { INK, POINTS } from "../../kit/colours.ts";
import { el } from "../../kit/dom.ts";
import { reach } from "../../kit/plane/forces.ts";
import { along, placeThumbnails } from "./thumbnails.ts";

type Values = Record<string, string | number>;

const put = (node: Element, attributes: Values) => {
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, String(v));
};
const svg = (tag: string, attributes: Values = {}) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag) as SVGElement;
  put(node, attributes);
  return node;
};

export class Overlay {
  readonly thumbs = Object.fromEntries(
    POINTS.map((name) => [
      name,
      el("img", { class: `thumb ${name}`, alt: "", draggable: "false" }),
    ]),
  ) as Record<Point, HTMLImageElement>;
  private readonly root = svg("svg", { class: "overlay", "aria-hidden": "true" });
  private readonly circle = svg("circle", {
    fill: "none",
    "stroke-width": 1.5,
    "stroke-dasharray": "2 5",
  });
  private readonly ghosts = POINTS.map((name) => [
    svg("line", { "stroke-width": 1.5, "stroke-dasharray": "3 3" }),
    name === "negative"
      ? svg("rect", { width: 12, height: 12, fill: "none", "stroke-width": 2 })
      : svg("circle", { r: 6.5, fill: "none", "stroke-width": 2 }),
  ]);
  private readonly app: Fields;

  constructor(app: Fields) {
    this.app = app;
    this.root.append(this.circle, ...this.ghosts.flat());
    app.figure.canvas.after(...Object.values(this.thumbs), this.root);
  }

  /** Show the images of anchor, positive and negative. */
  load(images: readonly string[]): void {
    POINTS.forEach((name, i) => {
      if (this.thumbs[name].getAttribute("src") !== images[i]) this.thumbs[name].src = images[i];
    });
  }

  /** Show or hide the images. */
  toggle(on: boolean): void {
    for (const thumb of Object.values(this.thumbs)) thumb.hidden = !on;
  }

  /**
   * Put everything where the points are.
   * radius: of the unit sphere in the plane; ends: of the step on each point
   */
  update(radius: number | null, ends: readonly number[][] | null | undefined): void {
    const { figure, scene, theme } = this.app,
      { view, busy } = figure,
      ink = INK[theme],
      place = POINTS.map((name) => view.to(scene[name])),
      [cx, cy] = view.to([0, 0]);
    this.circle.style.display = radius ? "" : "none";
    if (radius) put(this.circle, { cx, cy, r: radius * view.scale, stroke: ink.text });
    // Images keep their places during a gesture.
    const marks = busy ? [] : this.marks(place, ends ?? []),
      thumbs = placeThumbnails(place, view.width, marks);
    POINTS.forEach((name, i) => {
      const [x, y] = place[i];
      this.thumbs[name].style.transform = `translate(${thumbs[i][0]}px, ${thumbs[i][1]}px)`;
      const end = ends?.[i],
        [line, mark] = this.ghosts[i],
        moves = end && !busy?.classList.contains("handle");
      for (const node of [line, mark]) node.style.display = moves ? "" : "none";
      if (!moves) return;
      const [ex, ey] = view.to(end),
        square = name === "negative";
      put(line, { x1: x, y1: y, x2: ex, y2: ey, stroke: ink[name] });
      put(mark, { ...(square ? { x: ex - 6, y: ey - 6 } : { cx: ex, cy: ey }), stroke: ink[name] });
    });
  }

  // Return points on force arrows and at the ends of the step, which images leave free.
  private marks(place: number[][], ends: readonly number[][]): number[][] {
    const { field, scene, figure, forceScale } = this.app,
      { view } = figure;
    if (!field) return [];
    const tips = field.forces.map(([fx, fy], i) => {
      const size = Math.hypot(fx, fy);
      if (scene.forces === false || !(size > 1e-9)) return null;
      const far = reach(size, view.width, scene.edges ? forceScale : null) / size;
      return [place[i][0] + far * fx, place[i][1] - far * fy];
    });
    return [...along(place, tips), ...ends.map((end) => view.to(end))];
  }
}
