// Triangle of features with the prototypes and the brush as handles.
import type { Handle } from "../../kit/figure/spec.ts";
import type { Transport } from "./transport.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { chart } from "../../kit/figure/view.ts";
import { HEIGHT, STEPS, codeAt, frameOf, pins, planeOf, split, triangle } from "./draw.ts";

// Places count steps of a code: one along the edge, or two of background upwards.
const UP = (2 * HEIGHT) / STEPS;
const placeOf = (code: number) => {
  const [x, y] = planeOf(code);
  return [x * STEPS, y / UP];
};
const codeOf = ([u, v]: readonly number[]) => codeAt([u / STEPS, v * UP]);

function viewOf(width: number, height: number) {
  const { side, left, base } = frameOf(width, height),
    margin = { left, right: left, top: base - HEIGHT * side, bottom: height - base },
    ranges = { x: { low: 0, high: STEPS }, y: { low: 0, high: STEPS / 2 } };
  return chart(ranges, width, height, margin);
}

function describe(name: string, code: number, removable: boolean) {
  const [red, blue] = split(code),
    share = (steps: number) => (steps / STEPS).toFixed(3);
  return `${name}: red ${share(red)}, blue ${share(blue)}, background ${share(STEPS - red - blue)}; arrow keys move it${removable ? ", delete removes it" : ""}`;
}

// Return the figure; a press next to a handle places the brush.
export function triangleFigure(app: Transport) {
  const { editor } = app;
  const prototype = (code: number, i: number): Handle => ({
    name: `prototype-${i + 1}`,
    data: { handle: `prototype-${i + 1}` },
    class: "pin prototype",
    at: placeOf(code),
    step: 1,
    reach: 0,
    move: (place) => {
      editor.begin();
      editor.move(i, codeOf(place));
    },
    remove: () => editor.remove(i),
    describe: () => describe(`prototype ${i + 1}`, code, true),
  });
  const brush = (): Handle => ({
    name: "brush",
    data: { handle: "brush" },
    class: "pin brush",
    at: placeOf(editor.brush.code),
    step: 1,
    reach: 0,
    move: (place) => app.setBrush({ code: codeOf(place) }),
    describe: () => describe("brush", editor.brush.code, false),
  });
  const figure = new Figure({
    label: "feature triangle",
    touch: "all",
    view: viewOf,
    draw(ctx, { view: { width, height }, theme, ink }) {
      const { answer, mark } = app;
      if (!answer) return;
      triangle(ctx, width, height, { answer, pixels: editor.state.pixels, mark }, theme);
      pins(ctx, frameOf(width, height).to, editor.state.prototypes, editor.brush.code, ink, theme);
    },
    handles: () => [...editor.state.prototypes.map(prototype), brush()],
    press: ({ place }) => {
      app.setBrush({ code: codeOf(place) });
      return null;
    },
    change: (phase) => {
      if (phase === "end" && editor.isHeld) editor.end();
    },
  });
  figure.root.addEventListener("focusin", ({ target }) => {
    const [, number] = /prototype-(\d+)/.exec((target as HTMLElement).dataset.handle ?? "") ?? [];
    if (number) editor.touched = Number(number) - 1;
  });
  return figure;
}
