// The figure of the plane: a triplet in the field of its loss, on the kernel of kit/figure.
import type { Handle, Phase, Tool } from "../figure/spec.ts";
import type { Key } from "../figure/legend.tsx";
import type { Fields } from "./plane.ts";
import type { Point, Theme } from "../types.ts";
import { POINTS, rampColour, signedColour } from "../colours.ts";
import { Figure } from "../figure/figure.ts";
import { enclosing, plane } from "../figure/view.ts";
import { paint } from "./paint.ts";
import { keyStep } from "./snap.ts";

const signedRamp = (t: number, theme: Theme) => signedColour(2 * t - 1, theme),
  brief = (x: number) => Number(x.toPrecision(3));

/** Return the figure of a page's scene. */
export function planeFigure(app: Fields): Figure {
  const figure: Figure = new Figure({
    label: "force field of the triplet loss",
    class: "plane",
    view: (width) => plane(app.scene.view, width),
    ...(app.variant.bare
      ? {}
      : {
          setView: (view: number[]) => (app.scene.view = view),
          showAll: () => showAll(app),
          tools: () => undoTools(app),
        }),
    draw(ctx, frame) {
      const { view, theme, exported } = frame;
      paint(ctx, view.width, app.scene, app.field, app.rasters, theme, {
        hover: app.hovered,
        forceScale: app.forceScale,
        moving: Boolean(figure.busy),
        told: app.readout.spoken,
        covered: exported ? null : coveredBy(figure.tools),
      });
      if (!exported && app.field) figure.canvas.dataset.seq = String(app.field.id);
      app.variant.onPaint?.(ctx, frame);
    },
    handles: () => [...endHandles(app), ...POINTS.map((name) => pointHandle(app, name))],
    change: (phase: Phase) =>
      ({ start: app.touch, move: app.move, end: app.rest })[phase].call(app),
    hover(at) {
      if (at) app.requests.sendHover(at.place);
      else {
        app.hovered = null;
        figure.invalidate();
      }
    },
    legend: () => legend(app),
    describe: () => app.readout.summary,
  });
  return figure;
}

function pointHandle(app: Fields, name: Point): Handle {
  const { scene } = app;
  return {
    name,
    at: scene[name],
    title: `Drag the ${name}, or move it with the arrow keys`,
    step: keyStep(scene),
    move: (place) => {
      scene[name] = app.snapped(name, place);
    },
  };
}

function endHandles({ scene }: Fields): Handle[] {
  return ["start", "end"].map((which, i) => ({
    name: `${which} of the cut`,
    at: scene.line.slice(2 * i, 2 * i + 2),
    class: "end",
    data: { end: i },
    title: "Drag this end of the cut, or move it with the arrow keys",
    hidden: !scene.cut,
    reach: 0,
    step: keyStep(scene),
    move: (place) => {
      scene.line.splice(2 * i, 2, ...place);
    },
  }));
}

const undoTools = (app: Fields): Tool[] => [
  {
    text: "↶",
    title: "undo (Ctrl+Z)",
    act: () => app.edit.undo(),
    disabled: !app.edit.history.canUndo,
  },
  {
    text: "↷",
    title: "redo (Ctrl+Shift+Z)",
    act: () => app.edit.redo(),
    disabled: !app.edit.history.canRedo,
  },
];

function showAll(app: Fields): void {
  app.touch();
  app.scene.view = enclosing(POINTS.map((name) => app.scene[name]));
  app.rest();
}

// The area of the plane that buttons cover.
function coveredBy({ offsetLeft: left, offsetTop: top, offsetWidth, offsetHeight }: HTMLElement) {
  return offsetWidth ? { left, top, right: left + offsetWidth, bottom: top + offsetHeight } : null;
}

function legend({ scene, readout }: Fields): Key[] {
  const field = readout.spoken;
  if (!field) return [];
  const { shade, region } = scene,
    top = brief(field.scale);
  return [
    {
      text: { energy: "loss", raw: "before clamp", force: "force", none: "" }[shade],
      hidden: shade === "none",
      ramp:
        shade === "raw"
          ? { colour: signedRamp, low: `−${top}`, high: String(top) }
          : { colour: rampColour, low: "0", high: `≥ ${top}` },
    },
    { text: "loss = 0", hidden: !region },
    { text: "upper clamp", mark: "dashed", hidden: field.m2 === null || !region },
    { text: "no force", mark: "hatched", hidden: !region },
  ];
}
