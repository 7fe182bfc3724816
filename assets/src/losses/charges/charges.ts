// Charges page: points that move under the pulls and pushes of a triplet loss, and that the visitor
// can drag.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { ChargesAnswer, ChargesKinds, Frame, Shown, Spec } from "./types.ts";
import type { Rows } from "../../kit/panel/panel.tsx";
import type { TimelineFigure } from "../../kit/timeline/types.ts";
import type { Context } from "../../kit/types.ts";
import type { FigureFormat } from "../../kit/figure/file.ts";
import type { StepCharts } from "../../kit/chart/steps.tsx";
import { drawing, save, show as number } from "../../kit/dom.ts";
import { fileOf } from "../../kit/figure/file.ts";
import { definePlayer } from "../../kit/timeline/player.ts";
import type { Player } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { lawAt } from "./changes.ts";
import { CURVES } from "./curves.ts";
import type { CurveData } from "./curves.ts";
import { CLASS, halfWidth, paintCharges } from "./draw.ts";
import { Hand } from "./hand.ts";
import { History } from "./history.ts";
import { Page } from "./page.tsx";
import { PortraitView } from "./portrait.ts";

const STILL = 1e-5; // if no point moves farther than this in a step, the simulation is at rest
const FIGURE = 700; // side of the exported figure, px

export class Charges implements TimelineFigure<ChargesKinds> {
  readonly player: Player<ChargesKinds>;
  readonly clock: Player<ChargesKinds>["clock"];
  readonly hand = new Hand(this);
  readonly portrait = new PortraitView();
  readonly curves: StepCharts<CurveData>;
  readonly readout = signal<Rows>([]);
  readonly python = signal("");
  readonly files = { npz: signal(""), json: signal("") }; // addresses of the history
  readonly keys: TimelineFigure<ChargesKinds>["keys"];
  frame: HTMLElement;
  canvas: HTMLCanvasElement;
  size: number;
  half: number;
  shown: Shown = { trails: true, arrows: false, circles: false };
  labels: Uint8Array;
  private painted = 0;

  constructor(player: Player<ChargesKinds>) {
    const { playback } = player;
    this.player = player;
    this.clock = player.clock;
    this.curves = player.charts(CURVES);
    const arrow = (x: number, y: number, by = 0) => {
      return (event: KeyboardEvent) => {
        if (event.shiftKey && this.hand.chosen !== null) return this.hand.push(x, y);
        return by ? playback.step(by) : false;
      };
    };
    this.keys = {
      ArrowLeft: arrow(-1, 0, -1),
      ArrowRight: arrow(1, 0, 1),
      ArrowUp: arrow(0, 1),
      ArrowDown: arrow(0, -1),
      ",": () => this.hand.choose(-1),
      ".": () => this.hand.choose(1),
    };
  }

  // ---- elements
  setFrame = (frame: HTMLElement | null) => {
    if (frame) this.frame = frame;
  };
  setCanvas = (canvas: HTMLCanvasElement | null) => {
    if (canvas) this.canvas = canvas;
  };

  page() {
    return h(Page, { app: this });
  }

  onTheme() {
    this.portrait.forget();
  }

  onStateReplaced() {
    this.hand.chosen = null;
  }

  // Frame of the step shown.
  get frameShown(): Frame | undefined {
    return this.clock.history.at(this.clock.at);
  }

  // ---- messages from Python
  onAnswer({ labels }: ChargesAnswer) {
    this.labels = labels;
  }

  onDraft(answer: ChargesAnswer) {
    this.clock.history.preview(answer);
    this.clock.invalidate();
  }

  onLink({ python = "" }: ChargesAnswer) {
    this.python.value = python;
    for (const kind of ["npz", "json"] as const)
      this.files[kind].value = this.player.address.file(`history.${kind}`);
  }

  // ---- steps
  onArrive(step: number) {
    const { history, playing } = this.clock,
      moves = (k: number) => history.at(k).measures.largest_step >= STILL;
    if (!playing || step < 2 || moves(step) || moves(step - 1)) return;
    this.player.playback.pause(
      history.at(step).measures.active > 0
        ? "Equilibrium: the forces balance and no point moves any more."
        : "At rest: no triplet is active, so all forces are zero.",
    );
  }

  onJump() {
    if (this.clock.wanted === undefined && !this.frameShown?.portrait) this.clock.ask();
  }

  describeStep() {
    const { measures } = this.frameShown ?? {};
    return measures
      ? `step ${this.clock.at}, loss ${number(measures.loss)}, MAP@R ${number(measures.map_at_r)}`
      : "";
  }

  defaultNotice() {
    const { capped = 0 } = this.frameShown ?? {};
    return capped
      ? `${capped} point${capped > 1 ? "s" : ""} would have moved farther than ${this.player.options.limits.stride} in this step and were limited to that distance.`
      : "";
  }

  // ---- changes
  settingsAt(step: number) {
    return { law: lawAt(this.clock.state, step) };
  }

  restarted(change: Partial<Spec>) {
    const { classes, per_class } = { ...this.clock.state, ...change },
      most = Math.floor(this.player.options.limits.points / classes);
    return { ...change, per_class: Math.min(per_class, most) };
  }

  // ---- drawing
  resize() {
    this.size = this.frame.clientWidth;
    fit([this.canvas, this.portrait.canvas, ...this.curves.canvases]);
    this.portrait.forget();
  }

  paint() {
    const { frameShown: frame, canvas, clock, player } = this,
      { history, at } = clock,
      { theme } = player;
    if (!frame || !this.size) return;
    if (!this.hand.dragging) this.half = halfWidth(frame.positions);
    this.paintPoints(drawing(canvas), this.size, this.hand.chosen);
    const data = { history, step: at, classes: CLASS[theme] };
    this.curves.paint({ last: history.last, step: at }, theme, data);
    if (frame.portrait) this.portrait.paint(frame.portrait, theme);
    player.progress();
    const { loss, active, pull, push, map_at_r, covering } = frame.measures;
    this.readout.value = [
      ["loss", number(loss)],
      ["active", number(active)],
      ["mean pull", number(pull)],
      ["mean push", number(push)],
      ["MAP@R", number(map_at_r)],
      ["covering", number(covering)],
      ["triplets", frame.triplets.toLocaleString("en")],
    ];
    canvas.setAttribute(
      "aria-label",
      `${this.labels.length} points of ${frame.radii.length} classes at step ${at}: loss ${number(loss)}, active ${number(active)}, MAP@R ${number(map_at_r)}, class radii ${[...frame.radii].map(number).join(", ")}`,
    );
    canvas.dataset.step = String(at);
    canvas.dataset.half = String(this.half);
    canvas.dataset.seq = String(++this.painted);
  }

  private paintPoints(ctx: Context, size: number, chosen: number | null) {
    const { history, at, state } = this.clock;
    paintCharges(ctx, size, history, at, this.labels, this.shown, this.player.theme, {
      half: this.half,
      chosen,
      circle: lawAt(state, at).normalise !== "none",
    });
  }

  // Save the figure of the step shown, without the mark of the chosen point.
  async save(format: FigureFormat) {
    const { state, at } = this.clock,
      draw = (ctx: Context) => this.paintPoints(ctx, FIGURE, null),
      file = await fileOf({ width: FIGURE, height: FIGURE, scale: 2, draw }, format);
    save(`charges-${state.start}-${state.seed}-${at}.${format}`, file);
  }
}

export const { render, unmount } = definePlayer<ChargesKinds>(
  {
    api: "api/charges",
    styles: "losses/charges/charges.css",
    ahead: 1,
    showWanted: true,
    empty: () => new History(),
  },
  (player) => new Charges(player),
);
