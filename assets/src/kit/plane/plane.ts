// Fields page: owns the scene, the plane and its panels; all numbers come from Python.
import type { Field, FieldData, HoverAnswer, Scene } from "./types.ts";
import type { Hyper, Motion, Place, Schema, SetState, Theme } from "../types.ts";
import {
  receiveFallback,
  loadStyles,
  defineComponent,
  newTheme,
  paintScale,
} from "../component.ts";
import { carry } from "../carry.ts";
import { drawing, el, readouts, save, show, stateOf, still, tidy, writeAddress } from "../dom.ts";
import { POINTS, rampColour, signedColour } from "../colours.ts";
import { keyMark } from "../controls.ts";
import { LandscapeSlot } from "../landscape_slot.ts";
import { pointHandles } from "../points.ts";
import { fit } from "../screen.ts";
import { Link, decode, firstId, socketAddress } from "../socket.ts";
import { paint, rasterise } from "./paint.ts";
import { fromPixels, toPixels } from "./view.ts";
import { cutChart, lawsChart } from "./charts.tsx";
import { Explain } from "./explain.tsx";
import { Hand } from "./pointer.ts";
import { controlPanel } from "./control_panel.tsx";
import { Lessons } from "./lessons.tsx";
import { showNotice } from "./notice.tsx";
import { wayOut } from "./way_out.ts";

const FINE = 81,
  COARSE = 41,
  SLOW = 24; // nodes per side during a gesture; coarse once answers take more than SLOW ms
const RESTING = 201,
  MODEST = 101; // nodes per side at rest

// Plane with one scene. Other pages show their scenes on this plane by overriding route, extra,
// kept and defaults.
export class Fields<D extends FieldData = FieldData> {
  root: HTMLElement;
  data: D;
  scene: Scene;
  query: string;
  hidden: Set<string>;
  menus: Record<string, Record<string, string>>;
  batch: { B: number; C: number };
  seq: number;
  trip: number;
  link: Link<object>;
  dropCarry: (() => void) | undefined;
  landscape: LandscapeSlot;
  ready: Promise<void>;
  answered: number;
  undone: string[];
  done: string[];
  schema: Schema;
  hand: Hand;
  panel: ReturnType<typeof controlPanel>;
  explain: Explain;
  lessons: Lessons;
  whole: HTMLDivElement;
  canvas = el("canvas", {
    class: "plane",
    tabindex: 0,
    role: "img",
    "aria-label": "force field of the triplet loss",
  });
  handles = pointHandles();
  ends = [0, 1].map((i) =>
    el("button", {
      class: "handle end",
      title: "Drag this end of the cut, or move it with the arrow keys",
      "data-end": i,
    }),
  );
  undoButton: HTMLButtonElement;
  redoButton: HTMLButtonElement;
  tip = el("div", { class: "tip", hidden: true });
  notice = el("div", { class: "notice" });
  frame: HTMLDivElement;
  scaleBar = el("canvas", { width: 110, height: 1 });
  scaleLow: HTMLSpanElement;
  scaleText: HTMLSpanElement;
  shadeText: HTMLSpanElement;
  readout = el("div", { class: "readout" });
  live = el("div", { class: "hidden", "aria-live": "polite" });
  legend: HTMLDivElement;
  keys: {
    bar: HTMLSpanElement;
    outer: HTMLSpanElement;
    clamp: HTMLSpanElement;
    none: HTMLSpanElement;
  };
  scale: number | null;
  reference: number | null;
  sentAt: Map<number, number>; // time at which each request was sent
  field: Field;
  forceScale: number;
  lagging: number;
  numbersTime: number;
  spoken: Field | undefined; // field whose numbers are shown, on the arrows as in the tables
  tools: HTMLDivElement;
  landscapeButton: HTMLButtonElement;
  charted: number;
  rasters: { colour: OffscreenCanvas | undefined; veil: OffscreenCanvas | undefined };
  bring: Place | null = null;
  summary: string;
  size: number;
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
  painting: number;
  frameRequest: number | null;
  telling: number;
  theme: Theme;
  setState: SetState;

  constructor(root: HTMLElement, data: D) {
    this.root = root;
    this.data = data;
    this.scene = structuredClone(data.scene);
    this.query = data.query;
    this.hidden = new Set(data.hide);
    this.menus = data.menus;
    this.batch = { B: 32, C: 4 };
    this.seq = this.answered = firstId();
    this.trip = 0;
    this.undone = [];
    this.done = [];
    this.link = new Link(
      socketAddress(data, this.route),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    if (data.carry)
      this.dropCarry = carry(data.base + data.carry, () => `from=plane&${this.query ?? ""}`);
    this.landscape = new LandscapeSlot(this, {
      page: "field",
      pair: false,
      put: (box) => this.placeLandscape(box),
    });
    this.ready = this.build(data);
  }

  get sphere(): number | null | undefined {
    return 1;
  } // radius of the circle that points snap to
  get route() {
    return "api/field";
  }
  get keptParameters() {
    return ["hide", "socket", "grid"];
  } // parameters of the link in addition to the scene
  extra() {
    return {};
  } // fields of each request in addition to the scene
  get pans() {
    return true;
  } // called when dragging starts on the background: moves the view

  async build(data: D) {
    this.schema = await loadStyles(this.root, "kit/plane/plane.css");
    this.hand = new Hand(this);
    this.panel = controlPanel(this);
    this.explain = new Explain(this);
    this.lessons = new Lessons(this);
    this.root.append((this.whole = this.dom()));
    this.onTheme();
    this.done.push(this.state());
    new ResizeObserver(() => this.resize()).observe(this.frame);
    this.resize();
    this.rebuild();
    this.ask(FINE);
    if (data.idle && !still()) this.lessons.orbit();
    else this.ask(RESTING);
    this.landscape.follow(true);
  }

  dom() {
    const tool = (label: string, name: string, act: () => void) =>
      el("button", { "aria-label": name, title: name, onclick: act }, label);
    this.undoButton = tool("↶", "undo (Ctrl+Z)", () => this.undo());
    this.redoButton = tool("↷", "redo (Ctrl+Shift+Z)", () => this.redo());
    this.tools = el(
      "div",
      { class: "zoom" },
      this.undoButton,
      this.redoButton,
      tool("+", "zoom in", () => this.hand.zoom(1 / 1.25)),
      tool("−", "zoom out", () => this.hand.zoom(1.25)),
      tool("⤢", "show all points", () => this.hand.fit()),
    );
    this.frame = el(
      "div",
      { class: "frame" },
      this.canvas,
      ...this.ends,
      ...Object.values(this.handles),
      this.tip,
      this.notice,
      this.tools,
    );
    this.landscapeButton = el(
      "button",
      {
        class: "in-space",
        title: "Show the loss as a surface, with a marble that follows the force",
        onclick: () => {
          this.touch();
          this.scene.landscape = !this.scene.landscape;
          this.rest();
        },
      },
      "Landscape in 3-D",
    );
    [this.scaleLow, this.scaleText, this.shadeText] = [el("span"), el("span"), el("span")];
    this.keys = {
      bar: el(
        "span",
        { class: "bar" },
        this.shadeText,
        this.scaleLow,
        this.scaleBar,
        this.scaleText,
      ),
      outer: keyMark("", "loss = 0"),
      clamp: keyMark("dashed", "upper clamp"),
      none: keyMark("hatched", "no force"),
    };
    this.legend = el(
      "div",
      { class: "below" },
      ...Object.values(this.keys),
      ...(this.data.landscape && !this.hidden.has("shown") ? [this.landscapeButton] : []),
    );
    this.hand.attach(this.canvas, this.handles, this.ends);
    const whole = el(
      "div",
      { class: "lab" },
      el(
        "div",
        { class: "stage" },
        el(
          "div",
          { class: "left" },
          this.lessons.row,
          this.frame,
          this.legend,
          this.readout,
          this.explain.cutBox,
          this.live,
        ),
        this.panel.side,
        ...(this.hidden.has("explain") ? [] : [this.explain.side]),
      ),
    );
    whole.addEventListener("keydown", (e) => {
      if (
        !(e.ctrlKey || e.metaKey) ||
        e.key.toLowerCase() !== "z" ||
        (e.target as Element).matches("input[type=number], input[type=text]")
      )
        return;
      e.preventDefault();
      if (e.shiftKey) this.redo();
      else this.undo();
    });
    return whole;
  }

  // ---- the scene
  rebuild() {
    this.panel.build();
    this.explain.build();
    this.colourBar();
    this.sync();
  }

  // Show a scene or change parts of it: a preset, a step of the tour, a link.
  put(part: Partial<Scene>, { keepScale = false } = {}) {
    this.touch();
    this.scene = { ...this.scene, ...structuredClone(part) };
    if (part.loss && part.hyper === undefined) this.scene.hyper = this.defaults(part.loss);
    if (!keepScale) this.scale = this.reference = null;
    this.rebuild();
    this.rest();
  }

  defaults(loss: string) {
    return Object.fromEntries(
      this.schema.losses[loss].controls.map((c) => [c.name, c.default ?? null]),
    );
  }
  // Return the initial kind of margin of a loss. A normalised margin, which Python computes, keeps
  // the field active while other parameters change.
  margin(loss: string): Pick<Scene, "margin" | "mu"> {
    const names = this.schema.losses[loss].controls.map((c) => c.name),
      has = ["s", "r", "rho", "m1"].every((name) => names.includes(name));
    return { margin: has ? "normalised" : "raw", mu: null };
  }
  parameters() {
    const { loss } = this.scene;
    return { hyper: this.defaults(loss), ...this.margin(loss) };
  }
  // Return the initial points and view.
  atHome() {
    const { anchor, positive, negative, view } = this.schema.plain;
    return { anchor, positive, negative, view };
  }
  reset() {
    const { probe, snap } = this.schema.plain;
    this.lessons.preset = undefined;
    this.put({ ...this.parameters(), ...this.atHome(), probe, snap });
  }
  resetButton() {
    const title = "Reset parameters, points and view",
      button = el("button", { class: "reset", title, onclick: () => this.reset() }, "Reset");
    return this.hidden.has("reset") ? [] : [button];
  }
  state() {
    return JSON.stringify(this.scene);
  }

  undo() {
    if (this.done.length > 1) {
      this.undone.push(this.done.pop() as string);
      this.revive(this.done[this.done.length - 1]);
    }
  }
  redo() {
    const next = this.undone.pop();
    if (next) {
      this.done.push(next);
      this.revive(next);
    }
  }
  revive(state: string) {
    this.touch();
    this.scene = JSON.parse(state);
    this.scale = this.reference = null;
    this.rebuild();
    this.rest(false);
  }

  remember() {
    const state = this.state();
    if (state === this.done.at(-1)) return;
    this.done.push(state);
    if (this.done.length > 100) this.done.shift();
    this.undone = [];
  }

  // ---- messages from Streamlit
  async update(data: D) {
    await this.ready;
    this.onTheme();
    if (data.query !== this.data.query && data.query !== this.query) {
      // the link changed on the Python side
      this.scene = structuredClone(data.scene);
      this.query = data.query;
      this.hidden = new Set(data.hide);
      this.scale = this.reference = null;
      this.rebuild();
      this.ask(RESTING);
      this.landscape.follow(true);
    }
    this.data = data;
    receiveFallback(this, data);
  }

  onTheme() {
    if (!newTheme(this)) return;
    if (this.field) this.rasterise();
    this.colourBar();
    this.sync();
    if (this.field) this.charts();
    if (this.landscape.shown) this.landscape.follow(true);
  }

  colourBar() {
    paintScale(this.scaleBar, (t) =>
      this.scene.shade === "raw" ? signedColour(2 * t - 1, this.theme) : rampColour(t, this.theme),
    );
  }

  // ---- messages from Python
  receive(buffer: ArrayBuffer) {
    const answer = decode(buffer) as Field | HoverAnswer;
    if (answer.hover) return this.hand.showTip(answer.hover);
    if (answer.id < this.answered) return;
    this.trip =
      0.8 * this.trip +
      0.2 * (performance.now() - (this.sentAt?.get(answer.id) ?? performance.now()));
    this.sentAt = new Map([...(this.sentAt ?? [])].filter(([id]) => id > answer.id));
    this.answered = answer.id;
    this.field = answer;
    this.rasterise();
    this.scale = answer.scale;
    this.reference = answer.reference;
    const { scene } = this;
    if (scene.margin === "normalised") {
      scene.hyper.m1 = answer.m1;
      if (scene.mu === null && answer.id === this.seq) {
        scene.mu = answer.mu;
        this.panel.build();
        this.panel.show();
      }
    } else if (answer.mu !== null) scene.mu = answer.mu;
    const largest = Math.max(
      ...answer.forces.concat(answer.residuals).map(([x, y]: number[]) => Math.hypot(x, y)),
      ...Object.values(answer.strengths).map(Math.abs),
      1e-9,
    );
    const fitting = 130 / largest;
    if (!this.forceScale || !(this.forceScale / fitting > 0.4 && this.forceScale / fitting < 1.5))
      this.forceScale = fitting;
    this.updateNumbers(answer.query !== undefined);
    if (answer.query) {
      this.writeLink(answer.query);
      this.adopt(answer.hyper);
    }
    this.invalidate(answer.id);
  }

  // Update the numbers next to the plane ten times a second. Charts follow sliders at that rate,
  // but dragged points, which leave most curves unchanged, less often: without a GPU repainting
  // charts costs the plane frames.
  updateNumbers(now: boolean) {
    const time = performance.now(),
      { numbersTime: told = 0, charted = 0 } = this;
    clearTimeout(this.lagging);
    if (!now && time - told < 100) {
      this.lagging = setTimeout(() => this.updateNumbers(false), 100);
      return;
    }
    this.numbersTime = time;
    this.spoken = this.field;
    this.numbers();
    this.invalidate();
    this.panel.show();
    this.explain.numbers(this.field);
    if (!now && time - charted < (this.hand.busy ? 400 : 90)) return;
    this.charted = time;
    this.charts();
  }

  rasterise() {
    this.rasters = rasterise(this.field, this.theme, this.field.signed);
  }

  charts() {
    lawsChart(this.explain.laws, this.field, this.theme);
    this.explain.cutBox.hidden = !this.field.cut;
    if (this.field.cut) cutChart(this.explain.cut, this.field, this.scene, this.theme);
  }

  ask(n: number) {
    const { scene, scale, reference } = this,
      id = ++this.seq,
      settle = n === RESTING;
    (this.sentAt ??= new Map()).set(id, performance.now());
    this.link.send({
      id,
      scene,
      n: settle && this.trip > SLOW ? MODEST : n,
      scale,
      reference,
      settle,
      ...(settle && this.explain.margins.open ? { batch: this.batch } : {}),
      ...this.extra(),
    });
  }

  // Take over the hyper-parameters from Python, which clamps typed values to their range.
  adopt(hyper: Hyper) {
    const { scene } = this,
      differs = Object.keys(scene.hyper).some(
        (k) =>
          k in hyper &&
          typeof hyper[k] === "number" &&
          Math.abs(hyper[k] - Number(scene.hyper[k])) > 1e-9,
      );
    if (!differs || this.hand.busy || this.link.waiting) return;
    scene.hyper = hyper;
    this.panel.build();
    this.sync();
  }

  writeLink(query: Record<string, string>) {
    this.query = new URLSearchParams(query).toString();
    writeAddress(this.query, this.keptParameters);
  }

  numbers() {
    const f = this.field,
      { scene } = this,
      size = ([x, y]: number[]) => show(Math.hypot(x, y));
    const state = stateOf(f);
    const rows: [string, string][] = [
      ["loss", show(f.energy)],
      ["before clamp", show(f.raw)],
      ["triplet", state],
      ["force on A", size(f.forces[0])],
      ["force on P", size(f.forces[1])],
      ["force on N", size(f.forces[2])],
      ["d(A,P)", show(f.edges.ap)],
      ["d(A,N)", show(f.edges.an)],
      ["d(P,N)", show(f.edges.pn)],
    ];
    readouts(this.readout, rows);
    const [unit, low, high] = {
      energy: ["loss", "0", "≥ "],
      raw: ["before clamp", `−${Number(f.scale.toPrecision(3))}`, ""],
      force: ["force", "0", "≥ "],
      none: ["", "", ""],
    }[scene.shade];
    [this.shadeText.textContent, this.scaleLow.textContent, this.scaleText.textContent] = [
      unit,
      low,
      `${high}${Number(f.scale.toPrecision(3))}`,
    ];
    this.keys.bar.hidden = scene.shade === "none";
    this.keys.clamp.hidden = f.m2 === null || !scene.region;
    this.keys.outer.hidden = this.keys.none.hidden = !scene.region;
    const slower = this.link.fallback ? "No direct connection. Figures take a little longer. " : "";
    if (f.bring !== undefined) this.bring = f.bring;
    const { text, label, change } = wayOut(f, scene, {
      bring: this.hand.busy ? null : this.bring,
      parameters: this.parameters(),
      home: this.atHome(),
      margin: this.schema.losses[scene.loss].margin,
      fixed: this.hidden.has("reset"),
    });
    showNotice(this.notice, slower + text, label, () => this.put(change, { keepScale: true }));
    this.summary = `${this.schema.losses[scene.loss].title} loss ${show(f.energy)}, triplet ${state}; ${POINTS.map((name, i) => `${name} at ${scene[name].map(tidy).join(", ")} feels force ${f.forces[i].map((x: number) => x.toPrecision(3)).join(", ")}`).join("; ")}`;
  }

  // ---- drawing
  resize() {
    if (!fit([this.canvas])) return;
    this.size = this.canvas.clientWidth;
    this.context = drawing(this.canvas);
    this.sync();
  }

  // Return the area of the plane that buttons cover.
  buttonArea() {
    const { offsetLeft: left, offsetTop: top, offsetWidth, offsetHeight } = this.tools;
    return offsetWidth
      ? { left, top, right: left + offsetWidth, bottom: top + offsetHeight }
      : null;
  }

  invalidate(id?: number) {
    this.painting = id ?? this.painting;
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      if (!this.size) return;
      paint(this.context, this.size, this.scene, this.field, this.rasters, this.theme, {
        hover: this.hand.hover,
        forceScale: this.forceScale,
        moving: Boolean(this.hand.busy),
        told: this.spoken,
        covered: this.buttonArea(),
      });
      if (this.painting) this.canvas.dataset.seq = String(this.painting);
    });
  }

  sync() {
    if (!this.size || !this.panel) return;
    const at = toPixels(this.scene.view, this.size);
    const place = (handle: HTMLElement, where: Place, label: string) => {
      const [x, y] = at(where);
      // transform causes no layout, unlike left and top
      handle.style.transform = `translate(${x}px, ${y}px)`;
      handle.setAttribute("aria-label", `${label} at ${where.map(tidy).join(", ")}`);
    };
    for (const name of POINTS) place(this.handles[name], this.scene[name], name);
    this.ends.forEach((end, i) => {
      end.hidden = !this.scene.cut;
      place(
        end,
        this.scene.line.slice(2 * i, 2 * i + 2),
        i ? "end of the cut" : "start of the cut",
      );
    });
    if (!this.hand.busy) this.panel.show();
    // Not `disabled`: a disabled button would swallow the key presses of the visitor who just used
    // it.
    this.undoButton.setAttribute("aria-disabled", String(this.done.length < 2));
    this.redoButton.setAttribute("aria-disabled", String(!this.undone.length));
    this.landscapeButton.setAttribute("aria-pressed", String(this.scene.landscape));
    this.invalidate();
  }

  fromPixels(place: number[]) {
    return fromPixels(this.scene.view, this.size)(place);
  }
  toPixels(place: number[]) {
    return toPixels(this.scene.view, this.size)(place);
  }

  // ---- gestures
  touch() {
    this.lessons.still();
  }
  move() {
    this.sync();
    this.ask(this.data.grid ?? (this.trip > SLOW ? COARSE : FINE));
    this.landscape.follow(false);
  }

  // End a gesture: request the fine figure and the link, and announce the result to screen readers.
  rest(remember = true) {
    if (remember) this.remember();
    this.lessons.outdated();
    this.sync();
    this.ask(RESTING);
    this.landscape.follow(true);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.summary) {
        this.live.textContent = this.summary;
        this.canvas.setAttribute("aria-label", this.summary);
      }
    }, 400);
  }

  get motions(): Motion[] {
    return [this.lessons.motion()];
  }

  // ---- landscape next to the plane
  placeLandscape(box: HTMLElement | null) {
    const stage = this.whole.querySelector(".stage") as HTMLElement;
    stage.classList.toggle("beside", Boolean(box));
    if (box) this.panel.side.before(box);
  }
  landscapeState() {
    return this.scene;
  }
  landscapeOf() {
    return { scene: this.scene };
  }
  // The marble was placed: move the scanning point there.
  letGo(place: Place) {
    this.put({ [this.scene.probe]: place }, { keepScale: true });
  }
  weigh(mass: number) {
    this.scene.mass = mass;
    this.rest();
  }

  png() {
    this.canvas.toBlob((blob) => save("field.png", blob));
  }
  close() {
    this.dropCarry?.();
    this.landscape.close();
    this.link.close();
  }
}

export const { render, unmount } = defineComponent(Fields as typeof Fields<FieldData>);
