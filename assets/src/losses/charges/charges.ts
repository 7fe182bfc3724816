// Charges page: points that move under the pulls and pushes of a triplet loss, and that the visitor
// can drag.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { ChargesAnswer, ChargesData, Law, Moved, Shown, Spec } from "./types.ts";
import type { TimelineRequest } from "../../kit/timeline/types.ts";
import type { Rows } from "../../kit/panel/panel.tsx";
import { StepCharts } from "../../kit/chart/steps.tsx";
import { defineComponent } from "../../kit/component.ts";
import { drawing, save, show as number } from "../../kit/dom.ts";
import { Player } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { changedSpec, lawAt } from "./changes.ts";
import { CURVES } from "./curves.ts";
import { CLASS, halfWidth, paintCharges } from "./draw.ts";
import { Hand } from "./hand.ts";
import { History } from "./history.ts";
import { Page } from "./page.tsx";
import { PortraitView } from "./portrait.ts";

const STILL = 1e-5; // if no point moves farther than this in a step, the simulation is at rest
const FIGURE = 700; // side of the exported figure, px

export class Charges extends Player<Spec, ChargesData, ChargesAnswer, History, { law: Law }> {
  frame: HTMLElement;
  canvas: HTMLCanvasElement;
  hand = new Hand(this);
  portrait = new PortraitView();
  curves = new StepCharts(
    CURVES,
    (step) => this.scrubTo(step),
    () => this.rest(),
  );
  readout = signal<Rows>([]);
  python = signal("");
  files = { npz: signal(""), json: signal("") }; // addresses of the history
  size: number;
  half: number;
  painted = 0;
  shown: Shown = { trails: true, arrows: false, circles: false };
  labels: Uint8Array;

  constructor(root: ParentNode, data: ChargesData) {
    super(root, data, { api: "api/charges", styles: "losses/charges/charges.css", ahead: 1 });
    const arrow = (x: number, y: number, by = 0) => {
      return (event: KeyboardEvent) => {
        if (event.shiftKey && this.hand.chosen !== null) return this.hand.push(x, y);
        return by ? this.step(by) : false;
      };
    };
    Object.assign(this.keys, {
      ArrowLeft: arrow(-1, 0, -1),
      ArrowRight: arrow(1, 0, 1),
      ArrowUp: arrow(0, 1),
      ArrowDown: arrow(0, -1),
      ",": () => this.hand.choose(-1),
      ".": () => this.hand.choose(1),
    });
  }

  empty() {
    return new History();
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

  get frameShown() {
    return this.history.at(this.at);
  }

  // ---- requests to Python
  ask(more: Partial<TimelineRequest<Spec>> = {}) {
    super.ask({ show: more.want ?? this.at, ...more });
  }

  onAnswer({ labels }: ChargesAnswer) {
    this.labels = labels;
  }

  onDraft(answer: ChargesAnswer) {
    this.history.preview(answer);
    this.invalidate();
  }

  arrive(step: number) {
    super.arrive(step);
    if (!this.playing) return;
    const { measures } = this.history.at(step);
    if (
      step > 1 &&
      measures.largest_step < STILL &&
      this.history.at(step - 1).measures.largest_step < STILL
    )
      this.pause(
        measures.active > 0
          ? "Equilibrium: the forces balance and no point moves any more."
          : "At rest: no triplet is active, so all forces are zero.",
      );
  }

  to(step: number) {
    super.to(step);
    if (this.wanted === undefined && !this.frameShown.portrait) this.ask();
  }

  // ---- changes
  settingsAt(step: number) {
    return { law: lawAt(this.state, step) };
  }

  changed(moved?: Moved) {
    return changedSpec(this.state, this.at, this.now.law, moved, this.options.limits.moved);
  }

  draft(moved?: Moved) {
    if (!this.drafting) this.hold();
    const { at } = this;
    this.ask({ state: this.changed(moved), draft: true, have: at - 1, want: at, show: at });
  }

  commit(moved?: Moved) {
    const played = this.release();
    this.change(this.changed(moved), this.at, played);
  }

  restart(change: Partial<Spec>) {
    const { classes, per_class } = { ...this.state, ...change },
      most = Math.floor(this.options.limits.points / classes);
    super.restart({ ...change, per_class: Math.min(per_class, most) });
  }

  // ---- link
  onLink({ python = "" }: ChargesAnswer) {
    this.python.value = python;
    for (const kind of ["npz", "json"] as const)
      this.files[kind].value = this.file(`history.${kind}`);
  }

  describeStep() {
    const { measures } = this.frameShown ?? {};
    return measures
      ? `step ${this.at}, loss ${number(measures.loss)}, MAP@R ${number(measures.map_at_r)}`
      : "";
  }

  defaultNotice() {
    const { capped = 0 } = this.frameShown ?? {};
    return capped
      ? `${capped} point${capped > 1 ? "s" : ""} would have moved farther than ${this.options.limits.stride} in this step and were limited to that distance.`
      : "";
  }

  // Return the query of the step shown as it is drawn.
  drawing() {
    const query = new URLSearchParams(this.address || location.search),
      flags = { ...this.shown, dark: this.theme === "dark" };
    query.set("step", String(this.at));
    for (const [name, on] of Object.entries(flags)) query.set(name, String(Number(on)));
    return query;
  }

  // ---- drawing
  resize() {
    this.size = this.frame.clientWidth;
    fit([this.canvas, this.portrait.canvas, ...this.curves.canvases]);
    this.portrait.forget();
    this.invalidate();
  }

  paint() {
    const { history, at, theme, canvas, frameShown: frame } = this;
    if (!frame || !this.size) return;
    if (!this.hand.dragging) this.half = halfWidth(frame.positions);
    this.paintPoints(drawing(canvas), this.size, this.hand.chosen);
    this.curves.paint({ last: history.last, step: at }, theme, {
      history,
      step: at,
      classes: CLASS[theme],
    });
    if (frame.portrait) this.portrait.paint(frame.portrait, theme);
    this.progress();
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

  paintPoints(ctx: CanvasRenderingContext2D, size: number, chosen: number | null) {
    paintCharges(ctx, size, this.history, this.at, this.labels, this.shown, this.theme, {
      half: this.half,
      chosen,
      circle: lawAt(this.state, this.at).normalise !== "none",
    });
  }

  // Save the figure at twice its size.
  figure() {
    const side = 2 * FIGURE,
      copy = Object.assign(document.createElement("canvas"), { width: side, height: side }),
      ctx = drawing(copy),
      { start, seed } = this.state;
    ctx.setTransform(2, 0, 0, 2, 0, 0);
    this.paintPoints(ctx, FIGURE, null);
    copy.toBlob((blob) => save(`charges-${start}-${seed}-${this.at}.png`, blob));
  }
}

export const { render, unmount } = defineComponent(Charges);
