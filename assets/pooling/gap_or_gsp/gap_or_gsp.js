// The page GAP or GSP: two trainings of the same tokens, computed by Python step by step, side by
// side on one clock.
/** @import { Frame, GapAnswer, GapData, GapRequest, Limit, Measure, Setting, Settings, Shown, Side, Study } from "./types.js" */
/** @import { Child, Context, Ink, SetState, Theme } from "../../shared/types.js" */
import { receiveFallback, loadStyles, defineComponent, newTheme } from "../../shared/component.js";
import { control } from "../../shared/controls.js";
import { drawing, el, save, setText } from "../../shared/dom.js";
import { INK } from "../../shared/colours.js";
import { brief } from "../../shared/plot.js";
import { fit, pace } from "../../shared/player.js";
import { Link, decode, socketAddress } from "../../shared/socket.js";
import { Curves, MEASURES } from "./curves.js";
import { OWN, classAt, colourOf, paintPlane } from "./draw.js";
import { History, SIDES } from "./history.js";

/** @type {[text: string, steps: number][]} */
const SPEEDS = [
  ["slow motion", 4],
  ["12 steps/s", 12],
  ["30 steps/s", 30],
  ["as fast as it goes", 1000],
];
const TITLES = { gap: "GAP: the plain average", gsp: "GSP: a learned gate, then the average" };
const AHEAD = 3; // steps that Python is ahead of the eye
/**
 * @template T
 * @param {T} x
 * @returns {T}
 */
const clone = (x) => structuredClone(x);
/** @param {number} x */
const percent = (x) => (Number.isFinite(x) ? `${(100 * x).toFixed(1)} %` : "–");

/** @typedef {(ctx: CanvasRenderingContext2D, ink: Ink, theme: Theme) => void} Sign */

class GapOrGsp {
  /** @type {HTMLDivElement} */
  whole;
  /** @type {ResizeObserver} */
  observer;
  /** @type {() => void} */
  leave;
  /** @type {boolean} */
  unasked;
  /** @type {{ side: Side; canvas: HTMLCanvasElement; frame: HTMLDivElement; score: HTMLElement; whole: HTMLElement; }[]} */
  planes;
  /** @type {HTMLDivElement} */
  pair;
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
  /** @type {HTMLButtonElement[]} */
  chips;
  /** @type {HTMLParagraphElement} */
  about;
  /** @type {Curves} */
  curves;
  /** @type {Record<Side, Record<Measure, HTMLElement>>} */
  cells;
  /** @type {HTMLTableElement} */
  table;
  /** @type {HTMLDivElement} */
  side;
  /** @type {HTMLDivElement} */
  presets;
  /** @type {HTMLParagraphElement} */
  presetText;
  /** @type {HTMLDivElement} */
  stage;
  /** @type {Settings} */
  now;
  /** @type {string} */
  nowSeen;
  /** @type {HTMLAnchorElement} */
  numbers;
  /** @type {number} */
  telling;
  /** @type {string} */
  written;
  /** @type {string} */
  address;
  /** @type {string} */
  said;
  /** @type {number} */
  size;
  /** @type {string} */
  signsFor;
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
  speed = 30;
  /** @type {number | null} */
  over = null; // the class under the pointer
  /** @type {number[]} */
  frameTimes = [];
  told = 0;
  panels = 0;
  shown = { hulls: true, samples: true, prototypes: true };
  /** @type {number | undefined} */
  awaiting; // the step that is shown once it is here
  /** @type {number | null} */
  frameRequest = null;
  asked = -1;
  due = 0;
  needsLink = false;
  closed = false;
  /** @type {Uint8Array} */
  labels;
  /** @type {(readonly [HTMLAnchorElement, HTMLPreElement])[] | undefined} */
  runs;
  /** @type {Record<Side, string> | undefined} */
  tomls;
  /** @type {[canvas: HTMLCanvasElement, draw: Sign][]} */
  signed = [];

  /**
   * @param {ParentNode} root
   * @param {GapData} data
   */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.study = clone(data.study);
    this.query = JSON.stringify(data.query);
    this.hidden = new Set(data.hide);
    this.options = data.options;
    /** @type {number | null} */
    this.goal = data.step;
    /** @type {number | null} */
    this.chosen = data.chosen;
    /** @type {Link<GapRequest>} */
    this.link = new Link(
      socketAddress(data, "api/gap_or_gsp"),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data);
  }

  /** @param {GapData} data */
  async build(data) {
    await loadStyles(this.root, import.meta.url);
    this.root.append((this.whole = this.dom()));
    newTheme(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.stage);
    this.leave = () => {
      if (document.hidden) this.pause();
    };
    document.addEventListener("visibilitychange", this.leave);
    this.panel();
    this.resize();
    this.ask({ rest: true });
    this.unasked = data.idle && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.unasked) this.play();
  }

  // ---- the page
  dom() {
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {() => unknown} */ act,
      extra = {},
    ) => el("button", { "aria-label": name, title: name, onclick: act, ...extra }, text);
    this.planes = SIDES.map((side) => {
      const canvas = el("canvas", { role: "img", "aria-label": TITLES[side], "data-side": side }),
        frame = el("div", { class: "frame" }, canvas),
        score = el("b");
      canvas.addEventListener("pointermove", (e) => this.hover(e, canvas, side));
      canvas.addEventListener("pointerleave", () => {
        this.over = null;
        this.invalidate();
      });
      canvas.addEventListener("click", (e) => {
        const found = this.under(e, canvas, side);
        this.choose(found === this.chosen ? null : found);
      });
      return {
        side,
        canvas,
        frame,
        score,
        whole: el(
          "figure",
          {},
          el("figcaption", {}, el("span", {}, TITLES[side]), el("span", {}, "MAP@R ", score)),
          frame,
        ),
      };
    });
    this.pair = el(
      "div",
      {
        class: "pairing",
        tabindex: 0,
        role: "group",
        "aria-label":
          "both trainings: space plays and pauses, left and right arrows step, home goes to the start, end to the last step, comma and full stop choose a class, escape none",
      },
      ...this.planes.map((plane) => plane.whole),
    );
    this.pair.addEventListener("keydown", (e) => this.key(e));
    this.playButton = button(
      "Play",
      "play",
      () => {
        this.unasked = false;
        if (this.playing) this.pause();
        else this.play();
      },
      { class: "play" },
    );
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
      ...SPEEDS.map(([t, v]) => el("option", { value: v, selected: v === this.speed }, t)),
    );
    speed.addEventListener("change", () => {
      this.speed = Number(speed.value);
    });
    this.clock = el("output");
    this.notice = el("p", { class: "caption notice" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.chips = this.options.classes.map((name, label) =>
      el(
        "button",
        {
          "aria-pressed": "false",
          "aria-label": `class ${label + 1}`,
          title: `class ${label + 1}: ${name}`,
          "data-class": label,
          onclick: () => this.choose(this.chosen === label ? null : label),
        },
        el("i", { class: label < 8 ? "round" : "" }),
        String(label + 1),
      ),
    );
    this.about = el("p", { class: "caption about" });
    this.curves = new Curves(
      (step) => {
        this.pause();
        this.to(step);
      },
      () => this.rest(),
    );
    this.cells = /** @type {Record<Side, Record<Measure, HTMLElement>>} */ (
      /** @type {unknown} */ (
        Object.fromEntries(
          SIDES.map((side) => [
            side,
            Object.fromEntries(
              MEASURES.map(([name]) => [name, el("td", { "data-readout": `${side} ${name}` })]),
            ),
          ]),
        )
      )
    );
    this.table = el(
      "table",
      { class: "numbers" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", {}),
          ...SIDES.map((side) => el("th", { scope: "col" }, side.toUpperCase())),
        ),
      ),
      el(
        "tbody",
        {},
        ...MEASURES.map(([name, title, help]) =>
          el(
            "tr",
            { title: help },
            el("th", { scope: "row" }, title),
            ...SIDES.map((side) => this.cells[side][name]),
          ),
        ),
      ),
    );
    this.curves.whole.append(this.table);
    this.side = el("div", { class: "panel" });
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
    this.presetText = el("p", { class: "caption" }, this.options.sentence);
    this.stage = el(
      "div",
      { class: "stage" },
      el(
        "div",
        { class: "main" },
        this.pair,
        el(
          "div",
          { class: "transport" },
          button("⟲", "reset", () => this.reset()),
          button("‹", "one step back", () => this.step(-1)),
          this.playButton,
          button("›", "one step on", () => this.step(1)),
          this.scrub,
          this.clock,
          speed,
        ),
        this.notice,
        el(
          "div",
          { class: "chips", role: "group", "aria-label": "class that stands out" },
          el("small", {}, "Class"),
          ...this.chips,
        ),
        this.about,
        this.live,
        this.curves.whole,
      ),
      this.side,
    );
    return el(
      "div",
      { class: "lab" },
      this.hidden.has("presets") ? "" : this.presets,
      this.presetText,
      this.stage,
    );
  }

  panel() {
    const { options, study, hidden } = this,
      { limits } = options,
      now = (this.now = this.inForce(this.at));
    this.nowSeen = JSON.stringify(now);
    this.panels += 1;
    const slider = (
      /** @type {Setting} */ name,
      /** @type {string} */ symbol,
      /** @type {string} */ help,
      /** @type {Limit} */ spec,
      /** @type {number} */ value,
      /** @type {(x: number) => void} */ set,
    ) => {
      if (hidden.has(name)) return [];
      const made = control({ name: help.split(":")[0], symbol, help, ...spec }, value, {
        onInput: set,
        onRest: () => this.commit(),
      });
      setText(made.querySelector(".symbol"), symbol);
      return [el("div", { class: "named" }, el("span", { title: help }, help.split(":")[0]), made)];
    };
    const bound = (/** @type {Setting} */ name, /** @type {number} */ x) =>
      Math.min(Math.max(x, limits[name][0]), limits[name][1]);
    const running = (
      /** @type {Setting} */ name,
      /** @type {string} */ symbol,
      /** @type {string} */ help,
      /** @type {Limit} */ spec,
      unit = 1,
    ) =>
      slider(name, symbol, help, spec, now[name] / unit, (x) => {
        now[name] = bound(name, Number((x * unit).toPrecision(6)));
      });
    const number = (
      /** @type {Setting} */ name,
      /** @type {string} */ label,
      /** @type {string} */ title,
    ) => {
      const box = el("input", {
        type: "number",
        "aria-label": label,
        title,
        min: limits[name][0],
        max: limits[name][1],
        step: 1,
        value: String(study[name]),
      });
      box.addEventListener("change", () => {
        const value = Math.round(Number(box.value));
        if (!Number.isFinite(value) || box.value === "") {
          box.value = String(this.study[name]);
          return;
        }
        this.restart({ [name]: bound(name, value) });
      });
      return box;
    };
    const tick = (
      /** @type {keyof Shown} */ key,
      /** @type {string} */ text,
      /** @type {string} */ title,
    ) => {
      const box = el("input", { type: "checkbox", checked: this.shown[key] });
      box.addEventListener("change", () => {
        this.shown[key] = box.checked;
        this.invalidate();
      });
      return el("label", { title }, box, text);
    };
    const section = (
      /** @type {string} */ name,
      /** @type {string} */ title,
      /** @type {(Child | Child[])[]} */ ...parts
    ) =>
      hidden.has(name) || !parts.flat().length
        ? []
        : [el("section", {}, el("h4", {}, title), ...parts.flat())];
    let tau = study.tau;
    const threshold = control(
      {
        name: "active from",
        symbol: "τ",
        help: "percent of a class's pooling weight from which a token counts as its own and enters its hull",
        low: 0.1,
        high: 12,
        step: 0.05,
        default: 5,
      },
      100 * study.tau,
      {
        onInput: (/** @type {number} */ x) => {
          tau = bound("tau", x / 100);
        },
        onRest: () => this.rehull(tau),
      },
    );
    setText(threshold.querySelector(".symbol"), "τ");
    const seed = number("seed", "seed", "tokens at the start, bags and their order");
    const figure = el("button", { onclick: () => this.figure() }, "Figure, PNG");
    this.numbers = el("a", { class: "button", download: "" }, "Curves, CSV");
    this.runs = SIDES.map(
      (side) =>
        /** @type {const} */ ([
          el("a", { class: "button", download: "" }, `${side.toUpperCase()}, TOML`),
          el(
            "pre",
            { tabindex: 0, "aria-label": `${side.toUpperCase()} as TOML` },
            this.tomls?.[side] ?? "",
          ),
        ]),
    );
    const focused = /** @type {ParentNode & Partial<ShadowRoot>} */ (
      this.root
    ).activeElement?.getAttribute("aria-label");
    this.side.replaceChildren(
      ...section(
        "pooling",
        "Gate of GSP",
        running("mu", "μ", "share pooled: of each bag's mass; at 1 GSP is GAP", {
          low: 0.05,
          high: 1,
          step: 0.01,
        }),
        running(
          "epsilon",
          "ε",
          "hardness of the gate: large values select sharply what lies near a prototype",
          { low: 0.5, high: 200, log: true },
        ),
        hidden.has("prototypes")
          ? []
          : [
              el(
                "label",
                { class: "field" },
                "prototypes m",
                number(
                  "prototypes",
                  "prototypes",
                  "learned places to which the gate compares tokens; another number starts anew",
                ),
              ),
            ],
        hidden.has("warmup")
          ? []
          : [
              el(
                "label",
                { class: "field" },
                "warm-up, steps",
                number(
                  "warmup",
                  "warm-up",
                  `steps of plain averaging before the ${options.memory} pooled vectors are collected from which the prototypes are chosen`,
                ),
              ),
            ],
      ),
      ...section(
        "training",
        "Training of both",
        running(
          "rate",
          "η",
          "learning rate, in 10⁻⁴: of Adam",
          { low: 0.1, high: 100, log: true },
          1e-4,
        ),
        running(
          "margin",
          "m⁻",
          "margin: the contrastive loss pushes bags of two classes apart up to this distance",
          { low: 0.02, high: 0.8, step: 0.005 },
        ),
        hidden.has("seed")
          ? []
          : [
              el(
                "label",
                { class: "field" },
                "seed",
                el(
                  "span",
                  { class: "seed" },
                  seed,
                  el(
                    "button",
                    {
                      title: "another seed",
                      onclick: () => this.restart({ seed: (this.study.seed + 1) % 2 ** 31 }),
                    },
                    "next",
                  ),
                ),
              ),
            ],
      ),
      ...section(
        "shown",
        "Shown",
        hidden.has("tau")
          ? []
          : [
              el(
                "div",
                { class: "named" },
                el("span", {}, "token counts from, in % of weight"),
                threshold,
              ),
            ],
        el(
          "div",
          { class: "switches" },
          tick("hulls", "class hulls", "convex hull of the tokens that count"),
          tick("samples", "bags", "pooled vector of each validation bag shown"),
          tick("prototypes", "prototypes", "of GSP, once they are placed"),
        ),
      ),
      ...section("legend", "Signs", this.signs()),
      ...section(
        "take",
        "Take away",
        el("div", { class: "take" }, figure, this.numbers, ...this.runs.map(([a]) => a)),
        el(
          "details",
          {},
          el("summary", {}, "Open as runs"),
          el(
            "p",
            { class: "caption" },
            "The same trainings with the settings in force at this step, for the command line:",
          ),
          el(
            "pre",
            { tabindex: 0, "aria-label": "command line" },
            SIDES.map((side) => `python -m dmlcore train tokens-${side}.toml`).join("\n"),
          ),
          ...this.runs.map(([, pre]) => pre),
        ),
      ),
    );
    /** @type {HTMLElement[]} */ ([...this.side.querySelectorAll("[aria-label]")])
      .find((e) => e.getAttribute("aria-label") === focused)
      ?.focus();
    this.links();
  }

  signs() {
    this.signed = [];
    const sign = (/** @type {Sign} */ draw, /** @type {string} */ text) => {
      const canvas = el("canvas", { width: 36, height: 36, "aria-hidden": "true" });
      this.signed.push([canvas, draw]);
      return el("span", {}, canvas, text);
    };
    const mark = (
      /** @type {Context} */ ctx,
      /** @type {number} */ x,
      /** @type {number} */ y,
      /** @type {number} */ r,
      /** @type {string | null} */ fill,
      rim = "",
    ) => {
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 7);
      if (fill) {
        ctx.fillStyle = fill;
        ctx.fill();
      }
      if (rim) {
        ctx.strokeStyle = rim;
        ctx.lineWidth = 1.3;
        ctx.stroke();
      }
    };
    const diamond = (
      /** @type {Context} */ ctx,
      /** @type {Ink} */ ink,
      /** @type {boolean} */ full,
    ) => {
      ctx.beginPath();
      for (const [x, y] of [
        [9, 2],
        [16, 9],
        [9, 16],
        [2, 9],
      ])
        ctx.lineTo(x, y);
      ctx.closePath();
      ctx.fillStyle = full ? ink.anchor : ink.page;
      ctx.fill();
      ctx.strokeStyle = ink.anchor;
      ctx.lineWidth = 1.4;
      ctx.stroke();
    };
    return el(
      "div",
      { class: "signs" },
      sign(
        (ctx, ink, theme) => mark(ctx, 9, 9, 6, colourOf(0, theme), ink.rim),
        "token of one class, 4 each",
      ),
      sign((ctx, ink) => diamond(ctx, ink, true), "S1–S4: tokens of all classes"),
      sign((ctx, ink) => diamond(ctx, ink, false), "hollow: the chosen class hardly uses it"),
      sign((ctx, _ink, theme) => {
        for (const [x, y] of [
          [5, 6],
          [12, 5],
          [9, 13],
        ])
          mark(ctx, x, y, 2.8, colourOf(0, theme));
      }, "bag of 50 tokens, pooled"),
      sign((ctx, ink) => mark(ctx, 9, 9, 5, null, ink.text), "prototype of GSP"),
      sign((ctx, ink) => {
        ctx.setLineDash([3, 3]);
        ctx.strokeStyle = ink.faint;
        ctx.strokeRect(2.5, 2.5, 13, 13);
        ctx.setLineDash([]);
      }, `box of ±${this.options.bound} that tokens cannot leave`),
    );
  }

  // ---- from Streamlit
  /** @param {GapData} data */
  async update(data) {
    await this.ready;
    if (newTheme(this)) this.invalidate();
    const query = JSON.stringify(data.query);
    if (query !== this.query && query !== this.written) {
      this.query = query;
      this.load(data.study, data.step ?? 0);
    }
    receiveFallback(this, data);
  }

  // ---- what is asked of Python
  /** @param {Partial<GapRequest>} more */
  ask(more = {}) {
    const { study, history } = this,
      request = {
        id: ++this.seq,
        state: study,
        have: history.last,
        want: Math.max(history.last, 0),
        show: this.at,
        ...more,
        rest: more.rest || this.needsLink,
      };
    this.needsLink ||= Boolean(more.rest);
    this.revisions.set(request.id, this.revision);
    this.link.send(request);
  }

  /** @param {ArrayBuffer} buffer */
  receive(buffer) {
    const answer = /** @type {GapAnswer} */ (decode(buffer)),
      revision = this.revisions.get(answer.id);
    this.answered = Math.max(this.answered, answer.id);
    for (const id of this.revisions.keys()) if (id <= answer.id) this.revisions.delete(id);
    if (revision !== this.revision) return;
    this.labels = answer.labels;
    this.history.add(answer);
    if (answer.query && answer.runs) {
      this.needsLink = false;
      this.remember({ query: answer.query, runs: answer.runs });
    }
    if (this.goal !== null) {
      // a link into the middle of a history: fetch up to it
      this.at = Math.min(this.goal, Math.max(this.history.last, 0));
      if (this.at < this.goal) {
        this.message(`Training to step ${this.goal}: ${this.history.last} …`);
        this.ask({ want: this.goal });
      } else {
        this.goal = null;
        this.message("");
        this.panel();
        this.ask({ rest: true });
      }
    }
    // An answer may bring nothing: others were served first, or Python has to compute again what it
    // no longer kept.
    if (!answer.count) this.asked = -1;
    if (this.awaiting !== undefined) {
      if (this.history.last >= this.awaiting) this.arrive(this.awaiting);
      else if (!this.playing) this.ask({ want: this.awaiting });
    }
    this.prepare();
    this.invalidate();
  }

  // ---- time
  play() {
    if (this.playing) return;
    this.playing = true;
    this.frameTimes = [];
    this.asked = -1;
    this.due = performance.now();
    this.message("");
    this.playButton.textContent = "Pause";
    this.playButton.setAttribute("aria-label", "pause");
    this.tick();
    this.prepare();
  }

  pause(why = "") {
    this.awaiting = undefined;
    if (!this.playing) return;
    this.playing = false;
    this.stopped();
    this.message(why);
    this.invalidate();
    this.rest();
  }

  stopped() {
    this.playButton.textContent = "Play";
    this.playButton.setAttribute("aria-label", "play");
  }

  tick() {
    if (!this.playing || this.closed) return;
    const now = performance.now(),
      { steps, unasked } = this.options.limits;
    if (
      this.awaiting === undefined &&
      now >= this.due &&
      this.history.last >= 0 &&
      this.goal === null
    ) {
      if (this.at >= steps)
        return this.pause(
          `${this.at} steps: the history is full. Open it as a run to go on, or go back and change something.`,
        );
      if (this.unasked && this.at >= unasked) {
        this.unasked = false;
        return this.pause(`Paused at step ${this.at}; Play goes on.`);
      }
      this.due = Math.max(this.due + 1000 / this.speed, now - 100);
      if (this.at < this.history.last) this.arrive(this.at + 1);
      else this.awaiting = this.at + 1;
      this.prepare();
    }
    requestAnimationFrame(() => this.tick());
  }

  // Python computes the next steps while this one is looked at.
  prepare() {
    const next = this.history.last + 1;
    if (
      !this.playing ||
      this.goal !== null ||
      this.asked >= next ||
      next > Math.min(this.at + AHEAD, this.options.limits.steps)
    )
      return;
    this.asked = next;
    this.ask({ want: next });
  }

  /** @param {number} step */
  arrive(step) {
    this.awaiting = undefined;
    this.at = step;
    this.frameTimes.push(performance.now());
    if (this.frameTimes.length > 30) this.frameTimes.shift();
    this.follow();
    this.invalidate();
    if (!this.playing) this.rest();
  }

  /** @param {number} by */
  step(by) {
    this.unasked = false;
    this.goal = null;
    this.pause();
    const to = this.at + by;
    if (to < 0 || to > this.options.limits.steps) return;
    if (to <= this.history.last) {
      this.to(to);
      this.rest();
    } else {
      this.awaiting = to;
      this.ask({ want: to });
    }
  }

  /** @param {number} step */
  to(step) {
    this.unasked = false;
    this.goal = null;
    this.at = Math.min(Math.max(step, 0), Math.max(this.history.last, 0));
    this.follow();
    this.invalidate();
  }

  reset() {
    this.unasked = false;
    this.pause();
    this.message("");
    this.to(0);
    this.rest();
  }

  // ---- what is changed
  /** @param {number} step */
  inForce(step) {
    const source = /** @type {Settings} */ (
      /** @type {unknown} */ (this.study.changes.filter((c) => c.at <= step).at(-1) ?? this.study)
    );
    /** @type {Settings} */
    const found = Object.fromEntries(this.options.onTheWay.map((name) => [name, source[name]]));
    return found;
  }
  follow() {
    if (JSON.stringify(this.inForce(this.at)) !== this.nowSeen) this.panel();
  }

  // A slider rests: from the step shown on, the trainings go on with it; what was to come after is
  // dropped.
  commit() {
    const study = clone(this.study),
      k = this.at,
      now = clone(this.now),
      played = this.playing;
    this.unasked = false;
    if (
      JSON.stringify(now) === JSON.stringify(this.inForce(k)) &&
      !study.changes.some((c) => c.at > k)
    )
      return;
    if (k === 0) Object.assign(study, now, { changes: [] });
    else {
      study.changes = study.changes.filter((c) => c.at < k);
      /** @type {Record<string, unknown>} */
      const before = study.changes.at(-1) ?? study;
      if (this.options.onTheWay.some((name) => before[name] !== now[name]))
        study.changes.push({ at: k, ...now });
    }
    this.unpreset();
    this.message("");
    this.playing = false;
    this.awaiting = undefined;
    this.goal = null;
    if (study.changes.length > this.options.limits.changes) {
      this.load({ ...study, ...now, changes: [] });
      this.message(
        `A link keeps ${this.options.limits.changes} changes on the way: restarted with these settings.`,
      );
    } else {
      this.revision += 1;
      this.study = study;
      // The step shown was made before the change; at the start only the first step is new.
      this.history.forget(k + 1);
      this.panel();
      this.ask({ rest: true });
    }
    if (played) this.play();
    else this.stopped();
  }

  /** @param {Record<string, unknown>} change */
  restart(change) {
    const played = this.playing;
    this.unpreset();
    this.load({ ...clone(this.study), ...this.inForce(this.at), ...change, changes: [] });
    if (played) this.play();
  }

  // Another threshold: the same trainings, other hulls.
  /** @param {number} tau */
  rehull(tau) {
    const played = this.playing,
      at = this.at;
    if (tau === this.study.tau) return;
    this.load({ ...clone(this.study), tau }, at);
    if (played) this.play();
  }

  /** @param {Study} study */
  load(study, goal = 0) {
    this.unasked = false;
    this.pause();
    this.revision += 1;
    this.study = clone(study);
    this.history = new History();
    this.at = 0;
    this.goal = goal || null;
    this.awaiting = undefined;
    this.asked = -1;
    this.message("");
    this.panel();
    this.data = { ...this.data, idle: false };
    this.ask({ rest: true, want: goal });
  }

  /** @param {number} index */
  preset(index) {
    const { study, caption } = this.options.presets[index];
    this.load(study);
    this.unpreset();
    this.presets.querySelector(`[data-preset="${index}"]`)?.setAttribute("aria-pressed", "true");
    this.presetText.textContent = caption;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  unpreset() {
    this.presetText.textContent = this.options.sentence;
    for (const b of this.presets.querySelectorAll("[data-preset]"))
      b.setAttribute("aria-pressed", "false");
  }

  // A gesture has ended: the link, the runs, and the numbers for those who listen.
  rest() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.closed) return;
      this.ask({ rest: true });
      const frame = this.history.at(this.at);
      if (frame)
        this.live.textContent = `step ${this.at}, MAP@R of GAP ${brief(frame.gap.held.map_at_r)}, of GSP ${brief(frame.gsp.held.map_at_r)}`;
    }, 150);
  }

  /** @param {Required<Pick<GapAnswer, "query" | "runs">>} given */
  remember({ query, runs }) {
    const kept = new URLSearchParams(location.search),
      address = new URLSearchParams(query);
    for (const name of ["hide", "socket"])
      if (kept.has(name)) address.set(name, kept.get(name) ?? "");
    this.written = JSON.stringify(query);
    this.tomls = runs;
    this.address = new URLSearchParams({ ...query, step: String(this.goal ?? this.at) }).toString();
    this.runs?.forEach(([, pre], i) => setText(pre, runs[SIDES[i]]));
    this.links();
    if (this.goal !== null) return;
    if (this.at > 0 && !this.playing) address.set("step", String(this.at));
    if (this.chosen !== null) address.set("class", String(this.chosen + 1));
    const text = address.toString();
    if (!(this.data.idle && this.playing))
      window.history.replaceState(
        window.history.state,
        "",
        `${location.pathname}${text && "?"}${text}${location.hash}`,
      );
  }

  links() {
    const base = new URL(this.data.base, location.href),
      to = (/** @type {string} */ file) =>
        new URL(`api/gap_or_gsp/${file}?${this.address ?? ""}`, base).href;
    if (this.numbers) this.numbers.href = to("curves.csv");
    this.runs?.forEach(([a], i) => {
      a.href = to(`tokens-${SIDES[i]}.toml`);
    });
  }

  /** @param {string} text */
  message(text) {
    this.said = text;
    this.tell();
  }
  tell() {
    setText(
      this.notice,
      [
        this.said,
        this.link.fallback
          ? "No direct connection: steps come through the page itself, slower."
          : "",
      ]
        .filter(Boolean)
        .join(" "),
    );
  }

  // ---- the class that stands out
  get standing() {
    return this.over ?? this.chosen;
  }

  /**
   * @param {PointerEvent} event
   * @param {HTMLCanvasElement} canvas
   * @param {Side} side
   */
  under(event, canvas, side) {
    const box = canvas.getBoundingClientRect(),
      frame = this.history.at(this.at);
    return frame && this.labels
      ? classAt(
          frame[side],
          this.labels,
          this.size,
          event.clientX - box.left,
          event.clientY - box.top,
          event.pointerType === "touch" ? 22 : 12,
        )
      : null;
  }

  /**
   * @param {PointerEvent} event
   * @param {HTMLCanvasElement} canvas
   * @param {Side} side
   */
  hover(event, canvas, side) {
    if (event.pointerType === "touch") return;
    const found = this.under(event, canvas, side);
    canvas.style.cursor = found === null ? "" : "pointer";
    if (found !== this.over) {
      this.over = found;
      this.invalidate();
    }
  }

  /** @param {number | null} label */
  choose(label) {
    this.chosen = label;
    this.over = null;
    this.invalidate();
    this.live.textContent = label === null ? "no class chosen" : this.tellClass(label);
    this.rest();
  }

  /** @param {number} label */
  tellClass(label) {
    const frame = this.history.at(this.at);
    if (!frame) return "";
    const told = SIDES.map((side) => {
      const { onShared, weight, active, classes } = frame[side],
        tokens = [...Array(OWN).keys()].map((s) => classes * OWN + s),
        used = tokens.filter((t) => active(label, t));
      const names = used
        .map((t) => `S${t - classes * OWN + 1} ${percent(weight(label, t))}`)
        .join(", ");
      return `${side.toUpperCase()} puts ${percent(onShared[label])} of its weight on shared tokens (${used.length ? `in the hull: ${names}` : "none in the hull"})`;
    });
    return `Class ${label + 1}: ${told.join("; ")}.`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const n = this.options.classes.length,
      turn = event.key === "," ? -1 : event.key === "." ? 1 : 0;
    if (event.target !== this.pair) return;
    if (event.key === " ") {
      this.unasked = false;
      if (this.playing) this.pause();
      else this.play();
    } else if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "ArrowRight") this.step(1);
    else if (event.key === "Home") this.reset();
    else if (event.key === "End") {
      this.pause();
      this.to(this.history.last);
      this.rest();
    } else if (turn) this.choose(((this.chosen ?? (turn > 0 ? -1 : 0)) + turn + n) % n);
    else if (event.key === "Escape") this.choose(null);
    else return;
    event.preventDefault();
  }

  // ---- drawing
  resize() {
    this.size = this.planes[0].frame.clientWidth;
    fit([...this.planes.map((p) => p.canvas), ...this.curves.canvases]);
    this.invalidate();
  }

  invalidate() {
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      if (!this.closed && this.size && this.history.at(this.at) && this.labels) this.paint();
    });
  }

  // The planes every time; while it plays, curves and numbers ten times a second.
  paint() {
    const { history, at, theme, standing } = this,
      frame = history.at(at),
      now = performance.now();
    for (const { side, canvas } of this.planes) {
      paintPlane(
        drawing(canvas),
        this.size,
        frame[side],
        this.labels,
        { chosen: standing, shown: this.shown, bound: this.options.bound },
        theme,
      );
    }
    if (!this.playing || now - this.told >= 100) {
      this.told = now;
      this.paintNumbers(frame);
    }
    for (const { canvas } of this.planes) canvas.dataset.step = String(at);
  }

  /** @param {Frame} frame */
  paintNumbers(frame) {
    const { history, at, theme, standing } = this;
    for (const { side, canvas, score } of this.planes) {
      const { held, prototypes } = frame[side];
      setText(score, Number.isFinite(held.map_at_r) ? held.map_at_r.toFixed(3) : "–");
      canvas.setAttribute(
        "aria-label",
        `${TITLES[side]}, step ${at}: ${this.labels.length} bags of ${frame[side].classes} classes, MAP@R ${brief(held.map_at_r)}, weight on shared tokens ${percent(held.on_shared)}, hull IoU ${brief(held.iou)}, ${prototypes.length / 2} prototypes placed`,
      );
      for (const [name] of MEASURES)
        setText(
          this.cells[side][name],
          Number.isFinite(held[name])
            ? name === "on_shared"
              ? percent(held[name])
              : held[name].toFixed(3)
            : "–",
        );
    }
    this.curves.paint(
      history,
      at,
      [...this.study.changes.map((c) => c.at), ...history.placed],
      theme,
    );
    this.scrub.max = String(Math.max(history.last, at));
    this.scrub.value = String(at);
    const rate = this.playing ? pace(this.frameTimes) : null;
    setText(this.clock, `step ${at}${rate ? `, ${rate}/s` : ""}`);
    setText(this.about, standing === null ? this.options.hint : this.tellClass(standing));
    const signs = `${theme} ${this.chosen} ${this.panels}`;
    if (this.signsFor === signs) return;
    this.signsFor = signs;
    this.chips.forEach((chip, label) => {
      chip.setAttribute("aria-pressed", String(this.chosen === label));
      /** @type {HTMLElement} */ (chip.firstChild).style.background = colourOf(label, theme);
    });
    for (const [canvas, draw] of this.signed) {
      const ctx = drawing(canvas);
      ctx.setTransform(2, 0, 0, 2, 0, 0);
      ctx.clearRect(0, 0, 18, 18);
      draw(ctx, INK[theme], theme);
    }
  }

  // Both planes as they are shown, with their numbers, in one figure.
  figure() {
    const [a, b] = this.planes.map((p) => p.canvas),
      gap = 24,
      head = 56,
      whole = Object.assign(document.createElement("canvas"), {
        width: a.width + b.width + gap,
        height: a.height + head,
      }),
      ctx = drawing(whole);
    const ink = INK[this.theme],
      frame = this.history.at(this.at);
    ctx.fillStyle = ink.page;
    ctx.fillRect(0, 0, whole.width, whole.height);
    ctx.fillStyle = ink.text;
    ctx.font = `${Math.round(a.width / 28)}px system-ui, sans-serif`;
    /** @type {const} */ ([
      [a, 0],
      [b, a.width + gap],
    ]).forEach(([canvas, x], i) => {
      ctx.drawImage(canvas, x, head);
      ctx.fillText(
        `${SIDES[i].toUpperCase()}, step ${this.at}: MAP@R ${brief(frame[SIDES[i]].held.map_at_r)}`,
        x + 8,
        38,
      );
    });
    whole.toBlob((blob) => save(`gap-or-gsp-${this.at}.png`, blob));
  }

  close() {
    this.closed = true;
    this.playing = false;
    clearTimeout(this.telling);
    this.observer?.disconnect();
    document.removeEventListener("visibilitychange", this.leave);
    this.link.close();
  }
}

export const { render, unmount } = defineComponent(GapOrGsp);
