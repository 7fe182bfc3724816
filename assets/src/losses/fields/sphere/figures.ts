// The three figures of the Sphere page: globe, circle, and the map of both angles.
import type { Sphere } from "./sphere.tsx";
import type { At, Drag, Handle } from "../../../kit/figure/spec.ts";
import type { Place, Point } from "../../../kit/types.ts";
import { POINTS } from "../../../kit/colours.ts";
import { save, show, tidy } from "../../../kit/dom.ts";
import { Figure } from "../../../kit/figure/figure.ts";
import { fileOf } from "../../../kit/figure/file.ts";
import { sheetOf } from "../../../kit/figure/sheet.ts";
import { arrow } from "../../../kit/hand.ts";
import { hyperText } from "../../../kit/panel/panel.tsx";
import { bothAngles, mapView, paintMap } from "./angle_map.ts";
import { circleView, paintCircle } from "./circle.ts";
import { paintGlobe } from "./globe.ts";
import { coordinates, describeAngles, describeFigure, describeMap } from "./numbers.ts";
import { direction, globeView, lookFrom, projector } from "./projection.ts";
import { FILL } from "./surface.ts";

const SHARPEST = 720; // pixels of the sphere while it moves

interface Moves {
  isFront(name: Point): boolean;
  move(name: Point, to: Place): void;
  nudge(name: Point, step: number[]): void;
}

// Return the handles of the three points, and what is set on a figure after each painting.
function triplet(app: Sphere, { isFront, move, nudge }: Moves) {
  let painted = 0;
  const handles = (): Handle[] =>
    POINTS.map((name) => ({
      name,
      at: app.scene[name],
      move: (to) => move(name, to),
      nudge: (step) => nudge(name, step),
      title: `Drag the ${name}, or move it with the arrow keys`,
      reach: 0,
      describe: () =>
        `${name} at ${coordinates(app.scene, app.scene[name]).map(tidy).join(", ")} degrees${isFront(name) ? "" : ", behind the sphere"}`,
    }));
  const settle = ({ canvas, handles: buttons }: Figure) => {
    for (const name of POINTS) {
      const button = buttons.get(name);
      if (button) button.style.zIndex = isFront(name) ? "2" : "1";
    }
    buttons.get("anchor")?.classList.toggle("pulse", app.turning.greeting);
    canvas.dataset.painted = String(++painted);
    const answer = app.answer.value;
    if (answer?.on === app.scene.on) canvas.dataset.seq = String(answer.id);
  };
  return { handles, settle };
}

/** Create the globe; a drag of its background turns it. */
export function createGlobe(app: Sphere): Figure {
  let front = true; // the point that is dragged is on the front
  const isFront = (name: Point) =>
    projector(lookFrom(app.scene.eye), 1)(direction(app.scene[name]))[2] >= 0;
  const { handles, settle } = triplet(app, {
    isFront,
    nudge: (name, [right, up]) => {
      const [lon, lat] = app.scene[name];
      app.moveTo(name, [lon + right, lat + up]);
    },
    move: (name, to) => app.moveTo(name, to),
  });
  const figure: Figure = new Figure({
    class: "turn",
    label: "Unit sphere",
    keys: "Drag to rotate, or use the arrow keys",
    touch: "all",
    view: (width, height) => globeView(app.scene.eye, () => front, width, height),
    draw(ctx, { view, ink, moving, exported }) {
      const sharp = ctx.getTransform().a,
        rough = (moving || app.turning.active) && !exported,
        scale = rough ? Math.min(1, SHARPEST / view.width) : sharp;
      app.surface.draw(lookFrom(app.scene.eye), Math.round(view.width * scale), scale);
      ctx.drawImage(app.surface.canvas, 0, 0, view.width, view.width);
      paintGlobe(ctx, view.width, app.scene, app.onSphere, ink);
      settle(figure);
    },
    handles,
    press: (at) => rotation(app, at, FILL * figure.view.width),
    key(event) {
      const step = arrow(event);
      if (!step) return false;
      figure.nudge(() => app.look(app.scene.eye.map((x, i) => x + 3 * step[i])));
      return true;
    },
    change(phase) {
      const name = figure.busy?.dataset.point as Point | undefined;
      if (phase === "start") front = name ? isFront(name) : true;
      app.gesture(phase);
    },
    describe: () => describeFigure(app.scene, app.onSphere),
  });
  figure.canvas.title = "Drag to rotate, or use the arrow keys";
  return figure;
}

// Turn the globe with the pointer, and let it coast; `radius` of the sphere in pixels.
function rotation(app: Sphere, { pixel: [x0, y0] }: At, radius: number): Drag {
  const [lon, lat] = app.scene.eye,
    k = 180 / Math.PI / radius,
    trail: number[][] = [];
  return {
    move({ pixel: [x, y] }) {
      app.look([lon - (x - x0) * k, lat + (y - y0) * k]);
      trail.push([performance.now(), ...app.scene.eye]);
    },
    end: (_, moved) => moved && app.turning.coast(trail),
  };
}

/** Create the circle with its ring of losses. */
export function createCircle(app: Sphere): Figure {
  const { handles, settle } = triplet(app, {
    isFront: () => true,
    // right and down: clockwise
    nudge: (name, [right, up]) => {
      const [angle, lat] = app.scene[name];
      app.moveTo(name, [angle - right + up, lat]);
    },
    move: (name, [angle]) => app.moveTo(name, [angle, app.scene[name][1]]),
  });
  const figure: Figure = new Figure({
    label: "Unit circle",
    view: circleView,
    draw(ctx, { view, ink, theme }) {
      const answer = app.answer.value?.on === "circle" ? app.answer.value : null;
      paintCircle(ctx, view.width, app.scene, answer, ink, theme);
      settle(figure);
    },
    handles,
    change: (phase) => app.gesture(phase),
    describe: () => describeFigure(app.scene, app.answer.value),
  });
  return figure;
}

/** Create the map over the angles of P and N, which one handle moves. */
export const createMap = (app: Sphere): Figure =>
  new Figure({
    label: "Map of the loss over both angles",
    view: mapView,
    draw: (ctx, { view, ink }) =>
      paintMap(ctx, view, app.scene, app.angles?.answer, app.rasters, ink),
    handles: () => [
      {
        name: "map",
        at: bothAngles(app.scene),
        move: (both) => app.moveBoth(both),
        nudge: (step) => app.moveBoth(bothAngles(app.scene).map((x, i) => x + step[i])),
        title: "Drag both angles, or change them with the arrow keys",
        reach: 0,
        describe: () => describeAngles(app.scene),
      },
    ],
    change: (phase) => app.gesture(phase),
    describe: () => describeMap(app.scene, app.answer.value),
  });

/** Save the figures of the surface at twice their size. */
export async function saveFigures({ figures, scene, session, answer }: Sphere): Promise<void> {
  const { title } = session.schema.losses[scene.loss],
    finite = Object.entries(scene.hyper).filter(([, v]) => v !== null),
    values = hyperText(Object.fromEntries(finite)),
    text = `${title}${values && ` (${values})`}: loss ${show(answer.value?.energy)}`;
  const sheet = sheetOf(
    figures.map((figure) => [figure, ""]),
    2 * figures[0].view.width,
    session.theme.value,
    { text },
  );
  save(`${scene.on}.png`, await fileOf(sheet, "png"));
}
