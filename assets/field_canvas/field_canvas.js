// The plane of the fields page: owns points, sliders and drawing; asks Python for fields, tells Streamlit once per gesture.
import { applyTheme, el, styled, tidy } from "../shared/dom.js";
import { INK, POINTS, rampColour } from "../shared/ink.js";
import { lossPanel, pointRows } from "../shared/controls.js";
import { Link, base64Buffer, decode, socketAddress } from "../shared/wire.js";
import { fromPixels, paint, rasterise, toPixels } from "./paint.js";

const MOVING = 101, RESTING = 201; // nodes along a side while the hand moves, and once it rests
const apps = new WeakMap();
const here = (name) => new URL(name, import.meta.url);
const schemaReady = fetch(here("../shared/schema.json")).then((r) => r.json());

export function render({ data, parentElement, setStateValue }) {
  let app = apps.get(parentElement);
  if (!app) apps.set(parentElement, (app = new Fields(parentElement, data)));
  app.setState = setStateValue;
  app.hear(data);
}

export function unmount(parentElement) {
  apps.get(parentElement)?.close();
  apps.delete(parentElement);
}

class Fields {
  constructor(root, data) {
    Object.assign(this, { root, scene: structuredClone(data.scene), rev: data.rev, hidden: new Set(data.hide), seq: 0, answered: 0, hand: null });
    this.link = new Link(socketAddress(data, "api/field"), (buffer) => this.receive(buffer), (request) => this.setState("ask", request));
    this.ready = this.build(data);
  }

  async build(data) {
    [this.schema] = await Promise.all([schemaReady, styled(this.root, here("../shared/shared.css").href, here("field_canvas.css").href)]);
    this.root.append((this.whole = this.dom()));
    this.themed();
    new ResizeObserver(() => this.resize()).observe(this.frame);
    this.resize();
    this.panel();
    this.ask(RESTING);
    if (data.idle && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.orbit();
  }

  // ---- the page
  dom() {
    this.canvas = el("canvas", { class: "plane", "aria-label": "force field of the triplet loss", role: "img" });
    this.handles = Object.fromEntries(POINTS.map((name) => [name, el("button", { class: "handle", "data-point": name, title: `drag the ${name}, or move it with the arrow keys` })]));
    const zoom = (label, factor, name) => el("button", { "aria-label": name, title: name, onclick: () => this.zoom(factor) }, label);
    this.frame = el("div", { class: "frame" }, this.canvas, ...Object.values(this.handles),
      el("div", { class: "zoom" }, zoom("+", 1 / 1.25, "zoom in"), zoom("−", 1.25, "zoom out")));
    this.scaleBar = el("canvas", { width: 110, height: 1 });
    this.scaleText = el("span");
    this.shadeText = el("span");
    this.readout = el("div", { class: "readout" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.notice = el("div", { class: "notice" });
    this.side = el("div", { class: "panel" });
    this.canvas.addEventListener("pointerdown", (e) => this.pan(e));
    this.canvas.addEventListener("wheel", (e) => { if (e.ctrlKey || e.metaKey) { e.preventDefault(); this.zoom(1.0015 ** e.deltaY); } }, { passive: false });
    for (const [name, handle] of Object.entries(this.handles)) {
      handle.addEventListener("pointerdown", (e) => this.drag(e, name));
      handle.addEventListener("keydown", (e) => this.nudge(e, name));
    }
    const key = (kind, text) => el("span", { class: "key" }, el("i", { class: kind }), text);
    this.clampKey = key("dashed", "upper clamp");
    return el("div", { class: "lab" }, el("div", { class: "stage" },
      el("div", { class: "left" }, this.frame,
        el("div", { class: "below" }, el("span", { class: "bar" }, this.shadeText, "0", this.scaleBar, this.scaleText),
          key("", "loss = 0"), this.clampKey, key("hatched", "no force")),
        this.readout, this.notice, this.live),
      this.side));
  }

  panel() {
    const { presets } = this.schema;
    const sections = lossPanel(this.schema, this.scene, { hidden: this.hidden,
      onInput: () => { this.touch(); this.move(); }, onRest: () => this.rest(),
      onLoss: () => { this.touch(); this.scale = null; this.panel(); this.rest(); } });
    this.rows = pointRows(INK, {
      onProbe: (name) => { this.touch(); this.scene.probe = name; this.scale = null; this.rest(); },
      onMove: (name, axis, x) => { this.touch(); this.scene[name][axis] = x; this.rest(); },
    });
    const tick = (name, text, title) => {
      const box = el("input", { type: "checkbox", checked: this.scene[name] });
      box.addEventListener("change", () => { this.touch(); this.scene[name] = box.checked; this.rest(); });
      return el("label", { title }, box, text);
    };
    const shade = el("select", { "aria-label": "colour" }, ...[["energy", "Colour: clamped loss"], ["force", "Colour: force on the scanning point"]].map(([v, t]) => el("option", { value: v, selected: v === this.scene.shade }, t)));
    shade.addEventListener("change", () => { this.touch(); this.scene.shade = shade.value; this.scale = null; this.rest(); });
    const figures = [...new Set(presets.map((p) => p.figure))];
    const pill = (text, pressed, act, name = text) => el("button", { "aria-pressed": String(pressed), "aria-label": name, onclick: act }, text);
    const chosen = presets[this.preset], panels = presets.map((p, i) => [p, i]).filter(([p]) => p.figure === chosen?.figure);
    this.side.replaceChildren(
      ...sections,
      el("section", {}, el("h4", {}, "Points"), this.rows.grid),
      el("section", {}, el("h4", {}, "Shown"), shade, el("div", { class: "switches", style: "margin-top:8px" },
        tick("region", "active region", "hatched: the loss is clamped there and the scanning point feels no force"),
        tick("arrows", "force arrows", "force on the scanning point, were it there"),
        tick("discs", "ranking discs", "where a negative violates the ranking loss with margin 0.1, about anchor and positive"))),
      el("section", {}, el("h4", {}, "Figures of the thesis"),
        el("div", { class: "pills" }, ...figures.map((f) => pill(f, f === chosen?.figure, () => this.show(presets.findIndex((p) => p.figure === f)), `figure ${f}`))),
        ...(chosen ? [el("div", { class: "pills panels" }, ...panels.map(([p, i]) => pill(p.panel, i === this.preset, () => this.show(i)))), el("p", { class: "caption" }, chosen.caption)] : [])));
    this.sync();
  }

  show(index) {
    this.touch();
    const focused = this.root.activeElement?.textContent;
    this.preset = index;
    this.scale = null;
    const { figure, panel, caption, ...scene } = structuredClone(this.schema.presets[index]);
    Object.assign(this.scene, scene);
    this.panel();
    [...this.side.querySelectorAll(".pills button")].find((b) => b.textContent === focused)?.focus();
    this.rest();
  }

  // ---- from Streamlit
  async hear(data) {
    await this.ready;
    this.themed();
    if (data.rev !== this.rev && !this.hand) {
      this.rev = data.rev;
      this.scene = structuredClone(data.scene);
      this.preset = undefined;
      this.scale = null;
      this.panel();
      this.ask(RESTING);
    }
    if (data.answer && data.answer.id > this.answered) {
      this.receive(base64Buffer(data.answer.bytes));
      this.link.done();
    }
  }

  themed() {
    const theme = applyTheme(this.root, this.whole);
    if (theme === this.theme) return;
    this.theme = theme;
    const ctx = this.scaleBar.getContext("2d");
    for (let i = 0; i < 110; i++) { ctx.fillStyle = `rgb(${rampColour(i / 109, theme)})`; ctx.fillRect(i, 0, 1, 1); }
    if (this.field) this.pictures = rasterise(this.field, theme);
    this.sync();
  }

  // ---- from Python
  receive(buffer) {
    const field = decode(buffer);
    if (field.id < this.answered) return;
    this.answered = field.id;
    this.field = field;
    this.pictures = rasterise(field, this.theme);
    this.scale = field.scale;
    this.reference = field.reference;
    this.numbers();
    this.invalidate(field.id);
  }

  ask(n) {
    const { scene, scale, reference } = this;
    this.link.send({ id: ++this.seq, scene, n, scale, reference, settle: n === RESTING });
  }

  numbers() {
    const f = this.field, show = (x) => (x === null ? "∞" : Math.abs(x) >= 1000 ? x.toExponential(2) : x.toFixed(3));
    const size = ([x, y]) => show(Math.hypot(x, y));
    const rows = [["loss", show(f.energy)], ["before clamp", show(f.raw)], ["triplet", f.hit ? "active" : f.raw !== null && f.raw <= 0 ? "satisfied" : "clamped"],
      ["force on A", size(f.forces[0])], ["force on P", size(f.forces[1])], ["force on N", size(f.forces[2])],
      ["d(A,P)", show(f.edges.ap)], ["d(A,N)", show(f.edges.an)], ["d(P,N)", show(f.edges.pn)]];
    this.readout.replaceChildren(...rows.map(([name, value]) => el("div", {}, el("span", {}, name), el("b", { "data-readout": name }, value))));
    this.shadeText.textContent = this.scene.shade === "energy" ? "loss" : "force";
    this.scaleText.textContent = `≥ ${Number(f.scale.toPrecision(3))}`;
    this.clampKey.style.display = f.m2 === null ? "none" : "";
    this.notice.textContent = [
      f.arrows.some((x) => x) ? "" : `The ${this.scene.probe} feels no force anywhere in this view. Scan with another point, move the points, or change a parameter.`,
      this.link.fallback ? "No direct connection: pictures come through the page itself, a little slower." : ""].filter(Boolean).join(" ");
  }

  // ---- drawing
  resize() {
    const size = this.frame.clientWidth, scale = Math.min(devicePixelRatio || 1, 2);
    if (!size || (size === this.size && this.canvas.width === Math.round(size * scale))) return;
    this.size = size;
    this.canvas.width = this.canvas.height = Math.round(size * scale);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.sync();
  }

  invalidate(id) {
    this.painting = id ?? this.painting;
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      if (!this.size) return;
      paint(this.context, this.size, this.scene, this.field, this.pictures, this.theme);
      if (this.painting) this.canvas.dataset.seq = this.painting;
    });
  }

  sync() {
    if (!this.size || !this.rows) return;
    const at = toPixels(this.scene.view, this.size);
    for (const name of POINTS) {
      const [x, y] = at(this.scene[name]), handle = this.handles[name];
      handle.style.left = `${x}px`;
      handle.style.top = `${y}px`;
      handle.setAttribute("aria-label", `${name} at ${this.scene[name].map(tidy).join(", ")}`);
    }
    this.rows.show(this.scene, this.theme);
    this.invalidate();
  }

  // ---- the hand
  touch() {
    this.handles.anchor.classList.remove("pulse");
    if (!this.orbiting) return;
    this.scene.negative = this.orbiting;
    this.orbiting = null;
  }

  move() { this.sync(); this.ask(MOVING); }

  // A gesture has ended: the fine picture, and one message to Streamlit.
  rest() {
    this.sync();
    this.ask(RESTING);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      this.setState("scene", structuredClone(this.scene));
      if (this.field) this.live.textContent = `loss ${tidy(this.field.energy ?? 0)}`;
    }, 120);
  }

  drag(event, name) {
    event.preventDefault();
    this.touch();
    const handle = event.currentTarget, box = this.canvas.getBoundingClientRect();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    const [hx, hy] = toPixels(this.scene.view, this.size)(this.scene[name]), dx = event.clientX - box.left - hx, dy = event.clientY - box.top - hy;
    this.follow(handle, (e) => {
      const clip = (v) => Math.min(Math.max(v, 0), this.size);
      this.scene[name] = fromPixels(this.scene.view, this.size)([clip(e.clientX - box.left - dx), clip(e.clientY - box.top - dy)]).map((v) => Number(v.toFixed(4)));
    });
  }

  pan(event) {
    if (event.pointerType === "touch") return;
    this.touch();
    this.canvas.setPointerCapture(event.pointerId);
    const start = [...this.scene.view], k = (2 * start[2]) / this.size, { clientX, clientY } = event;
    this.follow(this.canvas, (e) => { this.scene.view = [start[0] - (e.clientX - clientX) * k, start[1] + (e.clientY - clientY) * k, start[2]].map((v) => Number(v.toFixed(4))); });
  }

  follow(target, act) {
    this.hand = target;
    let moved = false;
    const move = (e) => { moved = true; act(e); this.move(); };
    const end = () => {
      target.removeEventListener("pointermove", move);
      target.removeEventListener("pointerup", end);
      target.removeEventListener("pointercancel", end);
      this.hand = null;
      if (moved) this.rest();
    };
    target.addEventListener("pointermove", move);
    target.addEventListener("pointerup", end);
    target.addEventListener("pointercancel", end);
  }

  nudge(event, name) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    this.touch();
    const by = event.shiftKey ? 0.1 : 0.01;
    this.scene[name] = this.scene[name].map((v, axis) => Number((v + by * step[axis]).toFixed(4)));
    this.move();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), 250);
  }

  zoom(factor) {
    this.touch();
    this.scene.view[2] = Number(Math.min(Math.max(this.scene.view[2] * factor, 0.05), 50).toFixed(4));
    this.move();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), 250);
  }

  // First seconds: the negative goes once around the pair, so that a visitor sees the forces turn. Any touch ends it.
  orbit() {
    this.handles.anchor.classList.add("pulse");
    const home = [...this.scene.negative], centre = [0, 1].map((i) => (this.scene.anchor[i] + this.scene.positive[i]) / 2);
    const radius = Math.hypot(home[0] - centre[0], home[1] - centre[1]), from = Math.atan2(home[1] - centre[1], home[0] - centre[0]);
    this.orbiting = home;
    const begin = performance.now() + 600;
    const step = (now) => {
      if (this.orbiting !== home) return;
      const t = Math.min(Math.max((now - begin) / 6000, 0), 1), angle = from + 2 * Math.PI * (t * t * (3 - 2 * t));
      this.scene.negative = t < 1 ? [centre[0] + radius * Math.cos(angle), centre[1] + radius * Math.sin(angle)] : home;
      this.move();
      if (t < 1) requestAnimationFrame(step); else { this.orbiting = null; this.ask(RESTING); }
    };
    requestAnimationFrame(step);
  }

  close() { this.link.close(); }
}
