// GAP vs GSP page: two training runs on the same tokens, computed by Python step by step and shown
// side by side on one clock.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import type { Frame, GapAnswer, GapKinds, Measure, Side } from "./types.ts";
import type { StepCharts } from "../../kit/chart/steps.tsx";
import type { TimelineFigure } from "../../kit/timeline/types.ts";
import { still } from "../../kit/dom.ts";
import { brief } from "../../kit/plot.ts";
import { definePlayer } from "../../kit/timeline/player.ts";
import type { Player } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { Story } from "../story/story.ts";
import { CURVES, MEASURES } from "./curves.ts";
import type { History } from "./history.ts";
import { SIDES, newHistory, placedAt } from "./history.ts";
import { NumberTable, Page } from "./page.tsx";
import { PlaneFigure } from "./plane.ts";
import { verdict } from "./verdict.ts";
import { cellText, classText } from "./words.ts";

const NUMBERS_EVERY = 100; // ms between two updates of curves and numbers while playing

export class GapOrGsp implements TimelineFigure<GapKinds> {
  readonly player: Player<GapKinds>;
  readonly clock: Player<GapKinds>["clock"];
  readonly settings: string[];
  readonly keys: TimelineFigure<GapKinds>["keys"];
  readonly full = "Open it as a run to continue, or go back and change a setting.";
  readonly planes = SIDES.map((side) => new PlaneFigure(this, side));
  readonly words = signal("");
  readonly cells = Object.fromEntries(
    SIDES.map((side) => [side, Object.fromEntries(MEASURES.map(([name]) => [name, signal("–")]))]),
  ) as Record<Side, Record<Measure, Signal<string>>>;
  readonly tomls = signal<Partial<Record<Side, string>>>({}); // specs of both runs
  readonly curves: StepCharts<History>;
  readonly story: Story;
  chosen: number | null; // class
  over: number | null = null; // class under the pointer
  shown = { hulls: true, samples: true, prototypes: true };
  tau: number; // threshold of the slider while it is moved
  labels: Uint8Array; // classes of the bags
  private unasked: boolean; // it plays, and the visitor has not touched the page
  private paintedAt = 0; // ms, of the numbers

  constructor(player: Player<GapKinds>) {
    const { session, playback } = player,
      { data, hidden, whole } = session;
    this.player = player;
    this.clock = player.clock;
    this.settings = player.options.onTheWay;
    this.chosen = data.chosen;
    this.curves = player.charts(CURVES, h(NumberTable, { cells: this.cells }));
    this.story = new Story({ data, hidden }, "gap_vs_gsp", {
      back: ["transport", "a gate"],
      next: ["collage", "on images"],
    });
    this.keys = {
      ArrowLeft: () => playback.step(-1),
      ArrowRight: () => playback.step(1),
      ",": () => this.turn(-1),
      ".": () => this.turn(1),
      Escape: () => this.choose(null),
    };
    this.unasked = player.idle && !still();
    const touched = () => {
      this.unasked = false;
    };
    for (const gesture of ["pointerdown", "keydown"])
      whole.addEventListener(gesture, touched, { capture: true });
  }

  page() {
    return h(Page, { app: this });
  }

  onTheme() {
    for (const { figure } of this.planes) figure.setTheme(this.player.theme);
    this.player.show();
  }

  get frame(): Frame | undefined {
    return this.clock.history.at(this.clock.at);
  }

  // ---- messages from Python
  onAnswer({ labels }: GapAnswer) {
    this.labels = labels;
  }

  onLink({ runs }: GapAnswer) {
    this.tomls.value = runs ?? {};
  }

  onArrive(step: number) {
    if (!this.unasked || step < this.player.options.limits.unasked) return;
    this.unasked = false;
    this.player.playback.pause(`Paused at step ${step}. Press Play to continue.`);
  }

  onStateReplaced() {
    if ((this.chosen ?? 0) >= this.clock.state.classes) this.chosen = null;
    this.over = null;
  }

  // ---- step in words
  describeStep() {
    const { frame } = this;
    return frame
      ? `step ${this.clock.at}, MAP@R of GAP ${brief(frame.gap.held.map_at_r)}, of GSP ${brief(frame.gsp.held.map_at_r)}`
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
    this.player.show();
    this.clock.invalidate();
    const { frame } = this;
    this.player.view.live.value =
      label === null ? "no class chosen" : frame ? classText(frame, label) : "";
    this.player.address.rest();
  }

  turn(by: number) {
    const n = this.clock.state.classes;
    this.choose(((this.chosen ?? (by > 0 ? -1 : 0)) + by + n) % n);
  }

  // ---- drawing
  resize() {
    for (const { figure } of this.planes) figure.resize();
    fit(this.curves.canvases);
  }

  // Paint the planes in every frame; while playing, curves and numbers only ten times a second.
  paint() {
    const { frame, clock } = this,
      now = performance.now();
    if (!frame) return;
    for (const { figure } of this.planes) figure.flush();
    if (!clock.playing || now - this.paintedAt >= NUMBERS_EVERY) {
      this.paintedAt = now;
      this.paintNumbers(frame);
    }
    for (const { figure } of this.planes) figure.canvas.dataset.step = String(clock.at);
  }

  paintNumbers(frame: Frame) {
    const { clock, player, highlighted } = this,
      { history, at, playing, state } = clock,
      { options } = player;
    for (const side of SIDES)
      for (const [name] of MEASURES)
        this.cells[side][name].value = cellText(name, frame[side].held[name]);
    for (const plane of this.planes) plane.describe(frame);
    // Changes of settings, and the initialisation of the prototypes.
    const marks = [...state.changes.map((c) => c.at), ...placedAt(history)];
    this.curves.paint({ last: history.last, step: at, marks }, player.theme, history);
    const { mu, epsilon } = player.changes.settingsAt(at);
    this.story.tell(
      verdict(frame, history.at(0), at, playing || at < options.limits.unasked),
      new URLSearchParams({ mu: String(mu), epsilon: String(epsilon) }).toString(),
    );
    player.progress();
    this.words.value = highlighted === null ? options.hint : classText(frame, highlighted);
  }

  close() {
    for (const { figure } of this.planes) figure.close();
  }
}

export const { render, unmount } = definePlayer<GapKinds>(
  {
    api: "api/gap_vs_gsp",
    styles: "pooling/gap_vs_gsp/gap_vs_gsp.css",
    ahead: 3,
    empty: newHistory,
  },
  (player) => new GapOrGsp(player),
);
