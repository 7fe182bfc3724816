// Toy training page: one or two training runs that Python computes, on one clock, as moving points.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Side, ImageSheet, Told, ToysAnswer, ToysData, ToysKinds } from "./types.ts";
import type { Speed, TimelineFigure } from "../../kit/timeline/types.ts";
import type { Schema } from "../../kit/types.ts";
import type { StepCharts } from "../../kit/chart/steps.tsx";
import { show as number } from "../../kit/dom.ts";
import { definePlayer } from "../../kit/timeline/player.ts";
import type { Player } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { decode } from "../../kit/socket.ts";
import { toyCurves } from "./curves.ts";
import { History } from "./history.ts";
import { LETTERS, sideName } from "./names.ts";
import { Page } from "./page.tsx";
import { sheetOf } from "./queries.ts";
import { Scores } from "./scores.ts";
import { CloudWindow, Eye } from "./window.ts";

const SPEEDS: Speed[] = [
  ["slow motion, batch by batch", 1, 4],
  ["batch by batch", 1, 30],
  ["4 batches per frame", 4, 20],
  ["16 batches per frame", 16, 20],
  ["epoch by epoch", 0, 8],
  ["every batch, full speed", 1, 1000],
];

export class Toys implements TimelineFigure<ToysKinds> {
  readonly player: Player<ToysKinds>;
  readonly clock: Player<ToysKinds>["clock"];
  readonly schema: Schema; // with the losses of batches
  readonly settings = ["sides", "rate"];
  readonly keys: TimelineFigure<ToysKinds>["keys"];
  readonly ready: Promise<void>;
  readonly eyes = { input: new Eye(), embedding: new Eye() };
  readonly scores: Scores;
  readonly run = signal<(Told & { steps: number }) | null>(null); // each side as a run of its own
  windows: CloudWindow[] = []; // inputs, then the embeddings of each side
  curves: StepCharts<History>;
  highlighted: Set<number> = new Set(); // classes
  ring: number | null = null; // point under the pointer
  sheet: ImageSheet | null = null;
  spare: Side | undefined; // second side, while only one is shown
  preparation = ""; // work of Python before the first step
  private work: HTMLElement;
  private painted = 0;

  constructor(player: Player<ToysKinds>) {
    const { session, options, playback } = player,
      { schema } = session;
    this.player = player;
    this.clock = player.clock;
    this.schema = { ...schema, losses: { ...schema.losses, ...options.batch_losses } };
    this.scores = new Scores(session);
    this.keys = {
      ",": () => playback.step(-1),
      ".": () => playback.step(1),
      PageUp: () => playback.step(-1, true),
      PageDown: () => playback.step(1, true),
    };
    this.makeWindows();
    this.ready = this.load(session.early as ReturnType<typeof fetchRecording>);
  }

  // Load the steps of a recording, if there is one.
  private async load(recording: ReturnType<typeof fetchRecording>) {
    const bytes = await recording,
      { history } = this.clock;
    if (!bytes) return;
    history.add(decode<ToysAnswer>(bytes));
    this.clock.recordedTo = history.last;
    this.player.show();
  }

  // ---- elements
  setWork = (work: HTMLElement | null) => {
    if (work) this.work = work;
  };

  page() {
    return h(Page, { app: this });
  }

  onPanel() {
    this.player.resize(); // of new windows
  }

  makeWindows() {
    const { sides } = this.clock.state,
      { input, embedding } = this.eyes;
    for (const { figure } of this.windows) figure.close();
    this.windows = [
      new CloudWindow(this, input),
      ...sides.map((_, i) => new CloudWindow(this, embedding, i)),
    ];
    this.curves = this.player.charts(toyCurves(sides.length, this.player.options.recent));
  }

  get images() {
    return this.clock.state.data in this.player.options.images;
  }

  name(side: number) {
    const { sides } = this.player.changes.settingsAt(this.clock.at);
    return sideName(this.schema, this.player.options, sides[side], this.images);
  }

  // Highlight a class, or none.
  light(k: number | null) {
    if (k === null) this.highlighted.clear();
    else if (!this.highlighted.delete(k)) this.highlighted.add(k);
    this.player.show();
    this.clock.invalidate();
  }

  onTheme() {
    for (const { figure } of this.windows) figure.setTheme(this.player.theme);
    this.player.show();
  }

  get epoch() {
    return this.clock.history.perEpoch;
  }

  // ---- messages from Python
  onAnswer({ preparing = "", labels }: ToysAnswer) {
    this.preparation = preparing;
    if (labels) this.loadImages(); // may arrive twice if it was requested before the first answer
    if (labels || preparing) this.player.show();
  }

  // Decode the images; they are drawn once the browser has finished.
  async loadImages() {
    const { data } = this.clock.history;
    this.sheet = null;
    if (!data?.sheet) return;
    const sheet = await sheetOf(data);
    if (this.clock.history.data !== data) return;
    this.sheet = sheet;
    this.player.resize();
  }

  onLink({ toml = [], command = [], links = [], show = 0 }: ToysAnswer) {
    this.run.value = { toml, command, links, steps: Math.max(show, 1) };
    const { playing, goal } = this.clock,
      { session, address } = this.player,
      hidden = session.hidden.has("table") || session.link.fallback;
    if (!playing && !goal && !hidden) this.scores.load(address.text);
  }

  // ---- changes
  onStateReplaced() {
    this.ring = null;
    this.sheet = null;
    this.highlighted.clear();
    if (this.windows.length !== this.clock.state.sides.length + 1) this.makeWindows();
  }

  // ---- step in words
  describeStep() {
    const { state, history, at } = this.clock;
    const told = state.sides.map((_, i) => {
      const r = history.row(i, at);
      return `${LETTERS[i]}: loss ${number(r.loss)}, MAP@R ${number(r.map_at_r)}`;
    });
    return `step ${at}. ${told.join("; ")}`;
  }

  defaultNotice() {
    const { recordedTo, at } = this.clock;
    return recordedTo > 0 && at <= recordedTo
      ? `This is a recording. The training continues live from step ${recordedTo}, or as soon as you change a setting.`
      : "";
  }

  moment() {
    const { at } = this.clock;
    return `step ${at}, epoch ${(at / this.epoch).toFixed(1)}`;
  }

  // ---- drawing
  resize() {
    for (const { figure } of this.windows) figure.resize();
    const strips = this.windows.flatMap(({ strip }) => strip ?? []);
    fit([...strips, ...this.curves.canvases]);
  }

  paint() {
    const { history, state, at, playing, trained } = this.clock,
      { last } = history,
      step = history.nearest(at);
    if (step < 0 || !history.data) return;
    for (const window of this.windows) window.paint(step);
    const marks = state.changes.map((c) => c.at);
    this.curves.paint({ last, step: at, marks }, this.player.theme, history, !playing);
    this.player.progress();
    const shown = { step, last, trained, seq: ++this.painted };
    for (const [name, value] of Object.entries(shown)) this.work.dataset[name] = String(value);
  }

  close() {
    for (const { figure } of this.windows) figure.close();
  }
}

// Return the recording of the state that the page opens with, null if there is none.
const fetchRecording = async ({ recorded, files }: ToysData) =>
  recorded
    ? fetch(`${files}losses/toy_training/recorded.bin`)
        .then((r) => (r.ok ? r.arrayBuffer() : null))
        .catch(() => null)
    : null;

export const { render, unmount } = definePlayer<ToysKinds>(
  {
    api: "api/toys",
    styles: "losses/toy_training/toy_training.css",
    ahead: 10,
    speeds: SPEEDS,
    early: fetchRecording,
    empty: () => new History(),
  },
  (player) => new Toys(player),
);
