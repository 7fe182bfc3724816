// The compare page: two to four losses over linked points, their difference, and whether they are one loss.
// Python computes, judges and writes the link; this module holds the comparison while the hand moves.
import { applyTheme, el, mathml, show, styled, tidy } from "../shared/dom.js";
import { INK, LETTER, POINTS } from "../shared/ink.js";
import { lossPanel, pointRows } from "../shared/controls.js";
import { Link, base64Buffer, decode, socketAddress } from "../shared/wire.js";
import { Hand } from "./hand.js";
import { Plane, scaleBar } from "./plane.js";
import { Judgement, number } from "./judgement.js";
import { takeAway } from "./take.js";

const MOVING = 60, RESTING = 140; // nodes along a side while the hand moves, and once it rests; 20 arrows divide both
const MOST = 4, FEWEST = 2;
const SHADES = { "energy,1": "loss, clamped", "energy,0": "loss before the clamp", "force,1": "force, clamped", "force,0": "force before the clamp" };
const apps = new WeakMap();
const here = (name) => new URL(name, import.meta.url);
const schemaReady = fetch(here("../shared/schema.json")).then((r) => r.json());

export function render({ data, parentElement, setStateValue }) {
  let app = apps.get(parentElement);
  if (!app) apps.set(parentElement, (app = new Compare(parentElement, data)));
  app.setState = setStateValue;
  app.hear(data);
}

export function unmount(parentElement) {
  apps.get(parentElement)?.close();
  apps.delete(parentElement);
}

class Compare {
  constructor(root, data) {
    Object.assign(this, { root, data, state: structuredClone(data.comparison), presets: data.presets, queries: new Set([data.query]), query: data.query,
      hidden: new Set(data.hide), seq: 0, answered: 0, cards: [], scales: {}, locked: false });
    this.hand = new Hand(this);
    this.link = new Link(socketAddress(data, "api/compare"), (buffer) => this.receive(buffer), (request) => this.setState("ask", request));
    this.ready = this.build(data);
  }

  async build(data) {
    [this.schema] = await Promise.all([schemaReady, styled(this.root, here("../shared/shared.css").href, here("compare.css").href)]);
    this.root.append((this.whole = this.dom()));
    this.watch = new ResizeObserver(() => this.resize());
    this.panels();
    this.themed();
    this.ask(RESTING);
    if (data.idle && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.hand.orbit();
  }

  // ---- the page
  dom() {
    const { hidden } = this;
    this.cardsBox = el("div", { class: "cards" });
    this.map = new Plane("difference of the two losses", this.hand);
    this.judgement = new Judgement(this);
    this.legend = el("p", { class: "formula legend" });
    this.pairBox = el("div", { class: "top" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.notice = el("div", { class: "notice" });
    this.rows = pointRows(INK, {
      onProbe: (name) => { this.hand.touch(); this.state.probe = name; this.rescale(); },
      onMove: (name, axis, x) => { this.hand.touch(); this.state[name][axis] = x; this.rest(); },
    });
    this.mapBars = el("div", { class: "bars" });
    this.bars = el("div", { class: "bars" });
    this.presetRows = el("div", { class: "preset-rows" });
    this.options = el("div", { class: "shown" });
    const section = (name, ...children) => (hidden.has(name) ? [] : [el("section", {}, ...children)]);
    return el("div", { class: "lab" },
      ...(hidden.has("presets") ? [] : [this.presetRows]),
      ...(hidden.has("verdict") ? [] : [this.judgement.box]),
      el("div", { class: "body" },
        el("div", { class: "main" }, this.cardsBox, this.bars, this.notice),
        el("div", { class: "side panel" },
          el("div", { class: "map" }, this.pairBox, this.legend, this.map.frame, this.mapBars),
          ...section("options", el("h4", {}, "Shown"), this.options),
          ...section("points", el("h4", {}, "Points, the same in every plane"), this.rows.grid),
          ...section("export", el("h4", {}, "Take away"), takeAway(this)))),
      this.live);
  }

  panels() {
    this.watch.disconnect();
    this.cards = this.state.panels.map((panel, k) => this.card(panel, k));
    this.cardsBox.replaceChildren(...this.cards.map((c) => c.box));
    for (const plane of this.planes()) this.watch.observe(plane.frame);
    this.offered();
    this.chosen();
    this.pair();
    this.resize();
  }

  planes() { return [...this.cards.map((c) => c.plane), this.map]; }

  card(panel, k) {
    const plane = new Plane(`loss ${k + 1}`, this.hand, { first: k === 0 });
    const card = { plane, box: el("div", { class: "card", role: "group" }), numbers: el("div", { class: "numbers" }) };
    const { panels } = this.state, count = panels.length;
    const button = (text, name, act, disabled = false) => el("button", { "aria-label": `${name} loss ${k + 1}`, title: `${name} this loss`, disabled, onclick: act }, text);
    const buttons = [
      button("⇄", "exchange", () => this.exchange(k, (k + 1) % count)),
      button(el("i", { class: "copies" }), "duplicate", () => this.insert(k), count >= MOST),
      button("×", "remove", () => this.remove(k), count <= FEWEST)];
    if (k === 0) plane.frame.append(el("div", { class: "zoom" }, ...[["+", 1 / 1.25, "zoom in"], ["−", 1.25, "zoom out"]].map(([text, factor, name]) =>
      el("button", { "aria-label": name, title: name, onclick: () => this.hand.zoom(factor) }, text))));
    card.fill = () => {
      const { losses } = this.schema;
      const [choice, sliders] = lossPanel(this.schema, panel, { hidden: this.hidden, label: `loss ${k + 1}`,
        onInput: () => { this.hand.touch(); this.preset = null; this.move(); }, onRest: () => this.rest(),
        onLoss: () => { this.hand.touch(); card.fill(); this.rescale(); } });
      card.box.setAttribute("aria-label", `loss ${k + 1}: ${losses[panel.loss].title}`);
      card.box.replaceChildren(
        el("div", { class: "top" }, el("span", { class: "badge", "aria-hidden": "true" }, k + 1), choice, ...(this.hidden.has("panels") ? [] : buttons)),
        mathml(losses[panel.loss].mathml), plane.frame, card.numbers, sliders);
    };
    card.fill();
    return card;
  }

  insert(k) { this.state.panels.splice(k + 1, 0, structuredClone(this.state.panels[k])); this.changed([k, k + 1]); }

  remove(k) {
    this.state.panels.splice(k, 1);
    const left = this.state.pair.filter((i) => i !== k).map((i) => (i > k ? i - 1 : i));
    this.changed(left.length === 2 ? left : [0, 1]);
  }

  exchange(i, j) {
    const { panels } = this.state;
    [panels[i], panels[j]] = [panels[j], panels[i]];
    this.changed(this.state.pair);
  }

  changed(pair) {
    this.hand.touch();
    this.state.pair = pair;
    this.panels();
    this.rescale();
  }

  // ---- rows of choices
  offered() {
    const pill = (preset, i) => el("button", { "aria-pressed": String(this.preset === i), onclick: () => this.take(i) }, preset.title);
    const row = (name, kind) => [el("span", { class: "row-name" }, name), el("div", { class: "pills" },
      ...this.presets.map((p, i) => [p, i]).filter(([p]) => p.kind === kind).map(([p, i]) => pill(p, i)))];
    this.presetRows.replaceChildren(...row("The same loss", "same"), ...row("Not the same", "different"),
      el("p", { class: "caption" }, this.presets[this.preset]?.caption ?? "Each button sets two losses and runs the test; then move a slider and see when they part."));
  }

  take(index) {
    this.hand.touch();
    this.preset = index;
    this.state = structuredClone(this.presets[index].comparison);
    const focused = this.root.activeElement?.textContent;
    this.panels();
    [...this.presetRows.querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
    this.rescale();
  }

  chosen() {
    const { state } = this, set = (key, value) => { this.hand.touch(); state[key] = value; this.rescale(); };
    const tick = (name, text, title) => {
      const box = el("input", { type: "checkbox", checked: state[name] });
      box.addEventListener("change", () => set(name, box.checked));
      return el("label", { title }, box, text);
    };
    const now = `${state.shade},${Number(state.clamp)}`;
    const shade = el("select", { "aria-label": "colour" }, ...Object.entries(SHADES).map(([v, t]) => el("option", { value: v, selected: v === now }, t)));
    shade.addEventListener("change", () => { const [what, clamp] = shade.value.split(","); state.clamp = clamp === "1"; set("shade", what); });
    const add = el("button", { disabled: state.panels.length >= MOST, onclick: () => this.insert(state.panels.length - 1), title: "a further plane, with a copy of the last loss" }, "Add a loss");
    this.options.replaceChildren(el("label", {}, "Colour", shade),
      el("div", { class: "switches" }, tick("region", "active region", "hatched: the loss is clamped there and the scanning point feels no force"),
      tick("arrows", "force arrows", "force on the scanning point, were it there")));
    this.add = this.hidden.has("panels") ? [] : [add];
    this.judgement.fill();
  }

  pair() {
    const { state } = this, titles = state.panels.map((p) => this.schema.losses[p.loss].title);
    const pick = (side) => {
      const menu = el("select", { "aria-label": side ? "subtracted loss" : "loss subtracted from" }, ...titles.map((_, k) => el("option", { value: k, selected: k === state.pair[side] }, k + 1)));
      menu.addEventListener("change", () => {
        const k = Number(menu.value), next = [...state.pair];
        if (k === next[1 - side]) next[1 - side] = next[side];
        next[side] = k;
        this.hand.touch();
        state.pair = next;
        this.pair();
        this.rescale();
      });
      return menu;
    };
    this.pairBox.replaceChildren(el("strong", {}, "What is left: loss"), ...(titles.length > 2 ? [pick(0), " − ", pick(1)] : [el("strong", {}, `${state.pair[0] + 1} − ${state.pair[1] + 1}`)]),
      ...(titles.length > 2 ? [] : [el("button", { style: "width:auto;padding:0 9px;font-size:13px", onclick: () => { this.hand.touch(); state.pair = [...state.pair].reverse(); this.pair(); this.rescale(); } }, "reverse")]));
  }

  // ---- from Streamlit
  async hear(data) {
    await this.ready;
    this.themed();
    if (!this.queries.has(data.query) && !this.hand.held) { // a link was followed within the session
      this.queries.add(data.query);
      this.state = structuredClone(data.comparison);
      this.preset = null;
      this.panels();
      this.rescale();
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
    if (this.answer) this.spread();
    this.sync();
  }

  // ---- requests and answers
  ask(n, settle = n === RESTING) {
    const request = { id: ++this.seq, comparison: this.state, n, settle, lock: this.locked, ...this.scales };
    if (this.place) request.at = this.place;
    this.link.send(request);
  }

  // Numbers under the pointer; a waiting picture is not displaced.
  look(place) {
    this.place = place;
    if (!place) { for (const plane of this.planes()) plane.look(null); return; }
    if (this.link.waiting) this.link.waiting.at = place;
    else this.link.send({ id: ++this.seq, comparison: this.state, at: place, fields: false });
  }

  receive(buffer) {
    const answer = decode(buffer);
    this.answered = Math.max(this.answered, answer.id);
    if (answer.there && this.place && answer.there.length === this.cards.length) this.report(answer);
    if (!answer.panels || answer.panels.length !== this.cards.length) return;
    this.answer = answer;
    this.scales = { scale: answer.scale, reference: answer.reference, span: answer.span };
    this.spread();
    this.tell();
    if (answer.query !== undefined) this.settled(answer);
  }

  // One answer becomes a field for each plane, the difference's among them.
  spread() {
    const { answer, theme } = this, common = { id: answer.id, n: answer.n, view: answer.view, scale: answer.scale, radius: null };
    this.cards.forEach(({ plane }, k) => plane.receive({ ...common, ...answer.panels[k], signed: answer.signed, shade: answer[`shade${k}`],
      active: answer[`active${k}`], arrows: this.state.arrows ? answer[`arrows${k}`] : null, corners: answer[`corners${k}`] }, theme));
    const none = [[0, 0], [0, 0], [0, 0]];
    this.map.receive({ ...common, ...answer.panels[0], forces: none, outer: [], inner: [], corners: new Uint16Array(0), signed: true, shade: answer.difference,
      active: new Uint8Array(answer.active0.length).fill(255), arrows: this.state.arrows ? answer.apart : null }, theme);
    this.invalidate(answer.id);
  }

  report({ at, there, left }) {
    this.cards.forEach(({ plane }, k) => plane.look(at, this.state.view, `loss ${show(there[k].energy)} · force ${number(Math.hypot(...there[k].force))}`));
    this.map.look(at, this.state.view, left.energy === null ? "∞" : `loss ${number(left.energy)} · force ${number(left.force)}`);
  }

  tell() {
    const { answer } = this;
    this.cards.forEach((card, k) => {
      const f = answer.panels[k], part = (name, text) => el("div", {}, el("span", {}, name), el("b", { "data-readout": name }, text));
      const forces = f.forces.map(([x, y]) => Math.hypot(x, y));
      card.numbers.replaceChildren(part("loss", show(f.energy)), part("before the clamp", f.raw === null ? "∞" : show(f.raw)), part("state", f.hit ? "active" : "no force"),
        ...forces.map((x, i) => part(`force on ${LETTER[POINTS[i]]}`, x.toFixed(3))));
      card.plane.canvas.setAttribute("aria-label", `${this.schema.losses[this.state.panels[k].loss].title}: loss ${show(f.energy)}, ${f.hit ? "active" : "no force"}, forces on anchor ${forces[0].toFixed(3)}, positive ${forces[1].toFixed(3)}, negative ${forces[2].toFixed(3)}`);
    });
    this.judgement.tell(answer.same);
    this.scaled();
  }

  settled(answer) {
    this.queries.add(answer.query);
    this.query = answer.query;
    this.snippet = answer.snippet;
    this.onSettled?.();
    const kept = new URLSearchParams([...new URLSearchParams(location.search)].filter(([k]) => k === "hide" || k === "socket")).toString();
    const query = [answer.query, kept].filter(Boolean).join("&");
    if (!this.hand.orbiting) history.replaceState(history.state, "", location.pathname + (query ? `?${query}` : "") + location.hash);
  }

  // ---- one scale for all, and one for what is left
  scaled() {
    const { answer, theme, state } = this;
    const bar = (kind, name, top) => {
      const canvas = el("canvas", { width: 150, height: 1 }), most = String(Number(top.toPrecision(3)));
      scaleBar(canvas, kind, theme);
      return el("span", { class: "bar" }, el("span", {}, name), el("span", {}, kind === "signed" ? `−${most}` : "0"), canvas, el("span", {}, most));
    };
    const key = (kind, text) => el("span", { class: "key" }, el("i", { class: kind }), text);
    const lock = el("button", { "aria-pressed": String(this.locked), title: "keep the colours as they are whatever changes", onclick: () => { this.locked = !this.locked; this.scaled(); } }, this.locked ? "scale locked" : "lock scale");
    const focused = this.bars.contains(this.root.activeElement) && this.root.activeElement?.textContent;
    this.bars.replaceChildren(...this.add, bar(answer.signed ? "signed" : "ramp", `${SHADES[`${state.shade},${Number(state.clamp)}`]}, all planes:`, answer.scale),
      el("button", { title: "fit the colours to what is shown", onclick: () => this.rescale() }, "rescale"), lock,
      key("", state.clamp || state.shade === "force" ? "loss = 0" : "zero"), ...(state.clamp && answer.panels.some((p) => p.m2 !== null) ? [key("dashed", "upper clamp")] : []), ...(state.clamp && state.region ? [key("hatched", "no force")] : []));
    if (focused) [...this.bars.querySelectorAll("button")].find((b) => b.textContent.includes(focused.split(" ").at(-1)))?.focus();
    this.mapBars.replaceChildren(bar(state.shade === "energy" ? "signed" : "half", state.shade === "energy" ? "loss" : "force", answer.span), el("span", {}, `largest in view ${number(answer.largest)}`));
    const [i, j] = state.pair.map((k) => `loss ${k + 1}`), { factor, shift } = answer.panels[state.pair[1]];
    const times = [factor === 1 ? j : `${number(factor)} × ${j}`, ...(Math.abs(shift) > 1e-9 ? [`${shift < 0 ? "−" : "+"} ${number(Math.abs(shift))}`] : [])].join(" ");
    this.legend.textContent = state.shade === "energy" ? `Orange: ${i} is larger. Blue: ${times} is larger. Blank: equal.` : `Colour and arrows: the force of ${i} minus that of ${factor === 1 ? j : `${number(factor)} × ${j}`}. Blank: equal.`;
    this.map.canvas.setAttribute("aria-label", `loss ${state.pair[0] + 1} minus loss ${state.pair[1] + 1}: largest difference in view ${number(answer.largest)}`);
    this.notice.textContent = this.link.fallback ? "No direct connection: pictures come through the page itself, a little slower." : "";
  }

  rescale() { this.scales = this.locked ? this.scales : {}; this.rest(); }

  // ---- drawing
  resize() { if (this.planes().map((p) => p.resize()).some(Boolean)) this.sync(); }

  invalidate(id) {
    this.painting = id ?? this.painting;
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      const { state, theme } = this, scene = { ...state, discs: false, circle: state.space === "sphere" };
      for (const { plane } of this.cards) plane.paint(scene, theme);
      this.map.paint({ ...scene, region: false, forces: false }, theme);
      if (this.painting) this.cardsBox.dataset.seq = this.painting;
    });
  }

  sync() {
    if (!this.theme) return;
    for (const plane of this.planes()) plane.sync(this.state);
    this.rows.show(this.state, this.theme);
    this.invalidate();
  }

  move() { this.sync(); this.ask(MOVING); }

  // A gesture has ended: the fine picture, the link, the verdict aloud.
  rest() {
    this.sync();
    this.ask(RESTING);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => { if (this.answer) this.live.textContent = `${this.judgement.word}. ${this.cards.map((_, k) => `Loss ${k + 1}: ${show(this.answer.panels[k].energy)}`).join(". ")}`; }, 400);
  }

  close() { this.hand.orbiting = null; this.watch?.disconnect(); this.link.close(); }
}
