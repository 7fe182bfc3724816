// The map page: draws points by class, shows what is under the pointer, tells Python which sample or class was clicked.
const REACH = 14, DWELL = 125; // pixels around the pointer, milliseconds before a picture is fetched
const SHAPES = ["circle", "square", "triangle", "diamond"]; // told apart without colour
const maps = new WeakMap();

export default ({ data, parentElement, setTriggerValue }) => {
  let map = maps.get(parentElement);
  if (!map) maps.set(parentElement, (map = new ClassMap(parentElement)));
  map.tell = setTriggerValue;
  map.hear(data);
  return () => { maps.get(parentElement)?.close(); maps.delete(parentElement); };
};

function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

function outline(ctx, shape, x, y, r) {
  ctx.beginPath();
  if (shape === "circle") ctx.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "square") ctx.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
  else {
    const corners = shape === "diamond" ? [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]] : [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]];
    corners.forEach(([dx, dy], i) => ctx[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    ctx.closePath();
  }
}

class ClassMap {
  constructor(root) {
    this.root = root;
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.hovered = -1;
    this.canvas = el("canvas", { class: "map", tabindex: "0", role: "img", "aria-label": "map of the embeddings; arrow keys go from point to point, Enter opens the neighbours" });
    this.card = el("div", { class: "card", hidden: "" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    const button = (text, label, act) => el("button", { "aria-label": label, title: label, onclick: act }, text);
    this.frame = el("div", { class: "frame" }, this.canvas, this.card, el("div", { class: "zoom" },
      button("+", "zoom in", () => this.zoom(1.4)), button("−", "zoom out", () => this.zoom(1 / 1.4)), button("⤢", "whole map", () => this.fit())));
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "classes" });
    root.append(el("div", { class: "class-map" }, this.frame, this.legend, this.live));
    this.listen();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.frame);
  }

  close() { this.observer.disconnect(); clearTimeout(this.timer); }

  // ---- from Python
  hear(data) {
    const fresh = data.points !== this.data?.points;
    this.data = data;
    if (fresh) {
      this.points = new Uint16Array(bytes(data.points));
      this.indices = new Int32Array(bytes(data.indices));
      this.hovered = -1;
      this.spread = [this.extent(0), this.extent(1)];
      this.scaled();
      this.fit();
    }
    this.marked = this.indices.indexOf(data.mark ?? -1);
    this.themed();
    this.chips();
    this.draw();
  }

  themed() {
    const style = getComputedStyle(this.frame);
    this.ink = style.color;
    this.paper = style.backgroundColor;
    this.sprites = null;
  }

  // ---- geometry: the unit square, y upwards, to pixels and back
  resize() {
    const { width, height } = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    if (!width) return;
    Object.assign(this, { width, height, ratio });
    this.scaled();
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.sprites = null;
    this.draw();
  }

  extent(axis) { // what the points take of the unit square along an axis, with the same margin as along the longer one
    let low = 65535, high = 0;
    for (let i = axis; i < this.points.length; i += 3) [low, high] = [Math.min(low, this.points[i]), Math.max(high, this.points[i])];
    return Math.min(1, (high - low) / 65535 + 0.06);
  }

  scaled() { // pixels of the unit square at which all points just fit the frame, whatever the shape of either
    if (this.width && this.spread) this.side = Math.min(this.width / this.spread[0], this.height / this.spread[1]);
  }

  toPixels(x, y) {
    const { view, side } = this, scale = side * view.zoom;
    return [this.width / 2 + (x - view.x) * scale, this.height / 2 - (y - view.y) * scale];
  }

  at(i) { return this.toPixels(this.points[3 * i] / 65535, this.points[3 * i + 1] / 65535); }
  classOf(i) { return this.points[3 * i + 2]; }
  shown(number) { return !this.data.highlight.length || this.data.highlight.includes(this.data.classes[number].label); }
  radius() { return Math.min(6, Math.max(2.4, 0.16 * this.side / Math.sqrt(this.data.count)) * Math.sqrt(this.view.zoom)); }

  nearest(px, py) {
    let best = -1, reach = REACH ** 2;
    for (let i = 0; i < this.data.count; i++) {
      if (!this.shown(this.classOf(i))) continue;
      const [x, y] = this.at(i), d = (x - px) ** 2 + (y - py) ** 2;
      if (d <= reach) [best, reach] = [i, d];
    }
    return best;
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const { view } = this, before = this.side * view.zoom;
    view.zoom = Math.min(40, Math.max(1, view.zoom * factor));
    const after = this.side * view.zoom, shift = 1 / before - 1 / after;
    view.x += (px - this.width / 2) * shift;
    view.y -= (py - this.height / 2) * shift;
    this.bound();
  }

  fit() { this.view = { x: 0.5, y: 0.5, zoom: 1 }; this.bound(); }

  bound() {
    for (const axis of ["x", "y"]) this.view[axis] = Math.min(1, Math.max(0, this.view[axis]));
    this.sprites = null;
    this.hover(-1);
    this.draw();
  }

  // ---- painting
  draw() {
    if (!this.points || !this.width || this.frameAsked) return;
    this.frameAsked = requestAnimationFrame(() => { this.frameAsked = 0; this.paint(); });
  }

  sprite(number, r) {
    const size = Math.ceil(2.5 * r + 4), canvas = el("canvas"), ctx = canvas.getContext("2d");
    canvas.width = canvas.height = size * this.ratio;
    ctx.scale(this.ratio, this.ratio);
    outline(ctx, SHAPES[number % SHAPES.length], size / 2, size / 2, r);
    ctx.fillStyle = this.data.classes[number].colour;
    ctx.fill();
    ctx.strokeStyle = this.paper;
    ctx.lineWidth = 0.7;
    ctx.stroke();
    return { canvas, size };
  }

  paint() {
    const ctx = this.canvas.getContext("2d"), r = this.radius(), { count, classes } = this.data;
    this.sprites ??= classes.map((_, number) => this.sprite(number, r));
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ctx.clearRect(0, 0, this.width, this.height);
    const some = this.data.highlight.length > 0;
    for (const front of some ? [false, true] : [true]) {
      ctx.globalAlpha = front ? 1 : 0.13;
      for (let i = 0; i < count; i++) {
        const number = this.classOf(i);
        if (some && this.shown(number) !== front) continue;
        const { canvas, size } = this.sprites[number], [x, y] = this.at(i);
        if (x > -9 && y > -9 && x < this.width + 9 && y < this.height + 9) ctx.drawImage(canvas, x - size / 2, y - size / 2, size, size);
      }
    }
    ctx.globalAlpha = 1;
    this.names(ctx);
    if (this.marked >= 0) this.ring(ctx, this.marked, r + 7, "#E69F00");
    if (this.hovered >= 0) this.ring(ctx, this.hovered, r + 4, this.ink);
  }

  ring(ctx, i, r, colour) {
    const [x, y] = this.at(i);
    for (const [style, width] of [[this.paper, 5], [colour, 2.5]]) {
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      ctx.strokeStyle = style;
      ctx.lineWidth = width;
      ctx.stroke();
    }
  }

  names(ctx) { // the largest classes first; a name that would cover another waits for more zoom
    ctx.font = `600 12.5px ${getComputedStyle(this.frame).fontFamily}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.lineJoin = "round";
    const taken = [];
    for (const c of [...this.data.classes].sort((a, b) => b.count - a.count)) {
      if (this.data.highlight.length && !this.data.highlight.includes(c.label)) continue;
      const [x, y] = this.toPixels(c.x, c.y), text = c.name.length > 24 ? c.name.slice(0, 23) + "…" : c.name;
      const w = ctx.measureText(text).width / 2 + 4, box = [x - w, y - 9, x + w, y + 9];
      if (taken.some((o) => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3])) continue;
      taken.push(box);
      ctx.strokeStyle = this.paper;
      ctx.lineWidth = 4;
      ctx.strokeText(text, x, y);
      ctx.fillStyle = this.ink;
      ctx.fillText(text, x, y);
    }
  }

  chips() {
    const chip = (c, number) => {
      const mark = el("canvas", { width: 14 * 2, height: 14 * 2 }), ctx = mark.getContext("2d");
      ctx.scale(2, 2);
      outline(ctx, SHAPES[number % SHAPES.length], 7, 7, 5);
      ctx.fillStyle = c.colour;
      ctx.fill();
      const on = this.data.highlight.includes(c.label);
      return el("button", { "aria-pressed": String(on), class: this.shown(number) ? "" : "faint", title: `${c.name}: ${c.count} samples`, onclick: () => this.tell("toggle", c.label) },
        mark, el("bdi", {}, c.name), el("small", {}, String(c.count)));
    };
    const at = this.legend.scrollTop;
    this.legend.replaceChildren(...this.data.classes.map(chip));
    this.legend.scrollTop = at;
  }

  // ---- the pointer and the keyboard
  listen() {
    const { canvas } = this;
    let grip = null;
    canvas.onpointerdown = (e) => { grip = { x: e.clientX, y: e.clientY, view: { ...this.view }, moved: false }; canvas.setPointerCapture(e.pointerId); };
    canvas.onpointermove = (e) => {
      if (!grip) return this.hover(this.nearest(e.offsetX, e.offsetY));
      const dx = e.clientX - grip.x, dy = e.clientY - grip.y, scale = this.side * this.view.zoom;
      grip.moved ||= Math.hypot(dx, dy) > 4;
      if (!grip.moved) return;
      Object.assign(this.view, { x: grip.view.x - dx / scale, y: grip.view.y + dy / scale });
      this.bound();
    };
    canvas.onpointerup = (e) => {
      const click = grip && !grip.moved;
      grip = null;
      if (click) this.open(this.nearest(e.offsetX, e.offsetY));
    };
    canvas.onpointercancel = () => { grip = null; };
    canvas.onpointerleave = () => { if (!grip) this.hover(-1); };
    canvas.ondblclick = () => this.fit();
    canvas.addEventListener("wheel", (e) => { // without a modifier key the page scrolls
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      this.zoom(1.0015 ** -e.deltaY, e.offsetX, e.offsetY);
    }, { passive: false });
    canvas.onkeydown = (e) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (step) { e.preventDefault(); this.hover(this.beside(step)); } else if (e.key === "Enter") this.open(this.hovered);
      else if (e.key === "+") this.zoom(1.4); else if (e.key === "-") this.zoom(1 / 1.4); else if (e.key === "Escape") this.hover(-1);
    };
  }

  beside([dx, dy]) { // the nearest point within the quarter that the arrow points to
    const [px, py] = this.hovered >= 0 ? this.at(this.hovered) : [this.width / 2, this.height / 2];
    let best = this.hovered, least = Infinity;
    for (let i = 0; i < this.data.count; i++) {
      const [x, y] = this.at(i), along = (x - px) * dx + (y - py) * dy, across = Math.abs((x - px) * dy) + Math.abs((y - py) * dx);
      const inside = x >= 0 && y >= 0 && x <= this.width && y <= this.height;
      if (i !== this.hovered && inside && along > 0.5 && across <= along && along + across < least && this.shown(this.classOf(i))) [best, least] = [i, along + across];
    }
    return best;
  }

  open(i) { if (i >= 0) this.tell("open", this.indices[i]); }

  hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    this.canvas.dataset.hovered = i < 0 ? "" : this.indices[i];
    this.canvas.style.cursor = i < 0 ? "grab" : "pointer";
    clearTimeout(this.timer);
    if (i < 0) this.card.hidden = true; else this.timer = setTimeout(() => this.describe(i), this.card.hidden ? DWELL : DWELL / 2);
    this.draw();
  }

  describe(i) {
    const name = this.data.classes[this.classOf(i)].name, text = `class ${name}, sample ${this.indices[i]}`, [x, y] = this.at(i);
    this.card.replaceChildren(el("img", { src: this.data.pictures + this.indices[i], alt: text, width: 128, height: 128 }), el("b", {}, el("bdi", {}, name)), el("small", {}, `sample ${this.indices[i]}`));
    this.card.style.left = `${x + 160 < this.width ? x + 14 : x - 162}px`;
    this.card.style.top = `${Math.min(Math.max(4, y - 60), this.height - 190)}px`;
    this.card.hidden = false;
    this.live.textContent = text;
  }
}
