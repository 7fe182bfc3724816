// The toys page: plays trainings that Python makes, one or two on one clock, and keeps what it has
// seen for scrubbing.
/** @import { Known, Offers, ImageSheet, Published, Query, Row, Scene, Shown, Side, Table, Told, Toy, ToysAnswer, ToysData, ToysRequest } from "./types.js" */
/** @import { Child, Hyper, Lesson, Loss, Preset, Schema, SetState, Situation, Theme } from "../../shared/types.js" */
import { receiveFallback, loadStyles, defineComponent, newTheme } from "../../shared/component.js";
import {
  drawing,
  el,
  readouts,
  save,
  setText,
  show as number,
  symbol,
  tidy,
} from "../../shared/dom.js";
import { formula } from "../../shared/formula.js";
import { control, lossPanel } from "../../shared/controls.js";
import { fit, pace } from "../../shared/player.js";
import { Link, decode, socketAddress } from "../../shared/socket.js";
import { paintCloud, windowOf } from "./cloud.js";
import { Curves } from "./curves.js";
import { History } from "./history.js";
import { Eye } from "./pointer.js";
import { colourOf, shapeOf } from "./palette.js";
import { linkQueries, paintQueries, rightOf, rowsOf, sheetOf } from "./queries.js";
import { scoreTable } from "./table.js";

// Batches from one shown frame to the next, and frames a second at most.
/** @type {[text: string, batches: number, frames: number][]} */
const SPEEDS = [
  ["slow motion, batch by batch", 1, 4],
  ["batch by batch", 1, 30],
  ["4 batches a frame", 4, 20],
  ["16 batches a frame", 16, 20],
  ["epoch by epoch", 0, 8],
  ["every batch, as fast as it goes", 1, 1000],
];
const AHEAD = 10; // frames trained before they are looked at
const LETTERS = ["A", "B"];
/**
 * @template T
 * @param {T} x
 * @returns {T}
 */
const clone = (x) => structuredClone(x);
const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) =>
  JSON.stringify(a) === JSON.stringify(b);
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

class Toys {
  /** @type {Schema} */
  schema;
  /** @type {HTMLDivElement} */
  whole;
  /** @type {ResizeObserver} */
  observer;
  /** @type {() => void} */
  leave;
  /** @type {HTMLButtonElement} */
  playButton;
  /** @type {HTMLInputElement} */
  scrub;
  /** @type {HTMLOutputElement} */
  clock;
  /** @type {HTMLParagraphElement} */
  notice;
  /** @type {HTMLDivElement} */
  live;
  /** @type {HTMLDivElement} */
  grid;
  /** @type {HTMLDivElement} */
  chips;
  /** @type {HTMLDivElement} */
  plots;
  /** @type {HTMLDivElement} */
  scores;
  /** @type {HTMLDivElement} */
  presets;
  /** @type {HTMLParagraphElement} */
  presetText;
  /** @type {HTMLDivElement} */
  side;
  /** @type {HTMLDivElement} */
  work;
  /** @type {HTMLDivElement} */
  stage;
  /** @type {Shown[]} */
  shown;
  /** @type {Curves} */
  curves;
  /** @type {{ sides: Side[]; rate: number; }} */
  now;
  /** @type {string} */
  seen;
  /** @type {HTMLDivElement} */
  take;
  /** @type {number} */
  telling;
  /** @type {string} */
  written;
  /** @type {Theme} */
  theme;
  /** @type {SetState} */
  setState;

  history = new History();
  at = 0; // the step shown
  seq = 0;
  answered = 0;
  revision = 0; // of the future: each change begins another
  /** @type {Map<number, number>} */
  revisions = new Map(); // by request
  playing = false;
  speed = 2;
  painted = 0;
  /** @type {number[]} */
  frameTimes = [];
  due = 0;
  began = 0;
  /** @type {Set<number>} */
  highlighted = new Set(); // classes that stand out
  /** @type {number | null} */
  ring = null; // the point under the pointer
  recordedTo = -1;
  trained = -1;
  eyes = { input: new Eye([-60, 22]), embedding: new Eye([-60, 22]) };
  /** @type {number | undefined} */
  wanted; // the step that is shown once it is here
  /** @type {ImageSheet | null} */
  sheet = null;
  /** @type {Side | undefined} */
  spare; // the second side, while there is one
  /** @type {(Told & { steps: number }) | undefined} */
  told;
  /** @type {number | null} */
  pending = null;
  /** @type {number | null} */
  preparing = null;
  /** @type {number | null} */
  frameRequest = null;
  /** @type {string | null} */
  scored = null;
  needsLink = false;
  late = false;
  closed = false;
  said = "";

  /**
   * @param {ParentNode} root
   * @param {ToysData} data
   */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.toy = clone(data.toy);
    this.query = JSON.stringify(data.query);
    this.hidden = new Set(data.hide);
    this.options = data.options;
    this.goal = data.step;
    /** @type {Link<ToysRequest>} */
    this.link = new Link(
      socketAddress(data, "api/toys"),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data);
  }

  /** @param {ToysData} data */
  async build(data) {
    const tape = data.recorded
      ? fetch(`${data.files}losses/toys/recorded.bin`)
          .then((r) => (r.ok ? r.arrayBuffer() : null))
          .catch(() => null)
      : null;
    const schema = await loadStyles(this.root, import.meta.url);
    this.schema = { ...schema, losses: { ...schema.losses, ...data.options.batch_losses } };
    this.root.append((this.whole = this.dom()));
    newTheme(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.work);
    this.leave = () => {
      if (document.hidden) this.pause();
    };
    document.addEventListener("visibilitychange", this.leave);
    this.panel();
    this.views();
    const bytes = await tape;
    if (bytes) {
      this.history.add(/** @type {ToysAnswer} */ (decode(bytes)));
      this.recordedTo = this.history.last;
      this.legend();
      this.titles();
    }
    this.resize();
    this.ask({ rest: true });
    if (data.idle && !still()) this.play();
  }

  // ---- the page
  dom() {
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {() => unknown} */ act,
      extra = {},
    ) => el("button", { "aria-label": name, title: name, onclick: act, ...extra }, text);
    this.playButton = button("Play", "play", () => (this.playing ? this.pause() : this.play()), {
      class: "play",
    });
    this.scrub = el("input", {
      type: "range",
      min: 0,
      max: 0,
      value: 0,
      step: 1,
      "aria-label": "step",
    });
    this.scrub.addEventListener("input", () => {
      this.pause();
      this.to(Number(this.scrub.value));
    });
    this.scrub.addEventListener("change", () => this.rest());
    const speed = el(
      "select",
      { "aria-label": "speed" },
      ...SPEEDS.map(([t], i) => el("option", { value: i, selected: i === this.speed }, t)),
    );
    speed.addEventListener("change", () => {
      this.speed = Number(speed.value);
      this.frameTimes = [];
    });
    this.clock = el("output");
    this.notice = el("p", { class: "caption notice" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.grid = el("div", { class: "views" });
    this.chips = el("div", {
      class: "chips",
      role: "group",
      "aria-label": "classes: press to see some alone",
    });
    this.plots = el("div", {});
    this.scores = el("div", {});
    this.presets = el(
      "div",
      { class: "top" },
      el("small", {}, "Try"),
      ...this.options.presets.map((p, i) =>
        el(
          "button",
          { "data-preset": i, "aria-pressed": "false", onclick: () => this.preset(i) },
          p.title,
        ),
      ),
    );
    this.presetText = el("p", { class: "caption" });
    this.side = el("div", { class: "panel" });
    const transport = el(
      "div",
      {
        class: "transport",
        role: "group",
        "aria-label":
          "time: space plays and pauses, comma and full stop step by batch, page up and down by epoch, home resets",
      },
      button("⟲", "reset", () => this.reset()),
      button("«", "one epoch back", () => this.step(-1, true)),
      button("‹", "one batch back", () => this.step(-1)),
      this.playButton,
      button("›", "one batch on", () => this.step(1)),
      button("»", "one epoch on", () => this.step(1, true)),
      this.scrub,
      this.clock,
      speed,
    );
    this.work = el(
      "div",
      { class: "work" },
      this.grid,
      transport,
      this.notice,
      this.plots,
      this.hidden.has("table") ? "" : this.scores,
      this.live,
    );
    this.work.addEventListener("keydown", (e) => this.key(e));
    this.stage = el("div", { class: "stage" }, this.work, this.side);
    return el(
      "div",
      { class: "lab" },
      ...(this.hidden.has("presets") ? [] : [this.presets, this.presetText]),
      this.stage,
    );
  }

  // The windows: inputs, and the embedding of each side.
  views() {
    const make = (/** @type {"input" | "embedding"} */ name, /** @type {Eye} */ eye) => {
      const canvas = el("canvas", { role: "img" }),
        tip = el("span", { class: "tip" });
      const frame = el("div", { class: "frame", tabindex: 0, role: "group" }, canvas, tip),
        title = el("h4", {}),
        box = el("div", { class: "readout" });
      const strip =
        name === "embedding" && this.images ? el("canvas", { class: "strip", role: "img" }) : null;
      /** @type {Shown} */
      const view = {
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
        onHover: (/** @type {number} */ i, /** @type {number} */ x, /** @type {number} */ y) =>
          this.hover(view, i, x, y),
        onPick: (/** @type {number} */ i) => this.light(this.history.data?.labels[i] ?? null),
      });
      return view;
    };
    this.shown = [
      make("input", this.eyes.input),
      ...this.toy.sides.map((_, i) =>
        Object.assign(make("embedding", this.eyes.embedding), { side: i }),
      ),
    ];
    Object.assign(this.grid.dataset, { count: this.shown.length, images: this.images });
    this.shown[0].whole.append(this.chips);
    this.grid.replaceChildren(...this.shown.map((v) => v.whole));
    this.curves = new Curves(
      this.toy.sides.length,
      this.options.recent,
      (step) => {
        this.pause();
        this.to(step);
      },
      () => this.rest(),
    );
    this.plots.replaceChildren(this.curves.whole);
    this.shown.slice(1).forEach((view, i) => view.whole.append(this.curves.losses[i]));
    this.titles();
  }

  get images() {
    return this.toy.data in this.options.images;
  }

  /** @param {number} side */
  name(side, { sides } = this.inForce(this.at)) {
    const { loss, hyper, moves, pooling, mu, epsilon } = sides[side],
      { poolings, gated } = this.options;
    const pooled = this.images
      ? `; ${poolings[pooling].title}${gated.includes(pooling) ? `, μ = ${tidy(mu)}, ε = ${tidy(epsilon)}` : ""}`
      : "";
    return `${this.called(loss, hyper)}${moves === "both" ? "" : `, ${moves} only`}${pooled}`;
  }

  // A loss with the parameters it is given, as the sliders write them.
  /**
   * @param {string} loss
   * @param {Hyper} hyper
   */
  called(loss, hyper) {
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

  /** @param {number | null} k */
  light(k) {
    if (k === null) this.highlighted.clear();
    else if (!this.highlighted.delete(k)) this.highlighted.add(k);
    this.legend();
    this.invalidate();
  }

  /**
   * @param {Shown} view
   * @param {number | null} index
   * @param {number} x
   * @param {number} y
   */
  hover(view, index, x, y) {
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

  panel() {
    const { options, toy, hidden } = this,
      limits = options.limits,
      now = (this.now = clone(this.inForce(this.at)));
    this.seen = JSON.stringify(now);
    const two = toy.sides.length === 2;
    const section = (
      /** @type {string} */ name,
      /** @type {string} */ title,
      /** @type {(Child)[]} */ ...parts
    ) => (hidden.has(name) ? [] : [el("section", {}, title ? el("h4", {}, title) : "", ...parts)]);
    const losses = now.sides.flatMap((side, i) => {
      const letter = LETTERS[i];
      const [choice, sliders] = lossPanel(this.schema, side, {
        hidden,
        onInput: () => {},
        onRest: () => this.soon(),
        label: `loss ${letter}`,
        called: (name) => `${letter}: ${name}`,
        onLoss: () => {
          if (!options.sided.includes(side.loss)) side.moves = "both";
          this.commit();
        },
      });
      choice
        .querySelector("h4")
        ?.replaceChildren(el("b", { class: `side${letter}` }, letter), " minimises");
      choice.append(
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
              choice,
              sliders,
              moves,
              ...(this.images ? this.pooled(i, side) : []),
            ),
          ];
    });
    const choose = (
      /** @type {"optimiser" | "dim" | "data" | "part"} */ key,
      /** @type {string} */ label,
      /** @type {Offers} */ values,
      /** @type {(value: string) => void} */ change,
    ) => {
      const box = el(
        "select",
        { "aria-label": label, title: values[toy[key]]?.help ?? "" },
        ...Object.entries(values).map(([v, o]) =>
          el(
            "option",
            { value: v, selected: v === String(toy[key]), title: o.help ?? "" },
            o.title,
          ),
        ),
      );
      box.addEventListener("change", () => change(box.value));
      return el("label", {}, label, box);
    };
    const count = (
      /** @type {"classes" | "samples" | "hidden" | "seed"} */ key,
      /** @type {string} */ label,
    ) => {
      const [low, high] = limits[key],
        box = el("input", {
          type: "number",
          "aria-label": label,
          min: low,
          max: high,
          step: 1,
          value: toy[key],
        });
      box.addEventListener("change", () => {
        const value = Math.round(Number(box.value));
        if (!Number.isFinite(value) || box.value === "") {
          box.value = String(this.toy[key]);
          return;
        }
        this.restart({ [key]: Math.min(Math.max(value, low), high) });
      });
      return box;
    };
    const rate = control(
      {
        name: "learning rate",
        symbol: "lr",
        help: "learning rate of both",
        low: 0.0001,
        high: 0.1,
        log: true,
        default: 0.005,
      },
      now.rate,
      {
        onInput: (/** @type {number} */ x) => {
          now.rate = Math.min(Math.max(x, limits.rate[0]), limits.rate[1]);
        },
        onRest: () => this.soon(),
      },
    );
    setText(rate.querySelector(".symbol"), "η");
    const named = el("div", { class: "named" }, el("span", {}, "learning rate"), rate);
    const pair = el("input", { type: "checkbox", checked: two });
    pair.addEventListener("change", () =>
      this.restart(
        {
          sides: pair.checked
            ? [now.sides[0], this.spare ?? clone(options.second)]
            : [now.sides[0]],
        },
        !pair.checked && now.sides[1],
      ),
    );
    const unit = el("input", { type: "checkbox", checked: toy.normalize });
    unit.addEventListener("change", () => this.restart({ normalize: unit.checked }));
    /** @type {Offers} */
    const dims = {
      2: { title: "2: plane" },
      3: { title: "3: space" },
      ...(this.images ? { 64: { title: "64: two principal components" } } : {}),
    };
    this.take = el("div", { class: "runs" });
    const focused = /** @type {ParentNode & Partial<ShadowRoot>} */ (
      this.root
    ).activeElement?.getAttribute("aria-label");
    this.side.replaceChildren(
      ...losses,
      ...section(
        "pair",
        "",
        el(
          "label",
          { class: "tickbox", title: "both from the same start, with the same batches" },
          pair,
          "two losses side by side",
        ),
      ),
      ...section(
        "training",
        "Training",
        named,
        el(
          "div",
          { class: "fields" },
          choose("optimiser", "optimiser", options.optimiser, (v) =>
            this.restart({ optimiser: v }),
          ),
          el(
            "label",
            { title: "classes in a batch, and samples of each" },
            "batch",
            el(
              "span",
              { class: "batch" },
              count("classes", "classes in a batch"),
              " × ",
              count("samples", "samples of each"),
            ),
          ),
        ),
      ),
      ...section(
        "network",
        `Network: ${this.images ? options.images[toy.data] : "linear, leaky ReLU, linear"}`,
        el(
          "div",
          { class: "fields" },
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
        "data",
        "Data",
        el(
          "div",
          { class: "fields" },
          choose("data", "data set", options.data, (v) => this.other(v)),
          choose("part", "shown", options.part, (v) => this.restart({ part: v })),
          el(
            "label",
            {},
            "seed",
            el(
              "span",
              { class: "seed" },
              count("seed", "seed"),
              el(
                "button",
                {
                  title: "another seed",
                  onclick: () => this.restart({ seed: (this.toy.seed + 1) % 2 ** 31 }),
                },
                "next",
              ),
            ),
          ),
        ),
        el("p", { class: "caption" }, options.data[toy.data].help ?? ""),
      ),
      ...section(
        "take",
        "Take away",
        el("div", { class: "take" }, el("button", { onclick: () => this.figure() }, "Figure, PNG")),
        this.take,
      ),
    );
    /** @type {HTMLElement[]} */ ([...this.side.querySelectorAll("[aria-label]")])
      .find((e) => e.getAttribute("aria-label") === focused)
      ?.focus();
    this.runs();
  }

  // The pooling of a side, from the start, and the sliders of its gate, from the step shown.
  /**
   * @param {number} i
   * @param {Side} side
   */
  pooled(i, side) {
    const { options } = this,
      letter = LETTERS[i];
    const box = el(
      "select",
      { "aria-label": `pooling ${letter}` },
      ...Object.entries(options.poolings).map(([v, o]) =>
        el("option", { value: v, selected: v === side.pooling }, o.title),
      ),
    );
    box.addEventListener("change", () =>
      this.restart({
        sides: this.now.sides.map((s, k) => (k === i ? { ...s, pooling: box.value } : s)),
      }),
    );
    const sliders = options.gated.includes(side.pooling)
      ? options.gate.map((c) =>
          control({ ...c, name: `${letter}: ${c.name}` }, side[c.name], {
            onInput: (/** @type {number} */ x) => {
              side[c.name] = Math.min(Math.max(x, c.low), c.high);
            },
            onRest: () => this.soon(),
          }),
        )
      : [];
    return [el("label", { class: "pooled" }, "pools by", box), ...sliders];
  }

  // Each side as a run of its own.
  runs() {
    const { told } = this;
    if (!this.take || !told) return;
    const changed = this.toy.changes.length > 0;
    this.take.replaceChildren(
      ...told.toml.map((text, i) =>
        el(
          "details",
          {},
          el(
            "summary",
            {},
            `${LETTERS[i]} as a run of ${told.steps} ${told.steps === 1 ? "step" : "steps"}`,
          ),
          changed
            ? el(
                "p",
                { class: "caption" },
                "With the settings in force at this step from the start: a run knows no changes on the way.",
              )
            : "",
          el("pre", { tabindex: 0, "data-run": LETTERS[i] }, told.command[i]),
          el(
            "div",
            { class: "take" },
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
                href: new URL(`train?${told.links[i]}`, new URL(this.data.base, location.href))
                  .href,
              },
              "Open on the Train page",
            ),
          ),
        ),
      ),
    );
  }

  // ---- from Streamlit
  /** @param {ToysData} data */
  async update(data) {
    await this.ready;
    if (newTheme(this)) {
      this.legend();
      this.invalidate();
    }
    const query = JSON.stringify(data.query);
    if (query !== this.query && query !== this.written) {
      this.query = query;
      this.goal = data.step;
      this.load(data.toy);
    }
    receiveFallback(this, data);
  }

  // ---- what is asked of Python
  /** @param {Partial<ToysRequest>} more */
  ask(more = {}) {
    const { toy, history } = this;
    const request = {
      id: ++this.seq,
      state: toy,
      have: history.data ? history.last : -1,
      want: Math.max(history.last, 0),
      stride: this.stride,
      show: this.at,
      ...more,
      rest: more.rest || this.needsLink,
    };
    this.needsLink = Boolean(request.rest);
    this.revisions.set(request.id, this.revision);
    this.link.send(request);
  }

  /** @param {ArrayBuffer} buffer */
  receive(buffer) {
    const answer = /** @type {ToysAnswer} */ (decode(buffer)),
      revision = this.revisions.get(answer.id);
    this.answered = Math.max(this.answered, answer.id);
    for (const id of this.revisions.keys()) if (id <= answer.id) this.revisions.delete(id);
    if (revision !== this.revision) return;
    if (answer.preparing) {
      this.message(answer.preparing);
      // Where the eye is: on many screens the notice lies below the empty windows.
      this.shown[0].title.replaceChildren("Inputs", el("small", {}, answer.preparing));
      this.chips.replaceChildren();
      if (!answer.failed)
        this.preparing = setTimeout(() => {
          if (!this.closed && revision === this.revision)
            this.ask({ rest: true, want: this.goal || 0, frames: this.goal ? [this.goal] : [] });
        }, 700);
      return;
    }
    if (this.preparing) {
      this.preparing = null;
      this.message("");
    }
    // It may come twice, where two were asked for before the first was here.
    const fresh = Boolean(answer.labels);
    this.trained = answer.ready;
    this.history.add(answer);
    if (fresh) {
      this.legend();
      this.titles();
      this.unroll();
    }
    if (answer.query) {
      this.needsLink = false;
      this.remember(/** @type {Parameters<Toys["remember"]>[0]} */ (answer));
    }
    if (this.goal) this.approach();
    else this.behind();
    if (this.wanted !== undefined && this.history.has(this.wanted)) {
      const step = this.wanted;
      this.wanted = undefined;
      this.arrive(step);
    }
    if (answer.stopped && this.playing && this.at >= this.history.last)
      this.pause(`${answer.stopped}. Lower the learning rate, or go back and change something.`);
    this.next();
    this.invalidate();
  }

  // The images, which are drawn once the browser has read them.
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

  // What was shown was a recording, or is no longer kept: the next step waits until Python has made
  // those before it.
  behind() {
    const late =
      this.recordedTo < 0 &&
      this.trained < this.history.last &&
      (this.playing || this.wanted !== undefined);
    if (late)
      this.message(
        `Training up to step ${this.history.last}, to go on from there: ${this.trained} …`,
      );
    else if (this.late) this.message("");
    this.late = late;
  }

  // A link into the middle of a history: fetch up to it.
  approach() {
    const { history } = this;
    if (history.last >= this.goal && history.has(this.goal)) {
      this.at = this.goal;
      this.goal = 0;
      this.message("");
      this.panel();
      this.titles();
      this.rest();
      return;
    }
    this.at = Math.min(this.goal, Math.max(history.last, 0));
    this.message(`Training up to step ${this.goal}: ${history.last} …`);
    this.ask({ want: this.goal, frames: [this.goal] });
  }

  // ---- time
  get stride() {
    return SPEEDS[this.speed][1] || this.history.perEpoch;
  }

  play() {
    if (this.playing) return;
    this.playing = true;
    this.frameTimes = [];
    this.due = performance.now();
    this.began = performance.now();
    this.playButton.textContent = "Pause";
    this.playButton.setAttribute("aria-label", "pause");
    this.tick();
  }

  /** @param {string} [why] */
  pause(why) {
    this.wanted = undefined;
    if (why !== undefined) this.message(why);
    if (!this.playing) return;
    this.playing = false;
    this.playButton.textContent = "Play";
    this.playButton.setAttribute("aria-label", "play");
    this.rest();
  }

  tick() {
    if (!this.playing || this.closed) return;
    const now = performance.now(),
      [, , rate] = SPEEDS[this.speed],
      { stride } = this;
    // What came in since is painted first, so that no step is passed over.
    if (!this.frameRequest && this.wanted === undefined && now >= this.due && !this.goal) {
      const to = (Math.floor(this.at / stride) + 1) * stride;
      if (to > this.options.limits.steps)
        return this.pause(
          `${this.at} steps: the history is full. Reset, or go back and change something.`,
        );
      this.due = Math.max(this.due + 1000 / rate, now - 100);
      if (this.history.has(to)) this.arrive(to);
      else this.wanted = to;
    }
    this.next();
    this.repaint();
    requestAnimationFrame(() => this.tick());
  }

  // Python trains on while the page looks at what is there.
  next() {
    if (this.link.busy || this.link.waiting || this.goal || this.closed || this.preparing) return;
    const { history, stride } = this,
      most = this.options.limits.steps;
    if (this.wanted !== undefined && this.wanted <= history.last)
      return this.ask({ want: this.wanted, frames: this.missing(this.wanted) });
    if (this.wanted !== undefined && !this.playing)
      return this.ask({ want: this.wanted, frames: [this.wanted] });
    if (!this.playing) return;
    if (this.recordedTo < 0 && this.trained < history.last)
      return this.ask({ want: history.last, frames: [] });
    const want = Math.min(
      Math.max(this.wanted ?? 0, (Math.floor(this.at / stride) + AHEAD) * stride),
      most,
    );
    if (history.last < want) return this.ask({ want, frames: [] });
    const missing = this.missing(this.at + 1);
    if (missing.length) return this.ask({ want: missing[missing.length - 1], frames: missing });
    // A recording plays: the engine catches up meanwhile, so that it goes on from its end, or from
    // any change.
    if (this.trained < history.last && performance.now() - this.began > 1500)
      this.ask({ want: history.last, frames: [] });
  }

  // Frames of known steps that will be shown next and are not here.
  /** @param {number} from */
  missing(from) {
    const { history, stride } = this;
    /** @type {number[]} */
    const found = [];
    for (
      let k = Math.ceil(from / stride) * stride;
      k <= Math.min(history.last, this.at + AHEAD * stride) && found.length < 40;
      k += stride
    )
      if (!history.has(k)) found.push(k);
    if (
      this.wanted !== undefined &&
      this.wanted <= history.last &&
      !history.has(this.wanted) &&
      !found.includes(this.wanted)
    )
      found.unshift(this.wanted);
    return found;
  }

  /** @param {number} step */
  arrive(step) {
    this.at = step;
    this.frameTimes.push(performance.now());
    if (this.frameTimes.length > 30) this.frameTimes.shift();
    this.follow();
    this.invalidate();
    if (!this.playing) this.rest();
  }

  /** @param {number} by */
  step(by, epoch = false) {
    this.pause("");
    const unit = epoch ? this.history.perEpoch : 1,
      to =
        by > 0 ? (Math.floor(this.at / unit) + 1) * unit : (Math.ceil(this.at / unit) - 1) * unit;
    if (to < 0 || to > this.options.limits.steps) return;
    if (to <= this.history.last) this.to(to);
    else {
      this.wanted = to;
      this.next();
    }
    this.rest();
  }

  /** @param {number} step */
  to(step) {
    this.at = Math.min(Math.max(step, 0), Math.max(this.history.last, 0));
    this.follow();
    if (!this.history.has(this.at)) {
      this.wanted = this.at;
      this.next();
    }
    this.invalidate();
  }

  reset() {
    this.pause("");
    this.to(0);
    this.rest();
  }

  // ---- what is changed
  /** @param {number} step */
  inForce(step) {
    const { changes, sides, rate } = this.toy;
    return (
      changes
        .filter((c) => c.at <= step)
        .map((c) => ({ sides: c.sides, rate: c.rate }))
        .at(-1) ?? { sides, rate }
    );
  }
  follow() {
    if (JSON.stringify(this.inForce(this.at)) !== this.seen && !this.pending) {
      this.panel();
      this.titles();
    }
  }

  // A slider at rest, or a held key: what it says is in force a moment later.
  soon() {
    clearTimeout(this.pending ?? 0);
    this.pending = setTimeout(() => {
      this.pending = null;
      if (!this.closed) this.commit();
    }, 160);
  }

  // The settings of the panel act from the step shown; what was to come after it is dropped.
  commit() {
    clearTimeout(this.pending ?? 0);
    this.pending = null;
    const { toy, at, now } = this,
      limit = this.options.limits.changes,
      kept = toy.changes.filter((c) => c.at < at),
      next = { ...toy, changes: kept };
    const before =
      at > 0
        ? (kept.map(({ sides, rate }) => ({ sides, rate })).at(-1) ?? {
            sides: toy.sides,
            rate: toy.rate,
          })
        : null;
    if (!before) Object.assign(next, clone(now));
    else if (!same(before, now)) next.changes = [...kept, { at, ...clone(now) }];
    this.unpreset();
    if (next.changes.length > limit) {
      this.load({ ...next, ...clone(now), changes: [] });
      return this.message(
        `A link keeps ${limit} changes on the way: started again with these settings.`,
      );
    }
    this.revision += 1;
    this.toy = next;
    this.wanted = undefined;
    this.recordedTo = -1;
    this.trained = -1;
    this.history.forget(at);
    this.seen = JSON.stringify(now);
    this.panel();
    this.titles();
    this.message("");
    this.ask({ rest: true });
  }

  // Other data: of images, or of vectors again, with the settings of the first state that shows
  // them.
  /** @param {string} data */
  other(data) {
    const known = this.options.presets.find((p) => p.toy.data === data);
    if (known && (this.images || data in this.options.images)) {
      const played = this.playing;
      this.goal = 0;
      this.unpreset();
      this.load({ ...known.toy, seed: this.toy.seed });
      if (played) this.play();
    } else this.restart({ data });
  }

  /**
   * @param {Partial<Toy>} change
   * @param {Side | false} [spare]
   */
  restart(change, spare) {
    if (spare) this.spare = clone(spare);
    this.unpreset();
    const played = this.playing,
      { at } = this,
      onlySeen = Object.keys(change).length === 1 && "part" in change;
    if (onlySeen) {
      this.goal = at;
      this.load({ ...clone(this.toy), ...change });
    } else this.load({ ...clone(this.toy), ...clone(this.now), changes: [], ...change });
    if (played) this.play();
  }

  /** @param {Toy} toy */
  load(toy) {
    const goal = this.goal;
    this.pause("");
    this.revision += 1;
    const shape =
      this.toy.sides.length !== toy.sides.length || this.images !== toy.data in this.options.images;
    clearTimeout(this.preparing ?? 0);
    this.preparing = null;
    this.toy = clone(toy);
    this.history = new History();
    this.at = 0;
    this.goal = goal;
    this.wanted = undefined;
    this.recordedTo = -1;
    this.trained = -1;
    this.ring = null;
    this.sheet = null;
    this.highlighted.clear();
    this.panel();
    if (shape) {
      this.views();
      this.resize();
    } else this.titles();
    this.needsLink = true; // a link, even if playing overtakes the question for it
    this.data = { ...this.data, idle: false };
    this.ask({ rest: true, want: goal || 0, frames: goal ? [goal] : [] });
  }

  /** @param {number} index */
  preset(index) {
    const { toy, caption } = this.options.presets[index];
    this.goal = 0;
    this.load(toy);
    this.unpreset();
    this.presets.querySelector(`[data-preset="${index}"]`)?.setAttribute("aria-pressed", "true");
    this.presetText.textContent = caption;
    if (!still()) this.play();
  }

  unpreset() {
    this.presetText.textContent = "";
    for (const b of this.presets.querySelectorAll("[data-preset]"))
      b.setAttribute("aria-pressed", "false");
  }

  // A gesture has ended: the link, the runs, the scores, and the numbers for those who listen.
  rest() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.closed) return;
      this.needsLink = true;
      this.ask(this.wanted === undefined ? {} : { want: this.wanted, frames: [this.wanted] });
      this.live.textContent = `step ${this.at}. ${this.toy.sides
        .map((_, i) => {
          const r = this.history.row(i, this.at);
          return `${LETTERS[i]}: loss ${number(r.loss)}, MAP@R ${number(r.map_at_r)}`;
        })
        .join("; ")}`;
    }, 150);
  }

  /** @param {Told & { query: Query, show: number }} given */
  remember({ query, toml, command, links, show }) {
    const kept = new URLSearchParams(location.search),
      address = new URLSearchParams(query);
    for (const name of ["hide", "socket"])
      if (kept.has(name)) address.set(name, kept.get(name) ?? "");
    if (this.at > 0 && !this.playing) address.set("step", String(this.at));
    this.written = JSON.stringify(query);
    this.told = { toml, command, links, steps: Math.max(show, 1) };
    this.runs();
    const text = address.toString();
    if (!(this.data.idle && this.playing))
      window.history.replaceState(
        window.history.state,
        "",
        `${location.pathname}${text && "?"}${text}${location.hash}`,
      );
    if (!this.playing && !this.goal)
      this.score(new URLSearchParams({ ...query, step: String(this.at) }));
  }

  /** @param {URLSearchParams} query */
  async score(query) {
    const key = query.toString();
    if (this.scored === key || this.hidden.has("table") || this.link.fallback) return;
    this.scored = key;
    /** @type {Table | null} */
    const found = await fetch(
      new URL(`api/toys/table?${key}`, new URL(this.data.base, location.href)),
    )
      .then((r) => (r.ok ? r.json() : null))
      .catch(() => null);
    if (!found || this.closed || this.scored !== key) {
      if (!found) this.scored = null;
      return;
    }
    const use = (/** @type {number} */ side, /** @type {Published} */ { loss, hyper }) => {
      const known = Object.fromEntries(
        this.schema.losses[loss].controls.map((c) => [c.name, c.default ?? null]),
      );
      const sides = clone(this.now.sides);
      sides[side] = { ...sides[side], loss, hyper: { ...known, ...hyper } };
      this.restart({ sides });
      if (!still()) this.play();
    };
    const about = found.published.length
      ? `Train scores of Karaman 2021, Table 4.1, beside ours. ${this.options.not_stated}`
      : "";
    this.scores.replaceChildren(
      el("h4", {}, "Scores over every sample"),
      scoreTable(
        found,
        this.toy.sides.map((_, i) => this.name(i)),
        (p) => (p.loss ? this.called(p.loss, p.hyper) : p.label),
        use,
      ),
      el("p", { class: "caption" }, about),
    );
    this.scores.dataset.step = String(found.step);
  }

  /** @param {string} text */
  message(text) {
    this.said = text;
    this.tell();
  }
  tell() {
    const tape =
      this.recordedTo > 0 && this.at <= this.recordedTo && !this.said
        ? `A recording of these very trainings; it goes on live at step ${this.recordedTo}, or as soon as you change something.`
        : "";
    this.notice.textContent = [
      this.said || tape,
      this.link.fallback ? "No direct connection: steps come through the page itself, slower." : "",
    ]
      .filter(Boolean)
      .join(" ");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (
      /** @type {Element} */ (event.target).matches("input, select, button") &&
      event.key !== "Home" &&
      event.key !== "PageUp" &&
      event.key !== "PageDown"
    )
      return;
    if (event.key === " ") {
      if (this.playing) this.pause();
      else this.play();
    } else if (event.key === ",") this.step(-1);
    else if (event.key === ".") this.step(1);
    else if (event.key === "PageUp") this.step(-1, true);
    else if (event.key === "PageDown") this.step(1, true);
    else if (event.key === "Home") this.reset();
    else if (event.key === "End") {
      this.pause("");
      this.to(this.history.last);
      this.rest();
    } else return;
    event.preventDefault();
  }

  // ---- drawing
  /** @param {Shown} view */
  size(view) {
    return view.frame.clientWidth;
  }

  resize() {
    fit([
      ...this.shown.flatMap((v) => [v.canvas, ...(v.strip ? [v.strip] : [])]),
      ...this.curves.canvases,
    ]);
    this.invalidate();
  }

  invalidate() {
    this.frameRequest ??= requestAnimationFrame(() => this.repaint());
  }

  // What `invalidate` has asked for, now.
  repaint() {
    if (!this.frameRequest) return;
    cancelAnimationFrame(this.frameRequest);
    this.frameRequest = null;
    if (!this.closed && this.history.data) this.paint();
  }

  // What a window shows at a step.
  /**
   * @param {Shown} view
   * @param {number} step
   */
  scene(view, step) {
    const data = /** @type {Known} */ (this.history.data),
      { toy } = this,
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
    const { history, theme, toy } = this,
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
      history,
      this.at,
      toy.changes.map((c) => c.at),
      theme,
      !this.playing,
    );
    this.scrub.max = String(Math.max(history.last, this.at));
    this.scrub.value = String(this.at);
    const rate = this.playing ? pace(this.frameTimes) : null;
    this.clock.textContent = `step ${this.at}, epoch ${(this.at / history.perEpoch).toFixed(1)}${rate ? `, ${rate} frames/s` : ""}`;
    this.tell();
    this.work.dataset.step = String(step);
    this.work.dataset.last = String(history.last);
    this.work.dataset.trained = String(this.trained);
    this.work.dataset.seq = String(++this.painted);
  }

  // Whether the inputs stand as they would be painted: they stay while the embeddings move.
  /**
   * @param {Shown} view
   * @param {Scene} scene
   */
  unchanged(view, { points, eye, zoom, ring, highlighted }) {
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

  // The queries of a side and what lies nearest to them.
  /**
   * @param {Shown} view
   * @param {number} step
   * @param {Row[]} rows
   */
  strip(view, step, rows) {
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
    copy.toBlob((blob) => save(`toys-${this.toy.data}-${this.toy.seed}-${step}.png`, blob));
  }

  close() {
    this.closed = true;
    this.playing = false;
    clearTimeout(this.telling);
    clearTimeout(this.pending ?? 0);
    clearTimeout(this.preparing ?? 0);
    document.removeEventListener("visibilitychange", this.leave);
    this.observer?.disconnect();
    this.link.close();
  }
}

/** @param {string} name */
const written = (name) =>
  symbol(name)
    .map((part) => (typeof part === "string" ? part : part.textContent))
    .join("");
const data_count = (/** @type {Known} */ data) =>
  `${data.labels.length} points of ${data.classes.length} classes`;

export const { render, unmount } = defineComponent(Toys);
