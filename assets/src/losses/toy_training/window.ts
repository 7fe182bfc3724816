// One window of toy training: the inputs, or the embeddings of one side, as points in a figure that
// turns.
import { signal } from "@preact/signals";
import type { Toys } from "./toy_training.ts";
import type { Known, Row, Scene } from "./types.ts";
import type { At, FigureSpec } from "../../kit/figure/spec.ts";
import type { Rows } from "../../kit/panel/panel.tsx";
import { drawing, show as number } from "../../kit/dom.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { plane } from "../../kit/figure/view.ts";
import { arrow } from "../../kit/hand.ts";
import { paintCloud, projector, windowOf } from "./cloud.ts";
import { LETTERS } from "./names.ts";
import { linkQueries, paintQueries, rightOf, rowsOf } from "./queries.ts";

const REACH = 0.5 / 0.47, // half the side of a window in radii of its content, which leaves a margin
  NEAR = 11, // px within which a pointer finds a point
  NEAR_FINGER = 22,
  TURN = 0.45, // degrees per px
  KEY = 6, // degrees per arrow key
  KEYS = "arrow keys rotate a 3-D view, plus and minus zoom; space plays and pauses";

// Direction from which windows are seen, and their zoom.
export class Eye {
  angles = [-60, 22]; // longitude and latitude, degrees
  zoom = 1;

  turn(lon: number, lat: number) {
    this.angles = [this.angles[0] + lon, Math.min(Math.max(this.angles[1] + lat, -89), 89)];
  }
}

const countOf = (data: Known) => `${data.labels.length} points of ${data.classes.length} classes`;
const measured = (v: number) => (Number.isFinite(v) ? number(v) : "–");

export class CloudWindow {
  app: Toys;
  side: number; // -1: inputs
  eye: Eye;
  figure: Figure<number>;
  readout = signal<Rows>([]);
  strip: HTMLCanvasElement | null = null; // queries and their neighbours
  scene: Scene | null = null;
  private rows: Row[] = [];
  private half: number | undefined;
  private readonly spec: FigureSpec<number>;
  private seen: unknown[] = []; // values that are painted

  constructor(app: Toys, eye: Eye, side = -1) {
    this.app = app;
    this.side = side;
    this.eye = eye;
    this.spec = this.newSpec();
    this.figure = new Figure(this.spec);
  }

  get name() {
    return this.side < 0 ? "input" : "embedding";
  }

  setStrip = (strip: HTMLCanvasElement | null) => {
    this.strip = strip;
  };

  private newSpec(): FigureSpec<number> {
    const { app, eye } = this,
      turn = (lon: number, lat: number) => this.scene?.dim === 3 && eye.turn(lon, lat);
    return {
      label: this.name,
      keys: KEYS,
      touch: "all",
      view: (width, height) => plane([0, 0, REACH / eye.zoom], width, height),
      setView: ([, , half]) => {
        eye.zoom = REACH / half;
      },
      zoom: { closest: REACH / 8, farthest: REACH / 0.5 },
      draw: (ctx, { view, theme, exported }) => {
        const { scene, rows } = this;
        if (!scene) return;
        paintCloud(ctx, view, exported ? { ...scene, ring: null } : scene, theme);
        if (rows.length) linkQueries(ctx, view, scene, rows);
      },
      press: () => ({ move: (_, [dx, dy]) => turn(-TURN * dx, TURN * dy) }),
      key: (event) => {
        const step = this.scene?.dim === 3 && arrow(event);
        if (step) this.figure.nudge(() => turn(KEY * step[0], KEY * step[1]));
        return Boolean(step);
      },
      change: () => app.clock.invalidate(),
      hit: (at) => this.nearest(at),
      hover: (at, hit) => {
        this.tell(at, hit);
        app.ring = hit;
        app.clock.invalidate();
      },
      open: (hit) => app.light(app.clock.history.data?.labels[hit] ?? null),
    };
  }

  // Name the point under the pointer.
  private tell(at: At | null, hit: number | null) {
    const { data } = this.app.clock.history;
    if (at && hit !== null && data)
      this.figure.showTip(at.place, [
        [`${data.classes[data.labels[hit]]}, sample ${data.indices[hit]}`, ""],
      ]);
    else this.figure.showTip(null);
  }

  // Return the point near a place: the nearest, of several at about the same distance the one in
  // front.
  private nearest({ pixel: [px, py], by }: At) {
    const { scene } = this;
    if (!scene) return null;
    const at = projector(scene),
      { to } = this.figure.view;
    let best: number | null = null;
    let least = by === "touch" ? NEAR_FINGER : NEAR,
      front = -Infinity;
    scene.labels.forEach((label, i) => {
      if (scene.highlighted.size && !scene.highlighted.has(label)) return;
      const place = at(i),
        [x, y] = to(place),
        d = Math.hypot(x - px, y - py);
      if (d < least - 3 || (d < least && place[2] > front)) [best, least, front] = [i, d, place[2]];
    });
    return best;
  }

  // Return the points at a step, null if they are not loaded.
  private sceneAt(step: number): Scene | null {
    const { highlighted, ring, clock } = this.app,
      { history, state } = clock,
      data = history.data as Known,
      isInput = this.side < 0,
      points = isInput ? data.inputs : history.frame(this.side, step),
      dim = isInput ? 3 : data.dim,
      outline = !isInput && state.normalize && dim === state.dim;
    if (!points) return null;
    const window = windowOf(points, dim, outline, this.half);
    this.half = window.half;
    const { labels } = data,
      axes = isInput ? data.axes : undefined;
    return { points, dim, labels, axes, outline, window, highlighted, ring, eye: this.eye.angles };
  }

  paint(step: number) {
    const { app, figure, side } = this,
      { history, playing } = app.clock,
      data = history.data as Known,
      scene = (this.scene = this.sceneAt(step));
    if (!scene || this.isPainted(scene)) return;
    this.rows = side >= 0 && app.sheet ? rowsOf(history, side, step) : [];
    figure.flush();
    if (side < 0) {
      this.readout.value = [
        ["shown", data.labels.length.toLocaleString("en")],
        ["classes", String(data.classes.length)],
        ["R@1", number(data.baseline.recall)],
        ["MAP@R", number(data.baseline.map_at_r)],
      ];
      this.spec.label = `inputs, ${countOf(data)}: ${data.note}; ${data.axes.join(", ")}; MAP@R ${number(data.baseline.map_at_r)}`;
    } else {
      const r = history.row(side, step);
      this.readout.value = [
        ["loss", measured(r.loss)],
        ["active", measured(r.active)],
        app.images ? ["R@1", measured(r.recall)] : ["cost > 0", measured(r.nonzero)],
        ["MAP@R", measured(r.map_at_r)],
      ];
      this.spec.label = `embedding ${LETTERS[side]}, ${scene.dim}-D, ${app.name(side)}: ${countOf(data)} after step ${step}; loss ${number(r.loss)}, active share ${number(r.active)}, MAP@R of the points shown ${number(r.map_at_r)} at step ${r.scored}`;
      figure.canvas.dataset.step = String(step);
      this.paintStrip(step);
    }
    if (!playing) figure.announce();
  }

  // Return true if the inputs are already painted; they stay still while the embeddings move.
  private isPainted({ points, eye, ring, highlighted }: Scene) {
    if (this.side >= 0) return false;
    const { app, figure, seen } = this,
      { width } = figure.canvas,
      { theme } = app.player,
      now = [points, theme, width, app.clock.playing, this.eye.zoom, ring, ...eye, ...highlighted];
    this.seen = now;
    return seen.length === now.length && seen.every((value, k) => value === now[k]);
  }

  private paintStrip(step: number) {
    const { strip, rows, app } = this,
      { data } = app.clock.history;
    if (!strip || !rows.length || !data || !app.sheet) return;
    paintQueries(drawing(strip), strip.clientWidth, rows, data.labels, app.sheet, app.player.theme);
    strip.dataset.step = String(step);
    if (app.clock.playing) return;
    const told = rows.map(
      (row) =>
        `${data.classes[data.labels[row.query]]}, ${rightOf(row, data.labels)} of ${row.next.length} right`,
    );
    strip.ariaLabel = `neighbours ${LETTERS[this.side]}: ${told.join("; ")}`;
  }
}
