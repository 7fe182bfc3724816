// The map as a figure of the kernel: points by WebGL, marks over them, moving, zooming, lasso, keys.
import type { Explore } from "./explore.tsx";
import type { Context, Ink } from "../../kit/types.ts";
import type { At, Drag, FigureSpec } from "../../kit/figure/spec.ts";
import type { View } from "../../kit/figure/view.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { placeCard } from "./card.tsx";
import { clipOf, windowOf } from "./camera.ts";
import { channels } from "./colours.ts";
import { dropLasso, enclose, foresee, hover, openCard, reportLook, toggleRow } from "./actions.ts";
import { describeMarks, paintOver } from "./overlay.ts";
import { Painter as Flat } from "./flat.ts";
import { Painter as Gl } from "./gl.ts";

const LABEL =
  "map of the embeddings: arrow keys go from point to point, Enter opens one, Space selects it, + and - zoom, L draws a lasso";
const REACH = 14, // px within which a point is under the pointer
  CLICK = 4, // px that a click may move
  APART = 3, // px between two corners of a lasso
  STEP = 1.4, // of + and -
  FAINT = 0.14; // opacity of points that are not highlighted
const ARROWS: Record<string, number[]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};
const unit = (hex: string) => channels(hex).map((v) => v / 255);

// Return the figure of a map, with `points` as the canvas below that of its marks.
export function createFigure(map: Explore, points: HTMLCanvasElement): Figure<number> {
  const { s, camera } = map;
  let painter = newPainter(map, points);
  const spec: FigureSpec<number> = {
    class: "map",
    label: LABEL,
    touch: "all",
    view: (width, height) => camera.view(width, height, map.extent),
    setView(window) {
      dropLasso(map); // the first of two fingers may have started one
      camera.take(figure.view, window);
    },
    zoom: {
      about: "pointer",
      digits: 12,
      // when the whole map is in view, the wheel scrolls the page
      wheel: ({ deltaY }) => camera.zoom > 1 || deltaY < 0,
      get closest() {
        return camera.limits(figure.view).closest;
      },
      get farthest() {
        return camera.limits(figure.view).farthest;
      },
    },
    change(phase) {
      if (phase === "move") reportLook(map);
    },
    hit: (at) => (at === last.at ? last.row : (last = { at, row: pick(map, at) }).row),
    hover(at, hit) {
      if (at?.event?.shiftKey && s.tool.peek() === "lasso") return;
      if (at) hover(map, hit ?? -1);
      else
        queueMicrotask(() => {
          if (!figure.busy) hover(map, -1); // a press keeps its point
        });
    },
    press: (at) =>
      s.tool.peek() === "lasso" || at.event?.shiftKey ? lasso(map, at) : pan(map, at),
    key: (event) => press(map, event),
    draw(ctx, { view, ink, exported }) {
      const painted = s.painted.peek();
      if (!painted) return;
      const { width, height } = ctx.canvas,
        sharpness = width / view.width;
      if (points.width !== width || points.height !== height)
        Object.assign(points, { width, height });
      painter.paint(painted.cloud, {
        ...painted,
        ...clipOf(view),
        states: s.states.peek(),
        window: windowOf(view),
        radius: radius(map, view) * sharpness,
        faint: FAINT,
        paper: unit(ink.page),
        ink: unit(ink.text),
      });
      if (exported) ctx.drawImage(points, 0, 0, view.width, view.height);
      report(map, paintOver(ctx as Context, map, view, ink as Ink, exported));
    },
  };
  let last: { at: At | null; row: number } = { at: null, row: -1 };
  const figure = new Figure<number>(spec),
    { canvas } = figure;
  canvas.before(points);
  figure.tools.remove(); // those of page.tsx are below the card
  canvas.setAttribute("role", "application");
  canvas.addEventListener("dblclick", () => showAll(map));
  points.addEventListener("webglcontextlost", (e) => e.preventDefault()); // so that it is restored
  points.addEventListener("webglcontextrestored", () => {
    painter = newPainter(map, points);
    figure.invalidate();
  });
  return figure;
}

function newPainter({ s }: Explore, canvas: HTMLCanvasElement): Gl | Flat {
  try {
    return new Gl(canvas);
  } catch {
    s.notice.value = "This browser has no WebGL2, so the map is slower.";
    return new Flat(canvas);
  }
}

// Return the radius of a point in pixels.
export function radius({ s, camera }: Explore, { scale }: View) {
  const count = s.cloud.peek()?.count ?? 1,
    alone = Math.max(1.7, (0.16 * scale) / camera.zoom / Math.sqrt(count)),
    marks = s.painted.peek()?.colour === "right" ? 1.25 : 1; // crosses need space
  return Math.min(7, marks * alone * camera.zoom ** 0.4);
}

// Show the whole map.
export function showAll(map: Explore) {
  map.camera.look(0.5, 0.5, 1);
  reportLook(map);
  map.figure.invalidate();
}

// Return the highlighted point nearest to the pointer, or -1.
function pick({ s, figure }: Explore, { place: [x, y] }: At) {
  const states = s.states.peek();
  return s.cloud.peek()?.nearest(x, y, REACH / figure.view.scale, (i) => states[i] & 1) ?? -1;
}

// Return true if a press has moved so little that it opens the point under it.
const click = (from: At, to: At) =>
  Math.hypot(to.pixel[0] - from.pixel[0], to.pixel[1] - from.pixel[1]) <= CLICK;

function pan(map: Explore, from: At): Drag {
  const { camera, figure } = map,
    { zoom } = camera;
  let moved = false;
  return {
    move(at, [dx, dy]) {
      if (!moved && click(from, at)) return;
      if (!moved) hover(map, -1);
      const [x, y] = moved ? [dx, dy] : [at.pixel[0] - from.pixel[0], at.pixel[1] - from.pixel[1]];
      moved = true;
      camera.pan(figure.view, x, y);
    },
    end(at, _, cancelled) {
      // two fingers zoom and open nothing
      if (!cancelled && !moved && click(from, at) && zoom === camera.zoom)
        openCard(map, pick(map, at));
    },
  };
}

function lasso(map: Explore, from: At): Drag {
  const { s, camera, figure } = map,
    { zoom } = camera,
    add = from.event?.shiftKey ?? false;
  let moved = false;
  return {
    move(at) {
      if (!moved && click(from, at)) return;
      if (moved && !s.line.peek()) return; // dropped by a second finger or by Escape
      if (!moved) hover(map, -1);
      moved = true;
      const line = s.line.peek() ?? [from.place],
        [x, y] = figure.view.to(line[line.length - 1]);
      if (Math.hypot(at.pixel[0] - x, at.pixel[1] - y) < APART) return;
      s.line.value = [...line, at.place];
      foresee(map, add);
    },
    end(at, _, cancelled) {
      if (cancelled) dropLasso(map);
      else if (s.line.peek()) enclose(map, add);
      else if (!moved && click(from, at) && zoom === camera.zoom) openCard(map, pick(map, at));
    },
  };
}

// Handle a key on the map; return true if it means something.
function press(map: Explore, { key, ctrlKey, metaKey, altKey }: KeyboardEvent) {
  const { s, figure } = map,
    row = s.hovered.peek();
  if (ctrlKey || metaKey || altKey) return false;
  if (key in ARROWS) step(map, ARROWS[key]);
  else if (key === "Enter") openCard(map, row, true);
  else if (key === " ") toggleRow(map, row);
  else if (key === "+" || key === "=") figure.zoom(1 / STEP);
  else if (key === "-") figure.zoom(STEP);
  else if (key === "0") showAll(map);
  else if (key === "l") s.tool.value = "lasso";
  else if (key === "m") s.tool.value = "move";
  else if (key === "Escape") {
    dropLasso(map);
    openCard(map, -1);
    hover(map, -1);
  } else return false;
  return true;
}

// Go to the nearest point in the direction of an arrow key.
function step(map: Explore, arrow: number[]) {
  const { s, camera, figure } = map,
    cloud = s.cloud.peek(),
    at = s.hovered.peek(),
    states = s.states.peek();
  if (!cloud) return;
  const from = at >= 0 ? [cloud.x(at), cloud.y(at)] : [camera.x, camera.y],
    window = windowOf(figure.view),
    row = cloud.nearestInDirection(from, arrow, window, (i) => states[i] & 1, at);
  if (row >= 0) hover(map, row);
}

// Report what was painted: for tests, and the key of the marks in words.
function report(map: Explore, drawn: ReturnType<typeof paintOver>) {
  const { s, canvas } = map,
    { dataset } = canvas;
  s.marks.value = describeMarks(map, drawn);
  dataset.images = String(drawn.images);
  dataset.painted = String(Number(dataset.painted ?? 0) + 1);
  dataset.count = String(s.cloud.peek()?.count);
  placeCard(map);
}
