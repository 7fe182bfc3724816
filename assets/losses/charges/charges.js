// The charges page: plays a simulation that Python computes, step by step, and keeps what it has
// seen for scrubbing.
/** @import { ChargesAnswer, ChargesData, ChargesRequest, Law, Moved, Portrait, Shown, Spec } from "./types.js" */
/** @import { Child, Schema, SetState, Theme } from "../../shared/types.js" */
import { receiveFallback, loadStyles, defineComponent, newTheme } from "../../shared/component.js";
import { drawing, el, readouts, save, setText, show as number } from "../../shared/dom.js";
import { formula } from "../../shared/formula.js";
import { control, lossPanel } from "../../shared/controls.js";
import { exportLinks } from "../../shared/export.js";
import { fit, pace } from "../../shared/player.js";
import { Link, decode, socketAddress } from "../../shared/socket.js";
import { History } from "./history.js";
import { CLASS, fromPixels, halfWidth, paintCharges, paintPortrait, toPixels } from "./draw.js";
import { Curves } from "./curves.js";

/** @type {[text: string, steps: number][]} */
const SPEEDS = [
  ["slow motion", 4],
  ["12 steps/s", 12],
  ["30 steps/s", 30],
  ["as fast as it goes", 1000],
];
const STILL = 1e-5; // where no point moves farther than this in a step, nothing will
/**
 * @template T
 * @param {T} x
 * @returns {T}
 */
const clone = (x) => structuredClone(x);

class Charges {
  /** @type {Schema} */
  schema;
  /** @type {HTMLDivElement} */
  whole;
  /** @type {ResizeObserver} */
  observer;
  /** @type {() => void} */
  leave;
  /** @type {HTMLCanvasElement} */
  canvas;
  /** @type {HTMLDivElement} */
  frame;
  /** @type {HTMLButtonElement} */
  playButton;
  /** @type {HTMLInputElement} */
  scrub;
  /** @type {HTMLOutputElement} */
  clock;
  /** @type {HTMLDivElement} */
  readout;
  /** @type {HTMLParagraphElement} */
  notice;
  /** @type {HTMLDivElement} */
  live;
  /** @type {HTMLCanvasElement} */
  portrait;
  /** @type {HTMLParagraphElement} */
  portraitText;
  /** @type {HTMLSpanElement} */
  inner;
  /** @type {HTMLSpanElement} */
  outer;
  /** @type {Curves} */
  curves;
  /** @type {HTMLDivElement} */
  side;
  /** @type {HTMLDivElement} */
  presets;
  /** @type {HTMLParagraphElement} */
  presetText;
  /** @type {HTMLDivElement} */
  stage;
  /** @type {Law} */
  law;
  /** @type {string} */
  lawSeen;
  /** @type {HTMLPreElement} */
  python;
  /** @type {HTMLAnchorElement[]} */
  files;
  /** @type {number} */
  asked;
  /** @type {number} */
  due;
  /** @type {number} */
  telling;
  /** @type {string} */
  written;
  /** @type {string | undefined} */
  pythonText;
  /** @type {string} */
  address;
  /** @type {string} */
  said;
  /** @type {number} */
  size;
  /** @type {number} */
  half;
  /** @type {Theme} */
  theme;
  /** @type {SetState} */
  setState;

  history = new History();
  at = 0; // the step shown
  seq = 0;
  answered = 0;
  revision = 0; // of the future: each change begins another
  /** @type {Map<number, [era: number, draft: boolean]>} */
  revisions = new Map(); // by request
  playing = false;
  speed = 30;
  /** @type {number | null} */
  chosen = null;
  painted = 0;
  /** @type {number[]} */
  frameTimes = [];
  shown = { trails: true, arrows: false, circles: false };
  /** @type {number | undefined} */
  awaiting; // the step that is shown once it is here
  /** @type {{ played: boolean } | null | undefined} */
  drafting;
  /** @type {Portrait | null} */
  portraitSeen = null;
  /** @type {number | null} */
  frameRequest = null;
  needsLink = false;
  held = false;
  closed = false;
  /** @type {Uint8Array} */
  labels;

  /**
   * @param {ParentNode} root
   * @param {ChargesData} data
   */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.spec = clone(data.spec);
    this.query = JSON.stringify(data.query);
    this.hidden = new Set(data.hide);
    this.options = data.options;
    this.goal = data.step;
    /** @type {Link<ChargesRequest>} */
    this.link = new Link(
      socketAddress(data, "api/charges"),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data);
  }

  /** @param {ChargesData} data */
  async build(data) {
    this.schema = await loadStyles(this.root, import.meta.url);
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
    if (data.idle && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  // ---- the page
  dom() {
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {() => unknown} */ act,
      extra = {},
    ) => el("button", { "aria-label": name, title: name, onclick: act, ...extra }, text);
    this.canvas = el("canvas", { role: "img", "aria-label": "charges" });
    this.frame = el(
      "div",
      {
        class: "frame",
        tabindex: 0,
        role: "group",
        "aria-label":
          "the charges: space plays and pauses, left and right arrows step, home resets, comma and full stop choose a point, shift and arrows move it",
      },
      this.canvas,
    );
    this.frame.addEventListener("keydown", (e) => this.key(e));
    this.canvas.addEventListener("pointerdown", (e) => this.drag(e));
    this.canvas.addEventListener("pointermove", (e) => this.hover(e));
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
      ...SPEEDS.map(([t, v]) => el("option", { value: v, selected: v === this.speed }, t)),
    );
    speed.addEventListener("change", () => {
      this.speed = Number(speed.value);
    });
    this.clock = el("output");
    this.readout = el("div", { class: "readout" });
    this.notice = el("p", { class: "caption notice" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.portrait = el("canvas", {
      class: "portrait",
      role: "img",
      "aria-label": "phase portrait",
    });
    this.portraitText = el("p", { class: "caption" });
    this.inner = el("span", {}, el("i", { class: "dashed", style: "color:#D55E00" }), "raw = m₂");
    this.outer = el("span", {}, el("i", { style: "color:#D55E00" }), "raw = 0");
    this.curves = new Curves(
      (step) => {
        this.pause();
        this.to(step);
      },
      () => this.rest(),
    );
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
    this.presetText = el("p", { class: "caption" });
    this.stage = el(
      "div",
      { class: "stage" },
      el(
        "div",
        { class: "left" },
        this.frame,
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
        this.readout,
        this.notice,
        this.presetText,
        this.live,
      ),
      el(
        "div",
        { class: "middle" },
        this.curves.whole,
        el(
          "div",
          {},
          el("h4", {}, "Phase portrait: how many triplets have which distances"),
          this.portrait,
          el(
            "div",
            { class: "legend" },
            this.outer,
            this.inner,
            el("span", {}, el("i", { class: "dotted" }), "d(a, n) = d(a, p)"),
          ),
          this.portraitText,
        ),
      ),
      this.side,
    );
    return el("div", { class: "lab" }, this.hidden.has("presets") ? "" : this.presets, this.stage);
  }

  panel() {
    const { options, spec, hidden } = this,
      limits = options.limits,
      law = (this.law = clone(this.lawAt(this.at)));
    this.lawSeen = JSON.stringify(law);
    const edit = {
      hidden,
      onInput: () => this.draft(),
      onRest: () => this.commit(),
      onLoss: () => this.commit(),
    };
    const choose = (
      /** @type {"miner" | "optimiser" | "normalise"} */ key,
      /** @type {string} */ label,
    ) => {
      const box = el(
        "select",
        { "aria-label": label, title: options[key][law[key]].help },
        ...Object.entries(options[key]).map(([v, o]) =>
          el("option", { value: v, selected: v === law[key], title: o.help }, o.title),
        ),
      );
      box.addEventListener("change", () => {
        law[key] = box.value;
        this.commit();
      });
      return el("label", {}, label, box);
    };
    const start = el(
      "select",
      { "aria-label": "start" },
      ...Object.entries(options.start).map(([v, o]) =>
        el("option", { value: v, selected: v === spec.start, title: o.help }, o.title),
      ),
    );
    start.addEventListener("change", () => this.restart({ start: start.value }));
    const count = (
      /** @type {"classes" | "per_class" | "seed"} */ key,
      /** @type {string} */ label,
      /** @type {number} */ low,
      /** @type {number} */ high,
    ) => {
      const box = el("input", {
        type: "number",
        "aria-label": label,
        min: low,
        max: high,
        step: 1,
        value: spec[key],
      });
      box.addEventListener("change", () => {
        const value = Math.round(Number(box.value));
        if (!Number.isFinite(value) || box.value === "") {
          box.value = String(this.spec[key]);
          return;
        }
        const to = { ...this.spec, [key]: Math.min(Math.max(value, low), high) };
        to.per_class = Math.min(to.per_class, Math.floor(limits.points / to.classes));
        this.restart({ classes: to.classes, per_class: to.per_class, seed: to.seed });
      });
      return [box, el("label", {}, label, box)];
    };
    const [seed] = count("seed", "seed", 0, 2 ** 31 - 1);
    const rate = control(
      {
        name: "step size",
        symbol: "\\eta",
        help: "way of a point per step and unit force; for RMSprop and Adam about the way itself",
        low: 0.001,
        high: 1,
        log: true,
        step: 0.001,
        default: 0.05,
      },
      law.step_size,
      {
        onInput: (/** @type {number} */ x) => {
          law.step_size = Math.min(Math.max(x, limits.rate[0]), limits.rate[1]);
        },
        onRest: () => this.commit(),
      },
    );
    setText(rate.querySelector(".symbol"), "η");
    const sides = el(
      "div",
      { class: "pills", role: "group", "aria-label": "which forces act" },
      ...Object.entries(options.side).map(([v, o]) =>
        el(
          "button",
          {
            "aria-pressed": String(v === law.side),
            title: o.help,
            onclick: () => {
              law.side = v;
              this.commit();
            },
          },
          v,
        ),
      ),
    );
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
    const [lossChoice, lossSliders] = lossPanel(this.schema, law, edit);
    const about = this.schema.losses[law.loss];
    lossChoice.append(
      formula(about.latex),
      el("p", { class: "caption" }, about.sentence, " ", el("small", {}, about.source)),
    );
    this.python = el("pre", { tabindex: 0 }, this.pythonText ?? "");
    this.files = ["npz", "json"].map((kind) =>
      el("a", { "data-kind": kind, download: true }, `History, ${kind === "npz" ? "npz" : "JSON"}`),
    );
    const section = (
      /** @type {string} */ name,
      /** @type {string} */ title,
      /** @type {Child[]} */ ...parts
    ) => (hidden.has(name) ? [] : [el("section", {}, title ? el("h4", {}, title) : "", ...parts)]);
    const focused = /** @type {ParentNode & Partial<ShadowRoot>} */ (
      this.root
    ).activeElement?.getAttribute("aria-label");
    this.side.replaceChildren(
      ...(hidden.has("loss") ? [] : [lossChoice, lossSliders]),
      ...section(
        "motion",
        "Motion",
        el(
          "div",
          { class: "fields" },
          choose("miner", "triplets"),
          choose("optimiser", "optimiser"),
          choose("normalise", "plane"),
        ),
        rate,
        sides,
      ),
      ...section(
        "start",
        "Start",
        el(
          "div",
          { class: "fields" },
          el("label", {}, "start", start),
          count("classes", "classes", 2, limits.classes)[1],
          count("per_class", "per class", 2, limits.per_class)[1],
          el(
            "label",
            {},
            "seed",
            el(
              "span",
              { class: "seed" },
              seed,
              el(
                "button",
                {
                  title: "another seed",
                  onclick: () => this.restart({ seed: (this.spec.seed + 1) % 2 ** 31 }),
                },
                "next",
              ),
            ),
          ),
        ),
      ),
      ...section(
        "shown",
        "Shown",
        el(
          "div",
          { class: "switches" },
          tick("trails", "trails", "the last 40 steps"),
          tick(
            "circles",
            "class circles",
            "about the mean of each class, through its farthest point",
          ),
          tick("arrows", "force arrows", "force on each point; length 34 F / (F + 1) pixels"),
        ),
      ),
      ...section(
        "take",
        "Take away",
        el(
          "div",
          { class: "take" },
          el("button", { onclick: () => this.figure() }, "Figure, PNG"),
          ...exportLinks(this.data.base, "charges", () => String(this.drawing()), {
            svg: "SVG",
            pdf: "PDF",
          }),
          ...this.files,
        ),
        el("details", {}, el("summary", {}, "Python that repeats this"), this.python),
      ),
    );
    /** @type {HTMLElement[]} */ ([...this.side.querySelectorAll("[aria-label]")])
      .find((e) => e.getAttribute("aria-label") === focused)
      ?.focus();
    this.links();
  }

  // ---- from Streamlit
  /** @param {ChargesData} data */
  async update(data) {
    await this.ready;
    if (newTheme(this)) {
      this.portraitSeen = null;
      this.invalidate();
    }
    const query = JSON.stringify(data.query);
    if (query !== this.query && query !== this.written) {
      this.query = query;
      this.goal = data.step;
      this.load(data.spec);
    }
    receiveFallback(this, data);
  }

  // ---- what is asked of Python
  /** @param {Partial<ChargesRequest>} more */
  ask(more = {}) {
    const { spec, history } = this,
      request = {
        id: ++this.seq,
        state: spec,
        have: history.last,
        want: Math.max(history.last, 0),
        show: this.at,
        ...more,
        rest: more.rest || this.needsLink,
      };
    this.revisions.set(request.id, [this.revision, Boolean(more.draft)]);
    this.link.send(request);
  }

  /** @param {ArrayBuffer} buffer */
  receive(buffer) {
    const answer = /** @type {ChargesAnswer} */ (decode(buffer)),
      [revision, draft] = this.revisions.get(answer.id) ?? [-1, false];
    this.answered = Math.max(this.answered, answer.id);
    for (const id of this.revisions.keys()) if (id <= answer.id) this.revisions.delete(id);
    if (revision !== this.revision) return;
    if (draft && !this.drafting) return;
    this.labels = answer.labels;
    if (draft) this.history.preview(answer);
    else this.history.add(answer);
    if (answer.query) {
      this.needsLink = false;
      this.remember(answer);
    }
    if (this.goal > this.at && !draft) {
      // a link into the middle of a history: fetch up to it
      this.at = Math.min(this.goal, this.history.last);
      if (this.at < this.goal) this.ask({ want: this.goal, show: this.goal });
      else {
        this.goal = 0;
        this.panel();
        this.ask({ rest: true });
      }
      this.message(this.goal ? `Computing step ${this.history.last} of ${this.goal} …` : "");
    }
    if (this.awaiting !== undefined && this.history.last >= this.awaiting)
      this.arrive(this.awaiting);
    this.prepare();
    this.invalidate();
  }

  // ---- time
  play() {
    if (this.playing || !this.history) return;
    this.playing = true;
    this.frameTimes = [];
    this.asked = -1;
    this.due = performance.now();
    this.playButton.textContent = "Pause";
    this.playButton.setAttribute("aria-label", "pause");
    this.tick();
  }

  pause(why = "") {
    this.awaiting = undefined;
    if (!this.playing) return;
    this.playing = false;
    this.playButton.textContent = "Play";
    this.playButton.setAttribute("aria-label", "play");
    this.message(why);
    this.rest();
  }

  tick() {
    if (!this.playing || this.closed) return;
    const now = performance.now();
    if (this.awaiting === undefined && now >= this.due && this.history.last >= 0 && !this.goal) {
      if (this.at >= this.options.limits.steps)
        return this.pause(
          `${this.at} steps: the history is full. Reset, or go back and change something.`,
        );
      this.due = Math.max(this.due + 1000 / this.speed, now - 100);
      if (this.at < this.history.last) this.arrive(this.at + 1);
      else this.awaiting = this.at + 1;
      this.prepare();
    }
    requestAnimationFrame(() => this.tick());
  }

  // Python computes the next step while this one is looked at.
  prepare() {
    const next = this.history.last + 1;
    if (
      !this.playing ||
      this.asked >= next ||
      next > Math.min(this.at + 1, this.options.limits.steps)
    )
      return;
    this.asked = next;
    this.ask({ want: next, show: next });
  }

  /** @param {number} step */
  arrive(step) {
    this.awaiting = undefined;
    this.at = step;
    this.frameTimes.push(performance.now());
    if (this.frameTimes.length > 20) this.frameTimes.shift();
    this.followLaw();
    this.invalidate();
    if (!this.playing) return this.rest();
    const before = this.history.at(step).measures.largest_step;
    if (step > 1 && before < STILL && this.history.at(step - 1).measures.largest_step < STILL) {
      const { active } = this.history.at(step).measures;
      this.pause(
        active > 0
          ? "Equilibrium: the forces balance and no point moves any more."
          : "At rest: no triplet is active, so no point feels a force.",
      );
    }
  }

  /** @param {number} by */
  step(by) {
    this.pause();
    const to = this.at + by;
    if (to < 0 || to > this.options.limits.steps) return;
    if (to <= this.history.last) this.to(to);
    else {
      this.awaiting = to;
      this.ask({ want: to, show: to });
    }
    this.rest();
  }

  /** @param {number} step */
  to(step) {
    this.at = Math.min(Math.max(step, 0), Math.max(this.history.last, 0));
    this.followLaw();
    if (!this.history.at(this.at)?.portrait) this.ask();
    this.invalidate();
  }

  reset() {
    this.pause();
    this.message("");
    this.to(0);
    this.rest();
  }

  // ---- what is changed
  /** @param {number} step */
  lawAt(step) {
    return this.spec.changes.filter((c) => c.at <= step && c.law).at(-1)?.law ?? this.spec.law;
  }
  followLaw() {
    if (JSON.stringify(this.lawAt(this.at)) !== this.lawSeen) this.panel();
  }

  // The spec with something changed at the step shown; what was to come after it is dropped.
  /** @param {{ law?: Law, moved?: Moved }} given */
  changed({ law, moved }) {
    const spec = clone(this.spec),
      k = this.at,
      kept = spec.changes.filter((c) => c.at < k),
      here = spec.changes.find((c) => c.at === k) ?? { at: k, law: null, moved: [] };
    if (k === 0 && law) {
      spec.law = clone(law);
      here.law = null;
    } else if (law)
      here.law = JSON.stringify(law) === JSON.stringify(this.lawAt(k - 1)) ? null : clone(law);
    if (moved)
      here.moved = [...here.moved.filter(([i]) => i !== moved[0]), moved].slice(
        -this.options.limits.moved,
      );
    spec.changes = [...kept, ...(here.law || here.moved.length ? [here] : [])];
    return spec;
  }

  /** @param {Moved} [moved] */
  draft(moved) {
    this.drafting ??= { played: this.playing };
    this.playing = false;
    this.awaiting = undefined;
    const spec = this.changed(moved ? { moved } : { law: this.law });
    this.ask({ state: spec, draft: true, have: this.at - 1, want: this.at, show: this.at });
  }

  /** @param {Moved} [moved] */
  commit(moved) {
    const played = this.drafting?.played ?? this.playing,
      spec = this.changed(moved ? { moved } : { law: this.law });
    this.drafting = null;
    this.playing = false;
    this.unpreset();
    if (spec.changes.length > this.options.limits.changes) {
      this.load({ ...spec, law: this.law, changes: [] });
      this.message(
        `A link keeps ${this.options.limits.changes} changes on the way: restarted with these settings.`,
      );
    } else {
      this.revision += 1;
      this.spec = spec;
      this.history.forget(this.at);
      this.panel();
      this.ask({ want: this.at, show: this.at, rest: true });
    }
    if (played) this.play();
    else this.stopped();
  }

  stopped() {
    this.playButton.textContent = "Play";
    this.playButton.setAttribute("aria-label", "play");
  }

  /** @param {Partial<Spec>} change */
  restart(change) {
    this.unpreset();
    const played = this.playing;
    this.load({ ...clone(this.spec), ...change, law: clone(this.lawAt(this.at)), changes: [] });
    if (played) this.play();
  }

  /** @param {Spec} spec */
  load(spec) {
    this.pause();
    this.revision += 1;
    this.spec = clone(spec);
    this.history = new History();
    this.at = 0;
    this.drafting = null;
    this.chosen = null;
    this.awaiting = undefined;
    this.message("");
    this.panel();
    this.needsLink = true; // a link, even if playing overtakes the question for it
    this.data = { ...this.data, idle: false };
    this.ask({ rest: true, want: 0, show: 0 });
  }

  /** @param {number} index */
  preset(index) {
    const { spec, caption } = this.options.presets[index];
    this.goal = 0;
    this.load(spec);
    this.unpreset();
    this.presets.querySelector(`[data-preset="${index}"]`)?.setAttribute("aria-pressed", "true");
    this.presetText.textContent = caption;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  unpreset() {
    this.presetText.textContent = "";
    for (const b of this.presets.querySelectorAll("[data-preset]"))
      b.setAttribute("aria-pressed", "false");
  }

  // A gesture has ended: the link, the script, and the numbers for those who listen.
  rest() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.closed) return;
      this.ask({ rest: true });
      const frame = this.history.at(this.at);
      if (frame)
        this.live.textContent = `step ${this.at}, loss ${number(frame.measures.loss)}, MAP@R ${number(frame.measures.map_at_r)}`;
    }, 150);
  }

  /** @param {ChargesAnswer} chargesAnswer */
  remember({ query, python }) {
    const kept = new URLSearchParams(location.search),
      address = new URLSearchParams(query);
    for (const name of ["hide", "socket"])
      if (kept.has(name)) address.set(name, kept.get(name) ?? "");
    if (this.at > 0 && !this.playing) address.set("step", String(this.at));
    this.written = JSON.stringify(query);
    this.pythonText = python ?? "";
    if (this.python) this.python.textContent = this.pythonText;
    const text = address.toString();
    this.address = new URLSearchParams({ ...query, step: String(this.at) }).toString();
    this.links();
    if (!(this.data.idle && this.playing))
      window.history.replaceState(
        window.history.state,
        "",
        `${location.pathname}${text && "?"}${text}${location.hash}`,
      );
  }

  // The step under the eye, drawn as it is shown.
  drawing() {
    const query = new URLSearchParams(this.address ?? location.search),
      flags = { ...this.shown, dark: this.theme === "dark" };
    query.set("step", String(this.at));
    for (const [name, on] of Object.entries(flags)) query.set(name, String(Number(on)));
    return query;
  }

  links() {
    const base = new URL(this.data.base, location.href);
    for (const a of this.files ?? [])
      a.href = new URL(`api/charges/history.${a.dataset.kind}?${this.address ?? ""}`, base).href;
  }

  /** @param {string} text */
  message(text) {
    this.said = text;
    this.tell();
  }
  tell(cut = "") {
    this.notice.textContent = [
      this.said || cut,
      this.link.fallback ? "No direct connection: steps come through the page itself, slower." : "",
    ]
      .filter(Boolean)
      .join(" ");
  }

  // ---- the hand
  /** @param {PointerEvent} event */
  nearest(event) {
    const box = this.canvas.getBoundingClientRect(),
      frame = this.history.at(this.at);
    if (!frame) return null;
    const at = toPixels(this.half, this.size),
      px = event.clientX - box.left,
      py = event.clientY - box.top;
    let best = null,
      least = event.pointerType === "touch" ? 24 : 13;
    for (let i = 0; i < this.labels.length; i++) {
      const [x, y] = at(frame.positions[2 * i], frame.positions[2 * i + 1]),
        d = Math.hypot(x - px, y - py);
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  /** @param {PointerEvent} event */
  hover(event) {
    if (!this.held) this.frame.classList.toggle("near", this.nearest(event) !== null);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const index = this.nearest(event);
    this.frame.focus({ preventScroll: true });
    if (index === null) {
      this.chosen = null;
      return this.invalidate();
    }
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect(),
      half = this.half,
      played = this.playing;
    this.playing = false;
    this.held = true;
    this.chosen = index;
    this.drafting = { played };
    this.frame.classList.add("held");
    this.canvas.setPointerCapture(event.pointerId);
    /** @type {Moved | null} */
    let last = null;
    const move = (/** @type {PointerEvent} */ e) => {
      const clip = (/** @type {number} */ v) => Math.min(Math.max(v, 0), this.size),
        [x, y] = fromPixels(half, this.size)(clip(e.clientX - box.left), clip(e.clientY - box.top));
      last = [index, Number(x.toFixed(4)), Number(y.toFixed(4))];
      this.history.lay(this.at, last);
      this.invalidate();
      this.draft(last);
    };
    const end = () => {
      for (const [name, act] of /** @type {const} */ ([
        ["pointermove", move],
        ["pointerup", end],
        ["pointercancel", end],
      ]))
        this.canvas.removeEventListener(name, act);
      this.held = false;
      this.frame.classList.remove("held");
      if (last) return this.commit(last);
      this.drafting = null;
      if (played) this.play();
      else this.invalidate();
    };
    for (const [name, act] of /** @type {const} */ ([
      ["pointermove", move],
      ["pointerup", end],
      ["pointercancel", end],
    ]))
      this.canvas.addEventListener(name, act);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
        event.key
      ],
      n = this.labels?.length ?? 0;
    if (event.key === " ") {
      if (this.playing) this.pause();
      else this.play();
    } else if (event.shiftKey && arrow && this.chosen !== null) {
      const { positions } = this.history.at(this.at),
        by = this.half / 40,
        [x, y] = positions.subarray(2 * this.chosen);
      this.commit([
        this.chosen,
        Number((x + by * arrow[0]).toFixed(4)),
        Number((y + by * arrow[1]).toFixed(4)),
      ]);
    } else if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "ArrowRight") this.step(1);
    else if (event.key === "Home") this.reset();
    else if (event.key === "End") this.to(this.history.last);
    else if (event.key === "," || event.key === ".") {
      this.chosen =
        ((this.chosen ?? (event.key === "." ? -1 : 0)) + (event.key === "." ? 1 : -1) + n) % n;
      const { positions } = this.history.at(this.at);
      this.live.textContent = `point ${this.chosen}, class ${this.labels[this.chosen] + 1}, at ${number(positions[2 * this.chosen])}, ${number(positions[2 * this.chosen + 1])}`;
      this.invalidate();
    } else return;
    event.preventDefault();
  }

  // ---- drawing
  resize() {
    this.size = this.frame.clientWidth;
    fit([this.canvas, this.portrait, ...this.curves.canvases]);
    this.portraitSeen = null;
    this.invalidate();
  }

  invalidate() {
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      if (!this.closed && this.size && this.history.at(this.at)) this.paint();
    });
  }

  paint() {
    const { history, at, theme } = this,
      frame = history.at(at),
      m = frame.measures,
      ctx = drawing(this.canvas);
    if (!this.held) this.half = halfWidth(frame.positions);
    paintCharges(ctx, this.size, history, at, this.labels, this.shown, theme, {
      half: this.half,
      chosen: this.chosen,
      circle: this.lawAt(at).normalise !== "none",
    });
    this.curves.paint(history, at, theme, CLASS[theme]);
    if (frame.portrait && this.portraitSeen !== frame.portrait) {
      this.portraitSeen = frame.portrait;
      paintPortrait(
        drawing(this.portrait),
        this.portrait.clientWidth,
        this.portrait.clientHeight,
        frame.portrait,
        theme,
      );
      this.tellPortrait(frame.portrait);
    }
    this.scrub.max = String(Math.max(history.last, at));
    this.scrub.value = String(at);
    const rate = this.playing ? pace(this.frameTimes) : null;
    this.clock.textContent = `step ${at}${rate ? `, ${rate}/s` : ""}`;
    /** @type {[string, number][]} */
    const rows = [
      ["loss", m.loss],
      ["active", m.active],
      ["mean pull", m.pull],
      ["mean push", m.push],
      ["MAP@R", m.map_at_r],
      ["covering", m.covering],
    ];
    readouts(this.readout, [
      ...rows.map(([name, v]) => /** @type {[string, string]} */ ([name, number(v)])),
      ["triplets", frame.triplets.toLocaleString("en")],
    ]);
    this.canvas.setAttribute(
      "aria-label",
      `${this.labels.length} points of ${frame.radii.length} classes at step ${at}: loss ${number(m.loss)}, active ${number(m.active)}, MAP@R ${number(m.map_at_r)}, class radii ${[...frame.radii].map(number).join(", ")}`,
    );
    this.tell(
      frame.capped
        ? `${frame.capped} point${frame.capped > 1 ? "s" : ""} would have moved farther than ${this.options.limits.stride} in this step: cut there.`
        : "",
    );
    this.canvas.dataset.step = String(at);
    this.canvas.dataset.half = String(this.half);
    this.canvas.dataset.seq = String(++this.painted);
  }

  /** @param {Portrait} p */
  tellPortrait(p) {
    this.outer.style.display = p.outer.length ? "" : "none";
    this.inner.style.display = p.inner.length ? "" : "none";
    const assumed = [p.third_edge && "d(p, n) = d(a, n)", p.norms && "|a| = |p| = |n| = 1"].filter(
      Boolean,
    );
    const share = `${(100 * p.violated).toFixed(1)} % of ${p.valid.toLocaleString("en")} triplets have a negative nearer than the positive.`;
    const note = assumed.length
      ? `This loss depends on more than the two distances: its lines are drawn for ${assumed.join(" and ")}.`
      : "";
    this.portraitText.textContent = [
      share,
      "Darker, or lighter on dark: more triplets, on a logarithmic scale.",
      note,
    ]
      .filter(Boolean)
      .join(" ");
    this.portrait.setAttribute(
      "aria-label",
      `phase portrait over distances 0 to ${p.reach}: ${share} ${note}`,
    );
  }

  figure() {
    const copy = Object.assign(document.createElement("canvas"), { width: 1400, height: 1400 }),
      ctx = drawing(copy),
      size = 700;
    ctx.setTransform(2, 0, 0, 2, 0, 0);
    paintCharges(ctx, size, this.history, this.at, this.labels, this.shown, this.theme, {
      half: this.half,
      chosen: null,
      circle: this.lawAt(this.at).normalise !== "none",
    });
    copy.toBlob((blob) =>
      save(`charges-${this.spec.start}-${this.spec.seed}-${this.at}.png`, blob),
    );
  }

  close() {
    this.closed = true;
    this.playing = false;
    clearTimeout(this.telling);
    document.removeEventListener("visibilitychange", this.leave);
    this.observer?.disconnect();
    this.link.close();
  }
}

export const { render, unmount } = defineComponent(Charges);
