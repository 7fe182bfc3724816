// Figure of the plane: point at cells, click averages, choose images by keys.
import type { Prototypes } from "./prototypes.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { nearest } from "../../kit/figure/hit.ts";
import { boxView, paintPlane } from "./draw.ts";
import { percent } from "./words.ts";

const REACH = 12; // pixels around the pointer

// Return the pairs of coordinates of an array with their indices.
const places = (xy: Float32Array) =>
  Array.from({ length: xy.length / 2 }, (_, i) => [i, [xy[2 * i], xy[2 * i + 1]]] as const);

export function planeFigure(app: Prototypes) {
  const figure: Figure<number> = new Figure({
    label: "plane",
    class: "plane",
    view: (size) => boxView(app.plane.peek()?.box ?? [0, 0, 1], size),
    draw(ctx, { view: { width }, theme, exported }) {
      const [plane, one] = [app.plane.peek(), app.one.peek()];
      if (!plane || !one) return;
      const look = exported ? { hover: -1, pointed: -1 } : app.pointed.peek(),
        view = { shown: plane.shown, show: app.shows.peek(), ...look };
      paintPlane(ctx, width, plane, one, app.patches, view, theme);
      if (!exported) app.session.whole.dataset.seq = String(one.id);
    },
    // the row of an average
    hit({ pixel, by }) {
      const plane = app.plane.peek();
      if (!plane || !app.shows.peek().averages) return null;
      const shown = places(plane.pooled).filter(([i]) => plane.shown.includes(plane.place[i])),
        pixels = shown.map(([i, place]) => [i, figure.view.to(place)] as const);
      return nearest(pixel, pixels, by === "touch" ? 2 * REACH : REACH);
    },
    hover(at, row) {
      const plane = app.plane.peek();
      if (!plane || !at) return app.look(-1);
      const cell = nearest(at.place, places(plane.prototypes), Infinity) ?? -1;
      app.look(cell, row ?? -1);
      figure.showTip(at.place, tip(app, cell));
    },
    open(row) {
      const { place = new Uint8Array() } = app.plane.peek() ?? {};
      app.choose(place[row], place.subarray(0, row).filter((c) => c === place[row]).length);
    },
    key: (event) => app.key(event),
  });
  figure.canvas.role = "application";
  return figure;
}

// Return the rows of the tooltip of a prototype: its share of the image and of the shown classes.
function tip(app: Prototypes, cell: number) {
  const [plane, one] = [app.plane.peek(), app.one.peek()];
  if (!plane || !one) return [];
  const { shown, classes, share, cells } = plane;
  return [
    [`prototype ${cell + 1}`, `${percent(one.histogram[cell])} of this image`] as const,
    ...shown.map(
      (c, slot) => [`class ${classes[c]}`, percent(share[slot * cells.length + cell])] as const,
    ),
  ];
}
