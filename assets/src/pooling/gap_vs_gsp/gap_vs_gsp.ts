// GAP vs GSP page: two training runs on the same tokens, computed by Python step by step and shown
// side by side on one clock.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import type { Frame, GapAnswer, GapData, Measure, Settings, Side, Study } from "./types.ts";
import { StepCharts } from "../../kit/chart/steps.tsx";
import { defineComponent } from "../../kit/component.ts";
import { brief } from "../../kit/plot.ts";
import { Player } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { Story } from "../story/story.ts";
import { CURVES, MEASURES } from "./curves.ts";
import { History, SIDES } from "./history.ts";
import { NumberTable, Page } from "./page.tsx";
import { PlaneFigure } from "./plane.ts";
import { verdict } from "./verdict.ts";
import { cellText, classText } from "./words.ts";

const NUMBERS_EVERY = 100; // ms between two updates of curves and numbers while playing

export class GapOrGsp extends Player<Study, GapData, GapAnswer, History, Settings> {
  chosen: number | null; // class
  over: number | null = null; // class under the pointer
  shown = { hulls: true, samples: true, prototypes: true };
  planes = SIDES.map((side) => new PlaneFigure(this, side));
  words = signal("");
  cells = Object.fromEntries(
    SIDES.map((side) => [side, Object.fromEntries(MEASURES.map(([name]) => [name, signal("–")]))]),
  ) as Record<Side, Record<Measure, Signal<string>>>;
  curves = new StepCharts(
    CURVES,
    (step) => this.scrubTo(step),
    () => this.rest(),
    h(NumberTable, { cells: this.cells }),
  );
  story = new Story(this, "gap_vs_gsp", {
    back: ["transport", "a gate"],
    next: ["collage", "on images"],
  });
  tau: number; // threshold of the slider while it is moved
  labels: Uint8Array; // classes of the bags
  tomls = signal<Partial<Record<Side, string>>>({}); // specs of both runs
  private unasked = false; // true until the visitor touches the page
  private paintedAt = 0; // ms, of the numbers

  constructor(root: ParentNode, data: GapData) {
    super(root, data, {
      api: "api/gap_or_gsp",
      styles: "pooling/gap_vs_gsp/gap_vs_gsp.css",
      ahead: 3,
    });
    this.chosen = data.chosen;
    Object.assign(this.keys, {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ",": () => this.turn(-1),
      ".": () => this.turn(1),
      Escape: () => this.choose(null),
    });
  }

  empty() {
    return new History();
  }

  start(data: GapData) {
    super.start(data);
    this.unasked = this.playing;
    const touched = () => {
      this.unasked = false;
    };
    for (const gesture of ["pointerdown", "keydown"])
      this.whole.addEventListener(gesture, touched, { capture: true });
  }

  page() {
    return h(Page, { app: this });
  }

  onTheme() {
    for (const { figure } of this.planes) figure.setTheme(this.theme);
    this.show();
  }

  get frame(): Frame | undefined {
    return this.history.at(this.at);
  }

  // ---- messages from Python
  onAnswer({ labels }: GapAnswer) {
    this.labels = labels;
  }

  onLink({ runs }: GapAnswer) {
    this.tomls.value = runs ?? {};
  }

  arrive(step: number) {
    super.arrive(step);
    if (!this.unasked || step < this.options.limits.unasked) return;
    this.unasked = false;
    this.pause(`Paused at step ${step}. Press Play to continue.`);
  }

  get full() {
    return "Open it as a run to continue, or go back and change a setting.";
  }

  // ---- changes
  get settings() {
    return this.options.onTheWay;
  }

  onStateReplaced() {
    if ((this.chosen ?? 0) >= this.state.classes) this.chosen = null;
    this.over = null;
  }

  // ---- step in words
  get sentence() {
    return this.options.sentence;
  }

  describeStep() {
    const { frame } = this;
    return frame
      ? `step ${this.at}, MAP@R of GAP ${brief(frame.gap.held.map_at_r)}, of GSP ${brief(frame.gsp.held.map_at_r)}`
      : "";
  }

  marks(): Record<string, string> {
    return this.chosen === null ? {} : { class: String(this.chosen + 1) };
  }

  // ---- highlighted class
  get highlighted() {
    return this.over ?? this.chosen;
  }

  choose(label: number | null) {
    this.chosen = label;
    this.over = null;
    this.show();
    this.invalidate();
    const { frame } = this;
    this.view.live.value =
      label === null ? "no class chosen" : frame ? classText(frame, label) : "";
    this.rest();
  }

  turn(by: number) {
    const n = this.state.classes;
    this.choose(((this.chosen ?? (by > 0 ? -1 : 0)) + by + n) % n);
  }

  // ---- drawing
  resize() {
    for (const { figure } of this.planes) figure.resize();
    fit(this.curves.canvases);
    this.invalidate();
  }

  // Paint the planes in every frame; while playing, curves and numbers only ten times a second.
  paint() {
    const { frame, at } = this,
      now = performance.now();
    if (!frame) return;
    for (const { figure } of this.planes) figure.flush();
    if (!this.playing || now - this.paintedAt >= NUMBERS_EVERY) {
      this.paintedAt = now;
      this.paintNumbers(frame);
    }
    for (const { figure } of this.planes) figure.canvas.dataset.step = String(at);
  }

  paintNumbers(frame: Frame) {
    const { history, at, theme, highlighted } = this;
    for (const side of SIDES)
      for (const [name] of MEASURES)
        this.cells[side][name].value = cellText(name, frame[side].held[name]);
    for (const plane of this.planes) plane.describe(frame);
    // Changes of settings, and the initialisation of the prototypes.
    const marks = [...this.state.changes.map((c) => c.at), ...history.placedAt];
    this.curves.paint({ last: history.last, step: at, marks }, theme, history);
    const { mu, epsilon } = this.settingsAt(at);
    this.story.tell(
      verdict(frame, history.at(0), at, this.playing || at < this.options.limits.unasked),
      new URLSearchParams({ mu: String(mu), epsilon: String(epsilon) }).toString(),
    );
    this.progress();
    this.words.value = highlighted === null ? this.options.hint : classText(frame, highlighted);
  }

  close() {
    super.close();
    for (const { figure } of this.planes) figure.close();
  }
}

export const { render, unmount } = defineComponent(GapOrGsp);
