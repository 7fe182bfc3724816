// Toy training page: one or two training runs that Python computes, on one clock, as moving points.
import type {
  Known,
  Offers,
  ImageSheet,
  Published,
  Row,
  Scene,
  Settings,
  Shown,
  Side,
  Table,
  Told,
  Toy,
  ToysAnswer,
  ToysData,
} from "./types.ts";
import type { Speed } from "../../kit/timeline/types.ts";
import type { Hyper } from "../../kit/types.ts";
import { StepCharts } from "../../kit/chart/steps.tsx";
import { defineComponent } from "../../kit/component.ts";
import {
  div,
  drawing,
  el,
  readouts,
  save,
  setText,
  show as number,
  still,
  symbol,
  tidy,
} from "../../kit/dom.ts";
import { formula } from "../../kit/formula/formula.ts";
import { control, lossPanel, menu } from "../../kit/controls.ts";
import {
  choice,
  liveOf,
  noticeOf,
  numberBox,
  presetsOf,
  section,
  seedField,
  transport,
} from "../../kit/timeline/parts.ts";
import { Player, clone } from "../../kit/timeline/player.ts";
import { presentButton } from "../../kit/present/present.ts";
import { fit } from "../../kit/screen.ts";
import { decode } from "../../kit/socket.ts";
import { paintCloud, windowOf } from "./cloud.ts";
import { toyCurves } from "./curves.ts";
import { History } from "./history.ts";
import { Eye } from "./pointer.ts";
import { colourOf, shapeOf } from "./palette.ts";
import { linkQueries, paintQueries, rightOf, rowsOf, sheetOf } from "./queries.ts";
import { scoreTable } from "./table.ts";

const SPEEDS: Speed[] = [
  ["slow motion, batch by batch", 1, 4],
  ["batch by batch", 1, 30],
  ["4 batches per frame", 4, 20],
  ["16 batches per frame", 16, 20],
  ["epoch by epoch", 0, 8],
  ["every batch, full speed", 1, 1000],
];
const LETTERS = ["A", "B"];

class Toys extends Player<Toy, ToysData, ToysAnswer, History, Settings> {
  grid = div("views");
  chips = el("div", {
    class: "chips",
    role: "group",
    "aria-label": "classes: select some to show only these",
  });
  plots = el("div", {});
  scores = el("div", {});
  work: HTMLDivElement;
  shown: Shown[];
  curves: StepCharts<History>;
  runList: HTMLDivElement;

  painted = 0;
  highlighted: Set<number> = new Set(); // highlighted classes
  ring: number | null = null; // point under the pointer
  eyes = { input: new Eye([-60, 22]), embedding: new Eye([-60, 22]) };
  sheet: ImageSheet | null = null;
  spare: Side | undefined; // second side, if there is one
  run: (Told & { steps: number }) | undefined;
  scored: string | null = null;

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
      this.legend();
      this.titles();
    }
    this.start(data);
  }

  // ---- elements
  dom() {
    const { options, schema } = this;
    this.schema = { ...schema, losses: { ...schema.losses, ...options.batch_losses } };
    const label =
      "time: space plays and pauses, comma and full stop step by batch, page up and down by epoch, home resets";
    this.work = div(
      "work",
      this.grid,
      transport(this, "batch", { label, epochs: true }),
      noticeOf(this),
      this.plots,
      this.hidden.has("table") ? "" : this.scores,
      liveOf(this),
    );
    this.work.addEventListener("keydown", (e) => this.key(e));
    this.views();
    return div(
      "lab",
      ...(this.hidden.has("presets") ? [] : presetsOf(this)),
      div("stage", this.work, this.side),
    );
  }

  // Return the windows: inputs, and the embedding of each side.
  views() {
    const make = (name: "input" | "embedding", eye: Eye) => {
      const canvas = el("canvas", { role: "img" }),
        tip = el("span", { class: "tip" });
      const frame = el("div", { class: "frame", tabindex: 0, role: "group" }, canvas, tip),
        title = el("h4", {}),
        box = div("readout");
      const strip =
        name === "embedding" && this.images ? el("canvas", { class: "strip", role: "img" }) : null;
      const view: Shown = {
        name,
        eye,
        canvas,
        frame,
        tip,
        title,
        box,
        strip,
        side: 0,
        whole: el("div", { class: `view ${name}` }, title, frame, box, strip ?? ""),
      };
      eye.attach(view, {
        onTurn: () => this.invalidate(),
        onHover: (i: number, x: number, y: number) => this.hover(view, i, x, y),
        onPick: (i: number) => this.light(this.history.data?.labels[i] ?? null),
      });
      return view;
    };
    this.shown = [
      make("input", this.eyes.input),
      ...this.state.sides.map((_, i) =>
        Object.assign(make("embedding", this.eyes.embedding), { side: i }),
      ),
    ];
    Object.assign(this.grid.dataset, { count: this.shown.length, images: this.images });
    this.shown[0].whole.append(this.chips);
    this.grid.replaceChildren(...this.shown.map((v) => v.whole));
    this.curves = new StepCharts(
      toyCurves(this.state.sides.length, this.options.recent),
      (step) => this.scrubTo(step),
      () => this.rest(),
    );
    this.plots.replaceChildren(this.curves.whole);
    this.shown.slice(1).forEach((view, i) => view.whole.append(this.curves.canvases[i]));
  }

  get images() {
    return this.state.data in this.options.images;
  }

  name(side: number, { sides } = this.settingsAt(this.at)) {
    const { loss, hyper, moves, pooling, mu, epsilon } = sides[side],
      { poolings, gated } = this.options;
    const pooled = this.images
      ? `; ${poolings[pooling].title}${gated.includes(pooling) ? `, μ = ${tidy(mu)}, ε = ${tidy(epsilon)}` : ""}`
      : "";
    return `${this.describeLoss(loss, hyper)}${moves === "both" ? "" : `, ${moves} only`}${pooled}`;
  }

  // Return a loss with its parameters, as the sliders write them.
  describeLoss(loss: string, hyper: Hyper) {
    const about = this.schema.losses[loss];
    const given = about.controls
      .filter((c) => hyper[c.name] !== null && hyper[c.name] !== undefined)
      .map((c) => {
        const value = hyper[c.name];
        return `${written(c.symbol)} = ${typeof value === "number" ? tidy(value).replace("-", "−") : value}`;
      });
    return [about.title, ...given].join(", ");
  }

  titles() {
    const { data } = this.history,
      [input, ...rest] = this.shown;
    input.title.replaceChildren("Inputs", el("small", {}, data ? data.note : ""));
    rest.forEach((view, i) =>
      view.title.replaceChildren(
        el("b", { class: `side${LETTERS[i]}` }, LETTERS[i]),
        el("small", {}, this.name(i)),
      ),
    );
  }

  legend() {
    const { data } = this.history;
    if (!data) return;
    this.chips.classList.toggle("many", data.classes.length > 20);
    this.chips.replaceChildren(
      ...data.classes.map((name, k) =>
        el(
          "button",
          {
            "data-class": k,
            "aria-pressed": String(this.highlighted.has(k)),
            onclick: () => this.light(k),
          },
          el("i", { class: shapeOf(k), style: `background:${colourOf(k, this.theme)}` }),
          name,
        ),
      ),
      ...(this.highlighted.size ? [el("button", { onclick: () => this.light(null) }, "all")] : []),
    );
  }

  light(k: number | null) {
    if (k === null) this.highlighted.clear();
    else if (!this.highlighted.delete(k)) this.highlighted.add(k);
    this.legend();
    this.invalidate();
  }

  hover(view: Shown, index: number | null, x: number, y: number) {
    this.ring = index;
    for (const v of this.shown) v.tip.textContent = "";
    const { data } = this.history;
    if (index !== null && data) {
      view.tip.textContent = `${data.classes[data.labels[index]]}, sample ${data.indices[index]}`;
      view.tip.style.left = `${Math.min(x + 10, this.size(view) - 120)}px`;
      view.tip.style.top = `${y < 40 ? y + 14 : y - 26}px`;
    }
    this.invalidate();
  }

  controls() {
    const { options, state: toy, hidden, now } = this,
      { limits } = options,
      two = toy.sides.length === 2;
    this.titles();
    const losses = now.sides.flatMap((side, i) => {
      const letter = LETTERS[i];
      const [chosen, sliders] = lossPanel(this.schema, side, {
        hidden,
        onInput: () => {},
        onRest: () => this.commitSoon(),
        label: `loss ${letter}`,
        called: (name) => `${letter}: ${name}`,
        onLoss: () => {
          if (!options.sided.includes(side.loss)) side.moves = "both";
          this.commit();
        },
      });
      chosen
        .querySelector("h4")
        ?.replaceChildren(el("b", { class: `side${letter}` }, letter), " minimises");
      chosen.append(
        el(
          "details",
          {},
          el("summary", {}, "formula"),
          formula(this.schema.losses[side.loss].latex),
          el(
            "p",
            { class: "caption" },
            this.schema.losses[side.loss].sentence,
            " ",
            el("small", {}, this.schema.losses[side.loss].source),
          ),
        ),
      );
      const moves = el(
        "div",
        { class: "pills", role: "group", "aria-label": `forces of ${letter}` },
        ...Object.entries(options.moves).map(([v, o]) =>
          el(
            "button",
            {
              "aria-pressed": String(v === side.moves),
              title: o.help,
              disabled: !options.sided.includes(side.loss) && v !== "both",
              onclick: () => {
                side.moves = v;
                this.commit();
              },
            },
            v,
          ),
        ),
      );
      return hidden.has("loss")
        ? []
        : [
            el(
              "div",
              { class: `group side${letter}` },
              chosen,
              sliders,
              moves,
              ...(this.images ? this.poolingControls(i, side) : []),
            ),
          ];
    });
    const choose = (
      key: "optimiser" | "dim" | "data" | "split",
      label: string,
      values: Offers,
      act: (value: string) => void = (v) => this.restart({ [key]: v }),
    ) => choice(label, values, toy[key], act);
    const count = (key: "classes" | "samples" | "hidden", label: string) =>
      numberBox(this, key, label, limits[key]);
    const rate = control(
      {
        name: "learning rate",
        symbol: "lr",
        help: "learning rate of both losses",
        low: 0.0001,
        high: 0.1,
        log: true,
        default: 0.005,
      },
      now.rate,
      {
        onInput: (x: number) => {
          now.rate = Math.min(Math.max(x, limits.rate[0]), limits.rate[1]);
        },
        onRest: () => this.commitSoon(),
      },
    );
    setText(rate.querySelector(".symbol"), "η");
    const named = div("named", el("span", {}, "learning rate"), rate);
    const pair = el("input", { type: "checkbox", checked: two });
    pair.addEventListener("change", () => {
      if (!pair.checked) this.spare = clone(now.sides[1]);
      const [first] = now.sides;
      this.restart({ sides: pair.checked ? [first, this.spare ?? options.second] : [first] });
    });
    const unit = el("input", { type: "checkbox", checked: toy.normalize });
    unit.addEventListener("change", () => this.restart({ normalize: unit.checked }));
    const dims: Offers = {
      2: { title: "2: plane" },
      3: { title: "3: space" },
      ...(this.images ? { 64: { title: "64: two principal components" } } : {}),
    };
    this.runList = div("runs");
    this.runs();
    return [
      ...losses,
      ...section(
        this,
        "pair",
        "",
        el(
          "label",
          { class: "tickbox", title: "Both start from the same weights and use the same batches" },
          pair,
          "two losses side by side",
        ),
      ),
      ...section(
        this,
        "training",
        "Training",
        named,
        div(
          "fields",
          choose("optimiser", "optimiser", options.optimiser),
          el(
            "label",
            { title: "Classes per batch and samples per class" },
            "batch",
            el(
              "span",
              { class: "batch" },
              count("classes", "classes per batch"),
              " × ",
              count("samples", "samples per class"),
            ),
          ),
        ),
      ),
      ...section(
        this,
        "network",
        `Network: ${this.images ? options.images[toy.data] : "linear, leaky ReLU, linear"}`,
        div(
          "fields",
          this.images
            ? ""
            : el("label", {}, "hidden", count("hidden", "width of the hidden layer")),
          choose("dim", "output", dims, (v) => this.restart({ dim: Number(v) })),
        ),
        el(
          "label",
          { class: "tickbox" },
          unit,
          toy.dim === 2 ? "normalised, on the circle" : "normalised, on the sphere",
        ),
      ),
      ...section(
        this,
        "data",
        "Data",
        div(
          "fields",
          choose("data", "data set", options.data, (v) => this.other(v)),
          choose("split", "shown", options.split, (v) => this.look(v)),
          seedField(this),
        ),
        el("p", { class: "caption" }, options.data[toy.data].help ?? ""),
      ),
      ...section(
        this,
        "take",
        "Export",
        el(
          "div",
          { class: "pills" },
          ...presentButton(this),
          el("button", { onclick: () => this.figure() }, "Figure, PNG"),
        ),
        this.runList,
      ),
    ];
  }

  // Return the controls of a side's pooling, which restarts training, and of its gate, which acts
  // from the step shown.
  poolingControls(i: number, side: Side) {
    const { options } = this,
      letter = LETTERS[i];
    const box = menu(`pooling ${letter}`, options.poolings, side.pooling, (pooling) =>
      this.restart({
        sides: this.now.sides.map((s, k) => (k === i ? { ...s, pooling } : s)),
      }),
    );
    const sliders = options.gated.includes(side.pooling)
      ? options.gate.map((c) =>
          control({ ...c, name: `${letter}: ${c.name}` }, side[c.name], {
            onInput: (x: number) => {
              side[c.name] = Math.min(Math.max(x, c.low), c.high);
            },
            onRest: () => this.commitSoon(),
          }),
        )
      : [];
    return [el("label", { class: "pooled" }, "pools by", box), ...sliders];
  }

  // Return each side as a run of its own.
  runs() {
    const { run: told } = this;
    if (!this.runList || !told) return;
    const changed = this.state.changes.length > 0;
    this.runList.replaceChildren(
      ...told.toml.map((text, i) =>
        el(
          "details",
          {},
          el(
            "summary",
            {},
            `Train ${LETTERS[i]} as a run (${told.steps} ${told.steps === 1 ? "step" : "steps"})`,
          ),
          changed
            ? el(
                "p",
                { class: "caption" },
                "The run uses the current settings from step 0, because a run cannot change its settings.",
              )
            : "",
          el("pre", { tabindex: 0, "data-run": LETTERS[i] }, told.command[i]),
          div(
            "pills",
            el(
              "button",
              {
                onclick: () =>
                  save(
                    `toy-${LETTERS[i].toLowerCase()}.toml`,
                    new Blob([text], { type: "application/toml" }),
                  ),
              },
              "Spec, TOML",
            ),
            el(
              "a",
              {
                class: "button",
                href: new URL(`settings?${told.links[i]}`, new URL(this.data.base, location.href))
                  .href,
              },
              "Open on the Train page",
            ),
          ),
        ),
      ),
    );
  }

  onTheme() {
    this.legend();
  }

  get epoch() {
    return this.history.perEpoch;
  }

  // ---- messages from Python
  onAnswer(answer: ToysAnswer) {
    if (answer.preparing) {
      // Show the notice in the window title: on many screens the notice line is below the empty
      // windows.
      this.shown[0].title.replaceChildren("Inputs", el("small", {}, answer.preparing));
      this.chips.replaceChildren();
    } else if (answer.labels) {
      // This may arrive twice if it was requested twice before the first answer.
      this.legend();
      this.titles();
      this.unroll();
    }
  }

  // Decode the images; they are drawn once the browser has finished.
  async unroll() {
    const { data } = this.history;
    this.sheet = null;
    if (!data?.sheet) return;
    const sheet = await sheetOf(data);
    if (this.history.data === data) {
      this.sheet = sheet;
      this.resize();
    }
  }

  // ---- changes
  get settings() {
    return ["sides", "rate"];
  }

  // Switch the data between images and vectors, with the settings of the first preset that uses
  // them.
  other(data: string) {
    const known = this.options.presets.find((p) => p.state.data === data);
    if (known && (this.images || data in this.options.images)) {
      const { playing, state } = this;
      this.press();
      this.load({ ...known.state, seed: state.seed });
      if (playing) this.play();
    } else this.restart({ data });
  }

  // Show another split of the same steps.
  look(split: string) {
    const { playing } = this;
    this.press();
    this.load({ ...clone(this.state), split }, this.at);
    if (playing) this.play();
  }

  onStateReplaced() {
    this.ring = null;
    this.sheet = null;
    this.highlighted.clear();
    const { count, images } = this.grid.dataset;
    if (count === String(this.state.sides.length + 1) && images === String(this.images)) return;
    this.views();
    this.resize();
  }

  // ---- link
  describeStep() {
    const told = this.state.sides.map((_, i) => {
      const r = this.history.row(i, this.at);
      return `${LETTERS[i]}: loss ${number(r.loss)}, MAP@R ${number(r.map_at_r)}`;
    });
    return `step ${this.at}. ${told.join("; ")}`;
  }

  onLink({ toml = [], command = [], links = [], show = 0 }: ToysAnswer) {
    this.run = { toml, command, links, steps: Math.max(show, 1) };
    this.runs();
    if (!this.playing && !this.goal) this.score(this.address);
  }

  async score(key: string) {
    if (this.scored === key || this.hidden.has("table") || this.link.fallback) return;
    this.scored = key;
    const found: Table | null = await fetch(
      new URL(`api/toys/table?${key}`, new URL(this.data.base, location.href)),
    )
      .then((r) => (r.ok ? r.json() : null))
      .catch(() => null);
    if (!found || this.closed || this.scored !== key) {
      if (!found) this.scored = null;
      return;
    }
    const use = (side: number, { loss, hyper }: Published) => {
      const known = Object.fromEntries(
        this.schema.losses[loss].controls.map((c) => [c.name, c.default ?? null]),
      );
      const sides = clone(this.now.sides);
      sides[side] = { ...sides[side], loss, hyper: { ...known, ...hyper } };
      this.restart({ sides });
      if (!still()) this.play();
    };
    const about = found.published.length
      ? `Training scores of Karaman 2021, Table 4.1, and ours. ${this.options.not_stated}`
      : "";
    this.scores.replaceChildren(
      el("h4", {}, "Scores over all samples"),
      scoreTable(
        found,
        this.state.sides.map((_, i) => this.name(i)),
        (p) => (p.loss ? this.describeLoss(p.loss, p.hyper) : p.label),
        use,
      ),
      el("p", { class: "caption" }, about),
    );
    this.scores.dataset.step = String(found.step);
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
  size(view: Shown) {
    return view.frame.clientWidth;
  }

  resize() {
    fit([
      ...this.shown.flatMap((v) => [v.canvas, ...(v.strip ? [v.strip] : [])]),
      ...this.curves.canvases,
    ]);
    this.invalidate();
  }

  // Return the points of a window at a step.
  scene(view: Shown, step: number) {
    const data = this.history.data as Known,
      { state: toy } = this,
      more = {
        labels: data.labels,
        highlighted: this.highlighted,
        ring: this.ring,
        eye: view.eye.angles,
        zoom: view.eye.zoom,
      };
    const scene =
      view.name === "input"
        ? { points: data.inputs, dim: 3, axes: data.axes, outline: false, ...more }
        : {
            points: this.history.frame(view.side, step),
            dim: data.dim,
            outline: toy.normalize && data.dim === toy.dim,
            ...more,
          };
    const { points } = scene;
    if (!points) return null;
    const window = windowOf(points, scene.dim, scene.outline, view.half);
    view.half = window.half;
    return { ...scene, points, window };
  }

  paint() {
    const { history, theme, state: toy } = this,
      { data } = history,
      step = history.nearest(this.at);
    if (step < 0 || !data) return;
    for (const view of this.shown) {
      const scene = (view.scene = this.scene(view, step));
      if (!scene || this.unchanged(view, scene)) continue;
      paintCloud(drawing(view.canvas), this.size(view), scene, theme);
      const rows = view.name === "embedding" && this.sheet ? rowsOf(history, view.side, step) : [];
      if (rows.length) linkQueries(drawing(view.canvas), this.size(view), scene, rows);
      const { canvas } = view,
        r = view.name === "embedding" ? history.row(view.side, step) : null;
      if (r) {
        readouts(
          view.box,
          [
            ["loss", r.loss],
            ["active", r.active],
            this.images ? ["R@1", r.recall] : ["cost > 0", r.nonzero],
            ["MAP@R", r.map_at_r],
          ].map(([name, v]) => [String(name), Number.isFinite(v) ? number(Number(v)) : "–"]),
        );
        if (!this.playing)
          canvas.setAttribute(
            "aria-label",
            `embedding ${LETTERS[view.side]}, ${scene.dim}-D, ${this.name(view.side)}: ${data_count(data)} after step ${step}; loss ${number(r.loss)}, active share ${number(r.active)}, MAP@R of the points shown ${number(r.map_at_r)} at step ${r.scored}`,
          );
        canvas.dataset.step = String(step);
        this.strip(view, step, rows);
      } else if (!this.playing)
        canvas.setAttribute(
          "aria-label",
          `inputs, ${data_count(data)}: ${data.note}; ${data.axes.join(", ")}; MAP@R ${number(data.baseline.map_at_r)}`,
        );
    }
    readouts(this.shown[0].box, [
      ["shown", data.labels.length.toLocaleString("en")],
      ["classes", String(data.classes.length)],
      ["R@1", number(data.baseline.recall)],
      ["MAP@R", number(data.baseline.map_at_r)],
    ]);
    this.curves.paint(
      { last: history.last, step: this.at, marks: toy.changes.map((c) => c.at) },
      theme,
      history,
      !this.playing,
    );
    this.progress();
    this.work.dataset.step = String(step);
    this.work.dataset.last = String(history.last);
    this.work.dataset.trained = String(this.trained);
    this.work.dataset.seq = String(++this.painted);
  }

  // Return true if the inputs are already painted; they stay still while the embeddings move.
  unchanged(view: Shown, { points, eye, zoom, ring, highlighted }: Scene) {
    if (view.name !== "input") return false;
    const before = view.seen ?? [],
      shown = [
        points,
        this.theme,
        view.canvas.width,
        this.playing,
        zoom,
        ring,
        ...eye,
        ...highlighted,
      ];
    view.seen = shown;
    return before.length === shown.length && shown.every((value, k) => value === before[k]);
  }

  // Draw the queries of a side and their nearest neighbours.
  strip(view: Shown, step: number, rows: Row[]) {
    const { strip, side } = view,
      { data } = this.history;
    if (!strip || !rows.length || !data || !this.sheet) return;
    paintQueries(drawing(strip), strip.clientWidth, rows, data.labels, this.sheet, this.theme);
    strip.dataset.step = String(step);
    if (!this.playing)
      strip.setAttribute(
        "aria-label",
        `neighbours ${LETTERS[side]}: ${rows.map((row) => `${data.classes[data.labels[row.query]]}, ${rightOf(row, data.labels)} of ${row.next.length} right`).join("; ")}`,
      );
  }

  figure() {
    const side = 700,
      views = this.shown,
      copy = Object.assign(document.createElement("canvas"), {
        width: 2 * side * views.length,
        height: 2 * (side + 30),
      }),
      ctx = drawing(copy),
      step = this.history.nearest(this.at);
    views.forEach((view, k) => {
      const part = Object.assign(document.createElement("canvas"), {
          width: 2 * side,
          height: 2 * side,
        }),
        to = drawing(part);
      to.setTransform(2, 0, 0, 2, 0, 0);
      const scene = this.scene(view, step);
      if (scene) paintCloud(to, side, { ...scene, ring: null }, this.theme);
      ctx.drawImage(part, 2 * side * k, 60);
      ctx.fillStyle = getComputedStyle(this.whole).color;
      ctx.font = "28px system-ui, sans-serif";
      ctx.fillText(
        view.name === "input"
          ? "inputs"
          : `${LETTERS[view.side]}: ${this.name(view.side)}, step ${step}`,
        2 * side * k + 20,
        40,
        2 * side - 40,
      );
    });
    copy.toBlob((blob) => save(`toys-${this.state.data}-${this.state.seed}-${step}.png`, blob));
  }
}

const written = (name: string) =>
  symbol(name)
    .map((part) => (typeof part === "string" ? part : part.textContent))
    .join("");
const data_count = (data: Known) =>
  `${data.labels.length} points of ${data.classes.length} classes`;

export const { render, unmount } = defineComponent(Toys);
