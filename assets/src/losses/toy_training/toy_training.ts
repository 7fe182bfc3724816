// Toy training page: one or two training runs that Python computes, on one clock, as moving points.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Settings, Side, ImageSheet, Told, Toy, ToysAnswer, ToysData } from "./types.ts";
import type { Speed } from "../../kit/timeline/types.ts";
import { StepCharts } from "../../kit/chart/steps.tsx";
import { defineComponent } from "../../kit/component.ts";
import { show as number } from "../../kit/dom.ts";
import { Player } from "../../kit/timeline/player.ts";
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

export class Toys extends Player<Toy, ToysData, ToysAnswer, History, Settings> {
  work: HTMLElement;
  eyes = { input: new Eye(), embedding: new Eye() };
  windows: CloudWindow[] = []; // inputs, then the embeddings of each side
  curves: StepCharts<History>;
  scores = new Scores(this);
  painted = 0;
  highlighted: Set<number> = new Set(); // classes
  ring: number | null = null; // point under the pointer
  sheet: ImageSheet | null = null;
  spare: Side | undefined; // second side, while only one is shown
  run = signal<(Told & { steps: number }) | null>(null); // each side as a run of its own
  preparation = ""; // work of Python before the first step

  constructor(root: ParentNode, data: ToysData) {
    super(root, data, {
      api: "api/toys",
      styles: "losses/toy_training/toy_training.css",
      ahead: 10,
      speeds: SPEEDS,
    });
    Object.assign(this.keys, {
      ",": () => this.step(-1),
      ".": () => this.step(1),
      PageUp: () => this.step(-1, true),
      PageDown: () => this.step(1, true),
    });
  }

  empty() {
    return new History();
  }

  async build(data: ToysData) {
    const tape = data.recorded
      ? fetch(`${data.files}losses/toy_training/recorded.bin`)
          .then((r) => (r.ok ? r.arrayBuffer() : null))
          .catch(() => null)
      : null;
    await this.createElements();
    const bytes = await tape;
    if (bytes) {
      this.history.add(decode(bytes) as ToysAnswer);
      this.recordedTo = this.history.last;
      this.show();
    }
    this.start(data);
  }

  // ---- elements
  setWork = (work: HTMLElement | null) => {
    if (work) this.work = work;
  };

  onSchema() {
    const { schema, options } = this;
    this.schema = { ...schema, losses: { ...schema.losses, ...options.batch_losses } };
    this.makeWindows();
  }

  page() {
    return h(Page, { app: this });
  }

  panel() {
    super.panel();
    this.resize(); // of new windows
  }

  makeWindows() {
    const { sides } = this.state,
      { input, embedding } = this.eyes;
    for (const { figure } of this.windows) figure.close();
    this.windows = [
      new CloudWindow(this, input),
      ...sides.map((_, i) => new CloudWindow(this, embedding, i)),
    ];
    this.curves = new StepCharts(
      toyCurves(sides.length, this.options.recent),
      (step) => this.scrubTo(step),
      () => this.rest(),
    );
  }

  get images() {
    return this.state.data in this.options.images;
  }

  name(side: number) {
    const { sides } = this.settingsAt(this.at);
    return sideName(this.schema, this.options, sides[side], this.images);
  }

  // Highlight a class, or none.
  light(k: number | null) {
    if (k === null) this.highlighted.clear();
    else if (!this.highlighted.delete(k)) this.highlighted.add(k);
    this.show();
    this.invalidate();
  }

  onTheme() {
    for (const { figure } of this.windows) figure.setTheme(this.theme);
    this.show();
  }

  get epoch() {
    return this.history.perEpoch;
  }

  // ---- messages from Python
  onAnswer({ preparing = "", labels }: ToysAnswer) {
    this.preparation = preparing;
    if (labels) this.loadImages(); // may arrive twice if it was requested before the first answer
    if (labels || preparing) this.show();
  }

  // Decode the images; they are drawn once the browser has finished.
  async loadImages() {
    const { data } = this.history;
    this.sheet = null;
    if (!data?.sheet) return;
    const sheet = await sheetOf(data);
    if (this.history.data !== data) return;
    this.sheet = sheet;
    this.resize();
  }

  onLink({ toml = [], command = [], links = [], show = 0 }: ToysAnswer) {
    this.run.value = { toml, command, links, steps: Math.max(show, 1) };
    const hidden = this.hidden.has("table") || this.link.fallback;
    if (!this.playing && !this.goal && !hidden) this.scores.load(this.address);
  }

  // ---- changes
  get settings() {
    return ["sides", "rate"];
  }

  onStateReplaced() {
    this.ring = null;
    this.sheet = null;
    this.highlighted.clear();
    if (this.windows.length !== this.state.sides.length + 1) this.makeWindows();
  }

  // ---- step in words
  describeStep() {
    const told = this.state.sides.map((_, i) => {
      const r = this.history.row(i, this.at);
      return `${LETTERS[i]}: loss ${number(r.loss)}, MAP@R ${number(r.map_at_r)}`;
    });
    return `step ${this.at}. ${told.join("; ")}`;
  }

  defaultNotice() {
    return this.recordedTo > 0 && this.at <= this.recordedTo
      ? `This is a recording. The training continues live from step ${this.recordedTo}, or as soon as you change a setting.`
      : "";
  }

  moment() {
    return `step ${this.at}, epoch ${(this.at / this.epoch).toFixed(1)}`;
  }

  // ---- drawing
  resize() {
    for (const { figure } of this.windows) figure.resize();
    const strips = this.windows.flatMap(({ strip }) => strip ?? []);
    fit([...strips, ...this.curves.canvases]);
    this.invalidate();
  }

  paint() {
    const { history, theme, state } = this,
      step = history.nearest(this.at);
    if (step < 0 || !history.data) return;
    for (const window of this.windows) window.paint(step);
    const marks = state.changes.map((c) => c.at);
    this.curves.paint({ last: history.last, step: this.at, marks }, theme, history, !this.playing);
    this.progress();
    const { trained } = this,
      seq = ++this.painted,
      shown = { step, last: history.last, trained, seq };
    for (const [name, value] of Object.entries(shown)) this.work.dataset[name] = String(value);
  }

  close() {
    super.close();
    for (const { figure } of this.windows) figure.close();
  }
}

export const { render, unmount } = defineComponent(Toys);
