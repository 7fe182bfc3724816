// GAP vs GSP page: two training runs on the same tokens, computed by Python step by step and shown
// side by side on one clock.
/** @import { Frame, GapAnswer, GapData, Limit, Measure, Setting, Settings, Shown, Side, Study } from "./types.js" */
/** @import { Context, Ink, Theme } from "../../kit/types.js" */
import { defineComponent } from "../../kit/component.js";
import { control } from "../../kit/controls.js";
import { drawing, el, save, setText } from "../../kit/dom.js";
import { INK } from "../../kit/colours.js";
import { brief } from "../../kit/plot.js";
import { numberBox, seedField, tick, transport } from "../../kit/timeline/parts.js";
import { Player, clone } from "../../kit/timeline/player.js";
import { fit } from "../../kit/screen.js";
import { Story } from "../story/story.js";
import { GapCurves, MEASURES } from "./curves.js";
import { OWN, classAt, colourOf, paintPlane } from "./draw.js";
import { History, SIDES } from "./history.js";
import { verdict } from "./verdict.js";

const TITLES = { gap: "GAP: the plain average", gsp: "GSP: a learned gate, then the average" };
/** @param {number} x */
const percent = (x) => (Number.isFinite(x) ? `${(100 * x).toFixed(1)} %` : "–");

/** @typedef {(ctx: CanvasRenderingContext2D, ink: Ink, theme: Theme) => void} Sign */

/** @extends {Player<Study, GapData, GapAnswer, History, Settings>} */
class GapOrGsp extends Player {
  /** @type {{ side: Side; canvas: HTMLCanvasElement; frame: HTMLDivElement; score: HTMLElement; whole: HTMLElement; }[]} */
  planes;
  /** @type {HTMLButtonElement[]} */
  chips;
  words = el("p", { class: "caption about" });
  curves = new GapCurves(
    (step) => this.scrubTo(step),
    () => this.rest(),
  );
  cells = /** @type {Record<Side, Record<Measure, HTMLElement>>} */ (
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
  /** @type {HTMLAnchorElement} */
  numbers;
  /** @type {number} */
  size;
  /** @type {string} */
  signsFor;
  unasked = false; // true until the visitor touches the page
  /** @type {number | null} */
  over = null; // class under the pointer
  paintedAt = 0;
  panels = 0;
  story = new Story(this, "gap_vs_gsp", {
    back: ["transport", "a gate"],
    next: ["collage", "on images"],
  });
  shown = { hulls: true, samples: true, prototypes: true };
  /** @type {Uint8Array} */
  labels;
  /** @type {(readonly [HTMLAnchorElement, HTMLPreElement])[]} */
  runs = [];
  /** @type {Record<Side, string> | undefined} */
  tomls;
  /** @type {[canvas: HTMLCanvasElement, draw: Sign][]} */
  signed = [];

  /**
   * @param {ParentNode} root
   * @param {GapData} data
   */
  constructor(root, data) {
    super(root, data, { api: "api/gap_or_gsp", module: import.meta.url, ahead: 3 });
    /** @type {number | null} */
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

  /** @param {GapData} data */
  start(data) {
    super.start(data);
    this.unasked = this.playing;
    const touched = () => {
      this.unasked = false;
    };
    for (const gesture of ["pointerdown", "keydown"])
      this.whole.addEventListener(gesture, touched, { capture: true });
  }

  // ---- elements
  dom() {
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
        const found = this.classUnder(e, canvas, side);
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
    const pair = el(
      "div",
      {
        class: "pairing",
        tabindex: 0,
        role: "group",
        "aria-label":
          "both training runs: space plays and pauses, left and right arrows step, home goes to the start, end to the last step, comma and full stop choose a class, escape none",
      },
      ...this.planes.map((plane) => plane.whole),
    );
    pair.addEventListener("keydown", (e) => this.key(e));
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
    const table = el(
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
    this.curves.whole.append(table);
    const stage = el(
      "div",
      { class: "stage" },
      el(
        "div",
        { class: "main" },
        pair,
        transport(this, "step"),
        this.story.whole,
        this.notice,
        el(
          "div",
          { class: "chips", role: "group", "aria-label": "highlighted class" },
          el("small", {}, "Class"),
          ...this.chips,
        ),
        this.words,
        this.live,
        this.curves.whole,
      ),
      this.side,
    );
    const presets = this.hidden.has("presets") ? "" : this.presets.row;
    return el("div", { class: "lab" }, presets, this.presets.text, stage);
  }

  controls() {
    const { options, state, hidden, now } = this,
      { limits } = options;
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
    /** @type {(name: Setting, label: string, title: string, caption: string) => HTMLElement[]} */
    const number = (name, label, title, caption) =>
      hidden.has(name)
        ? []
        : [
            el(
              "label",
              { class: "field" },
              caption,
              numberBox(this, name, label, limits[name], title),
            ),
          ];
    const show = (
      /** @type {keyof Shown} */ key,
      /** @type {string} */ text,
      /** @type {string} */ title,
    ) => tick(this.shown, key, text, title, () => this.invalidate());
    let tau = state.tau;
    const threshold = control(
      {
        name: "active from",
        symbol: "τ",
        help: "Minimum percentage of a class's pooling weight for a token to enter the hull of the class",
        low: 0.1,
        high: 12,
        step: 0.05,
        default: 5,
      },
      100 * state.tau,
      {
        onInput: (/** @type {number} */ x) => {
          tau = bound("tau", x / 100);
        },
        onRest: () => this.rehull(tau),
      },
    );
    setText(threshold.querySelector(".symbol"), "τ");
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
    this.links();
    return [
      ...this.section(
        "pooling",
        "Gate of GSP",
        running(
          "mu",
          "μ",
          "Pooled share: share of each bag's mass that is pooled; at 1, GSP equals GAP",
          {
            low: 0.05,
            high: 1,
            step: 0.01,
          },
        ),
        running("epsilon", "ε", "Gate hardness: large values select only tokens near a prototype", {
          low: 0.5,
          high: 200,
          log: true,
        }),
        ...number(
          "prototypes",
          "prototypes",
          "Learned points to which the gate compares tokens; a new number restarts training",
          "prototypes m",
        ),
        ...number(
          "warmup",
          "warm-up",
          `Steps of plain averaging before the prototypes are chosen from ${options.memory} pooled vectors`,
          "warm-up, steps",
        ),
      ),
      ...this.section(
        "training",
        "Training (both sides)",
        running(
          "rate",
          "η",
          "Learning rate: of Adam, in 10⁻⁴",
          { low: 0.1, high: 100, log: true },
          1e-4,
        ),
        running(
          "margin",
          "m⁻",
          "Margin: the contrastive loss pushes bags of different classes apart up to this distance",
          { low: 0.02, high: 0.8, step: 0.005 },
        ),
        ...(hidden.has("seed")
          ? []
          : [seedField(this, "Seed of the initial tokens, the bags and their order")]),
      ),
      ...this.section(
        "shown",
        "Shown",
        hidden.has("tau")
          ? []
          : [
              el(
                "div",
                { class: "named" },
                el("span", {}, "minimum weight of a used token, %"),
                threshold,
              ),
            ],
        el(
          "div",
          { class: "switches" },
          show("hulls", "class hulls", "Convex hull of the tokens that count"),
          show("samples", "bags", "Pooled vector of each validation bag shown"),
          show("prototypes", "prototypes", "Prototypes of GSP, once they are placed"),
        ),
      ),
      ...this.section("legend", "Signs", this.keySymbols()),
      ...this.section(
        "take",
        "Export",
        el("div", { class: "pills" }, figure, this.numbers, ...this.runs.map(([a]) => a)),
        el(
          "details",
          {},
          el("summary", {}, "Open as runs"),
          el(
            "p",
            { class: "caption" },
            "Spec files with the current settings, for the command line:",
          ),
          el(
            "pre",
            { tabindex: 0, "aria-label": "command line" },
            SIDES.map((side) => `python -m dmlcore train tokens-${side}.toml`).join("\n"),
          ),
          ...this.runs.map(([, pre]) => pre),
        ),
      ),
    ];
  }

  keySymbols() {
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
      sign((ctx, ink) => diamond(ctx, ink, false), "hollow: hardly used by the chosen class"),
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
      }, `limit of token coordinates, ±${this.options.bound}`),
    );
  }

  // ---- messages from Python
  /** @param {GapAnswer} answer */
  onAnswer({ labels }) {
    this.labels = labels;
  }

  /** @param {number} step */
  arrive(step) {
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

  // Show hulls for another threshold; the training runs stay the same.
  /** @param {number} tau */
  rehull(tau) {
    const { at, playing } = this;
    if (tau === this.state.tau) return;
    this.load({ ...clone(this.state), tau }, at);
    if (playing) this.play();
  }

  onStateReplaced() {
    if ((this.chosen ?? 0) >= this.state.classes) this.chosen = null;
    this.over = null;
  }

  get sentence() {
    return this.options.sentence;
  }

  // ---- link
  describeStep() {
    const frame = this.history.at(this.at);
    return frame
      ? `step ${this.at}, MAP@R of GAP ${brief(frame.gap.held.map_at_r)}, of GSP ${brief(frame.gsp.held.map_at_r)}`
      : "";
  }

  /** @param {GapAnswer} answer */
  onLink({ runs }) {
    this.tomls = runs;
    this.runs.forEach(([, pre], i) => setText(pre, runs?.[SIDES[i]] ?? ""));
    this.links();
  }

  /** @returns {Record<string, string>} */
  marks() {
    return this.chosen === null ? {} : { class: String(this.chosen + 1) };
  }

  links() {
    this.numbers.href = this.file("curves.csv");
    this.runs.forEach(([a], i) => {
      a.href = this.file(`tokens-${SIDES[i]}.toml`);
    });
  }

  // ---- highlighted class
  get highlighted() {
    return this.over ?? this.chosen;
  }

  /**
   * @param {PointerEvent} event
   * @param {HTMLCanvasElement} canvas
   * @param {Side} side
   */
  classUnder(event, canvas, side) {
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
    const found = this.classUnder(event, canvas, side);
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

  /** @param {number} by */
  turn(by) {
    const n = this.state.classes;
    this.choose(((this.chosen ?? (by > 0 ? -1 : 0)) + by + n) % n);
  }

  // ---- drawing
  resize() {
    this.size = this.planes[0].frame.clientWidth;
    fit([...this.planes.map((p) => p.canvas), ...this.curves.canvases]);
    this.invalidate();
  }

  // Paint the planes in every frame; while playing, curves and numbers only ten times a second.
  paint() {
    const { history, at, theme, highlighted } = this,
      frame = history.at(at),
      now = performance.now();
    if (!frame || !this.size) return;
    for (const { side, canvas } of this.planes) {
      paintPlane(
        drawing(canvas),
        this.size,
        frame[side],
        this.labels,
        { chosen: highlighted, shown: this.shown, bound: this.options.bound },
        theme,
      );
    }
    if (!this.playing || now - this.paintedAt >= 100) {
      this.paintedAt = now;
      this.paintNumbers(frame);
    }
    for (const { canvas } of this.planes) canvas.dataset.step = String(at);
  }

  /** @param {Frame} frame */
  paintNumbers(frame) {
    const { history, at, theme, highlighted } = this;
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
      [...this.state.changes.map((c) => c.at), ...history.placedAt],
      theme,
    );
    const { mu, epsilon } = this.settingsAt(at);
    this.story.tell(
      verdict(frame, history.at(0), at, this.playing || at < this.options.limits.unasked),
      new URLSearchParams({ mu: String(mu), epsilon: String(epsilon) }).toString(),
    );
    this.progress();
    setText(this.words, highlighted === null ? this.options.hint : this.tellClass(highlighted));
    const signs = `${theme} ${this.chosen} ${this.panels} ${this.state.classes}`;
    if (this.signsFor === signs) return;
    this.signsFor = signs;
    this.chips.forEach((chip, label) => {
      chip.hidden = label >= this.state.classes;
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

  // Return a figure of both planes as shown, with their numbers.
  figure() {
    const [a, b] = this.planes.map((p) => p.canvas),
      gap = 24,
      head = 56,
      whole = el("canvas", { width: a.width + b.width + gap, height: a.height + head }),
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
}

export const { render, unmount } = defineComponent(GapOrGsp);
