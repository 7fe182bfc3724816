// The planes of the comparison as figures: fields of the losses and of their difference, over the
// same points and the same view.
import type { Compare } from "./compare.tsx";
import type { Context, Place, Theme } from "../../../kit/types.ts";
import type { Painted, Rasters, Scene } from "../../../kit/plane/types.ts";
import type { Signal } from "@preact/signals";
import { render } from "preact";
import { signal } from "@preact/signals";
import { INK, POINTS } from "../../../kit/colours.ts";
import { div } from "../../../kit/dom.ts";
import { Figure } from "../../../kit/figure/figure.ts";
import { plane, rounded } from "../../../kit/figure/view.ts";
import { paint, rasterise } from "../../../kit/plane/paint.ts";

/** Numbers at the place under the pointer. */
export interface Chip {
  place: Place;
  text: string;
}

/** A plane with the field that it shows. */
export interface Plane {
  figure: Figure;
  chip: Signal<Chip | null>;
  field?: Painted;
  rasters?: Rasters;
}

interface PlaneSpec {
  label: string;
  first?: boolean; // its handles are in the tab order, and it has buttons to zoom
  scene?: Partial<Scene>; // differences from the comparison
  describe(): string;
  painted?(canvas: HTMLCanvasElement): void; // after each painting
}

/** Create a plane whose gestures change the state of all. */
export function createPlane(app: Compare, spec: PlaneSpec): Plane {
  const { label, first = false, describe } = spec;
  const figure: Figure = new Figure({
    class: "plane",
    label,
    describe,
    view: (width) => plane(app.state.view, width),
    setView: (view) => (app.state.view = view),
    draw(ctx, { view, theme }) {
      const scene = { ...app.state, discs: false, ...spec.scene } as unknown as Scene;
      paint(ctx, view.width, scene, made.field, made.rasters, theme);
      if (app.state.space === "sphere") unitCircle(ctx, view.to([0, 0]), view.scale, theme);
      const pulses = first && Boolean(app.orbit.home);
      figure.handles.get("anchor")?.classList.toggle("pulse", pulses);
      spec.painted?.(figure.canvas);
    },
    handles: () =>
      POINTS.map((name) => ({
        name,
        at: app.state[name],
        move: (place) => (app.state[name] = place),
        title: `Drag the ${name}, or move it with the arrow keys; it moves in all planes`,
        focusable: first,
      })),
    change: (phase) => app.gesture(phase),
    hover: (at) => app.look(at && at.place.map(rounded)),
  });
  const made: Plane = { figure, chip: signal(null) },
    over = div("over");
  render(<Pointer {...made} />, over);
  figure.root.append(over);
  if (!first) figure.tools.remove();
  return made;
}

/** Give a plane the field that it shows. */
export function setField(to: Plane, field: Painted, theme: Theme): void {
  to.field = field;
  to.rasters = rasterise(field, theme, field.signed);
}

// Mark and numbers of the place under the pointer.
function Pointer({ figure, chip: { value } }: Omit<Plane, "field" | "rasters">) {
  if (!value) return null;
  const [x, y] = figure.view.to(value.place);
  return (
    <>
      <i class="cross" style={`transform: translate(${x}px, ${y}px)`} />
      <span class="chip">{value.text}</span>
    </>
  );
}

function unitCircle(ctx: Context, [x, y]: number[], radius: number, theme: Theme): void {
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = INK[theme].disc;
  ctx.setLineDash([2, 4]);
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.setLineDash([]);
}
