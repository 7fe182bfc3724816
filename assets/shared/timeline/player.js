// A page that plays: transport bar, keyboard, panel, presets, link. Its class adds what is computed
// and how a step is drawn.
/** @import { About, State, Steps, TimelineAnswer, TimelineData, TimelineRequest } from "./types.js" */
/** @import { Child, Schema, SetState, Theme } from "../types.js" */
import { loadStyles, newTheme, receiveFallback } from "../component.js";
import { div, el, setText, still, writeAddress } from "../dom.js";
import { Presets } from "../controls.js";
import { Link, decode, socketAddress } from "../socket.js";
import { Clock } from "./clock.js";
import { button } from "./parts.js";
import { pace } from "../screen.js";

/**
 * @template T
 * @param {T} x
 * @returns {T}
 */
export const clone = (x) => structuredClone(x);
/**
 * @template {State} S
 * @template {TimelineData<S>} D
 * @template {TimelineAnswer} A
 * @template {Steps<A>} H
 * @template N what the panel sets: the part of a state that a change holds
 * @extends {Clock<S, A, H>}
 */
export class Player extends Clock {
  /** @type {Schema} */
  schema;
  /** @type {HTMLElement} */
  whole;
  /** @type {ResizeObserver} */
  observer;
  /** @type {N} */
  now;
  /** @type {string} */
  nowSeen;
  /** @type {string} */
  written;
  /** @type {Theme} */
  theme;
  /** @type {SetState} */
  setState;
  /** @type {number} */
  telling;
  /** @type {number | null} */
  pending = null;
  said = "";
  address = ""; // the state and the step shown, as a query
  /** @type {TimelineAnswer["query"]} */
  rested; // the state alone
  /** @type {Record<string, (event: KeyboardEvent) => unknown>} */
  keys = {
    " ": () => this.toggle(),
    Home: () => this.reset(),
    End: () => this.end(),
  };

  /**
   * @param {ParentNode} root
   * @param {D} data
   * @param {About} about
   */
  constructor(root, data, about) {
    super({ ...about, most: data.options.limits.steps });
    this.root = root;
    this.data = data;
    this.about = about;
    this.state = clone(data.state);
    this.goal = data.step ?? 0;
    this.query = JSON.stringify(data.query);
    this.hidden = new Set(data.hide);
    /** @type {D["options"]} */
    this.options = data.options;
    this.playButton = button("Play", "play", () => this.toggle(), { class: "play" });
    this.scrub = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "step" });
    this.clock = el("output");
    this.notice = el("p", { class: "caption notice", role: "status" });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.side = div("panel");
    this.presets = new Presets(data.options.presets, (i) => this.preset(i), this.sentence);
    /** @type {Link<TimelineRequest<S>>} */
    this.link = new Link(
      socketAddress(data, about.api),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data);
  }

  /** @param {D} data */
  async build(data) {
    await this.dress();
    this.start(data);
  }

  async dress() {
    const styles = new URL("timeline.css", import.meta.url).href;
    this.schema = await loadStyles(this.root, this.about.module, styles);
    this.root.append((this.whole = this.dom()));
    newTheme(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.whole);
    document.addEventListener("visibilitychange", this.leave);
    addEventListener("dml-link", this.tellAddress);
    this.panel();
  }

  /** @param {D} data */
  start(data) {
    this.resize();
    this.presets.find(data.state);
    this.begin();
    if (data.idle && !still()) this.play();
  }

  leave = () => {
    if (document.hidden) this.pause();
  };

  // ---- what a page says
  /** @returns {HTMLElement} */
  dom() {
    throw new TypeError("a page has its own elements");
  }
  // The panel, for the settings `now`.
  /** @returns {Child[]} */
  controls() {
    return [];
  }
  resize() {
    this.invalidate();
  }
  // The theme is another.
  themed() {}
  // What comes with a link.
  /** @param {A} _answer */
  told(_answer) {}
  // More for the address than the state and the step.
  /** @returns {Record<string, string>} */
  marks() {
    return {};
  }
  // The step shown, for those who listen.
  spoken() {
    return "";
  }
  // What the notice says while there is no message.
  aside() {
    return "";
  }
  get sentence() {
    return "";
  }
  // The settings that can change on the way, by name.
  /** @returns {string[]} */
  get settings() {
    return [];
  }
  // What a panel's settings replace is dropped with another state.
  cleared() {}

  // ---- the page
  panel() {
    this.now = clone(this.inForce(this.at));
    this.nowSeen = JSON.stringify(this.now);
    const { activeElement } = /** @type {ParentNode & Partial<ShadowRoot>} */ (this.root),
      focused = activeElement?.getAttribute("aria-label");
    this.side.replaceChildren(...this.controls());
    /** @type {HTMLElement[]} */ ([...this.side.querySelectorAll("[aria-label]")])
      .find((e) => e.getAttribute("aria-label") === focused)
      ?.focus();
  }

  /**
   * @param {string} name
   * @param {string} title
   * @param {(Child | Child[])[]} parts
   */
  section(name, title, ...parts) {
    const shown = this.hidden.has(name) ? [] : parts.flat();
    return shown.length ? [el("section", {}, title ? el("h4", {}, title) : "", ...shown)] : [];
  }

  /** @param {boolean} playing */
  toggled(playing) {
    this.playButton.textContent = playing ? "Pause" : "Play";
    this.playButton.setAttribute("aria-label", playing ? "pause" : "play");
  }

  // Where the step shown stands among those that are here.
  progress() {
    this.scrub.max = String(Math.max(this.history.last, this.at));
    this.scrub.value = String(this.at);
    const rate = this.playing ? pace(this.frameTimes) : null;
    setText(this.clock, this.moment() + (rate ? `, ${rate}/s` : ""));
    this.tell();
  }

  moment() {
    return `step ${this.at}`;
  }

  /** @param {string} text */
  message(text) {
    this.said = text;
    this.tell();
  }

  tell() {
    const slower = "No direct connection: steps come through the page itself, slower.",
      parts = [this.said || this.aside(), this.link.fallback ? slower : ""];
    setText(this.notice, parts.filter(Boolean).join(" "));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const held = /** @type {Element} */ (event.target).matches("input, select, button"),
      act = this.keys[event.key];
    if (!act || (held && !["Home", "PageUp", "PageDown"].includes(event.key))) return;
    if (act(event) !== false) event.preventDefault();
  }

  // ---- from Streamlit and from Python
  /** @param {D} data */
  async update(data) {
    await this.ready;
    if (newTheme(this)) {
      this.themed();
      this.invalidate();
    }
    const query = JSON.stringify(data.query);
    if (query !== this.query && query !== this.written) {
      this.query = query;
      this.load(data.state, data.step ?? 0);
    }
    receiveFallback(this, data);
  }

  /** @param {ArrayBuffer} buffer */
  receive(buffer) {
    this.take(decode(buffer));
  }

  // ---- what is changed
  /** @param {number} step */
  inForce(step) {
    return this.latest(this.state.changes.filter((c) => c.at <= step));
  }

  // What the last of these changes set, or the state at first.
  /**
   * @param {S["changes"]} changes
   * @returns {N}
   */
  latest(changes) {
    /** @type {Record<string, any>} */
    const source = changes.at(-1) ?? this.state;
    return /** @type {N} */ (Object.fromEntries(this.settings.map((name) => [name, source[name]])));
  }

  follow() {
    if (!this.pending && JSON.stringify(this.inForce(this.at)) !== this.nowSeen) this.panel();
  }

  // A slider at rest, or a held key: what it says is in force a moment later.
  soon() {
    clearTimeout(this.pending ?? 0);
    this.pending = setTimeout(() => {
      this.pending = null;
      if (!this.closed) this.commit();
    }, 160);
  }

  // The settings of the panel act after the step shown; what was to come after it is dropped.
  commit() {
    clearTimeout(this.pending ?? 0);
    this.pending = null;
    const { at, state } = this,
      now = clone(this.now),
      same = (/** @type {N} */ before) => JSON.stringify(before) === JSON.stringify(now);
    if (same(this.inForce(at)) && !state.changes.some((c) => c.at > at)) return;
    const kept = state.changes.filter((c) => c.at < at);
    if (at === 0) this.change({ ...state, ...now, changes: [] });
    else if (same(this.latest(kept))) this.change({ ...state, changes: kept });
    else this.change({ ...state, changes: [...kept, { at, ...now }] });
  }

  // Another state that differs from this one only after the step shown.
  /** @param {S} state */
  change(state, from = this.at + 1, played = this.playing) {
    const { changes } = this.options.limits,
      full = state.changes.length > changes;
    this.presets.press();
    if (full) this.load({ ...state, ...clone(this.now), changes: [] });
    else {
      this.fork(state, from);
      this.panel();
      this.ask({ rest: true });
    }
    if (played) this.play();
    else this.toggled(false);
    this.message(
      full ? `A link keeps ${changes} changes on the way: started again with these settings.` : "",
    );
  }

  /** @param {Record<string, unknown>} change */
  restart(change) {
    const played = this.playing;
    this.presets.press();
    this.load({ ...clone(this.state), ...clone(this.now), changes: [], ...change });
    if (played) this.play();
  }

  /** @param {S} state */
  load(state, goal = 0) {
    this.renew(state, goal);
    this.data = { ...this.data, idle: false };
    this.cleared();
    this.panel();
    this.begin();
  }

  /** @param {number} index */
  preset(index) {
    this.load(this.options.presets[index].state);
    this.presets.press(index);
    if (!still()) this.play();
  }

  // ---- the link
  // A gesture has ended: the link, and the numbers for those who listen.
  rest() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.closed) return;
      const { wanted } = this;
      this.ask({ rest: true, ...(wanted === undefined ? {} : { want: wanted, frames: [wanted] }) });
      const text = this.spoken();
      if (text) this.live.textContent = text;
    }, 150);
  }

  /** @param {A} answer */
  remember(answer) {
    this.rested = answer.query;
    this.written = JSON.stringify(answer.query);
    this.address = new URLSearchParams({
      ...answer.query,
      step: String(this.goal || this.at),
    }).toString();
    this.told(answer);
    if (this.goal || (this.data.idle && this.playing)) return;
    // While it plays, the step of the last change: a link shows what it changed to.
    this.write(this.playing ? (this.state.changes.at(-1)?.at ?? 0) : this.at);
  }

  // Asked for a link: that of the step shown, be it that it plays.
  tellAddress = () => {
    if (this.rested && !this.goal) this.write(this.at);
  };

  /** @param {number} step */
  write(step) {
    const address = new URLSearchParams(this.rested);
    if (step > 0) address.set("step", String(step));
    for (const [name, value] of Object.entries(this.marks())) address.set(name, value);
    writeAddress(address.toString(), ["hide", "socket"]);
  }

  // A file of the state and the step shown.
  /** @param {string} name */
  file(name) {
    const base = new URL(this.data.base, location.href);
    return new URL(`${this.about.api}/${name}?${this.address}`, base).href;
  }

  get motions() {
    const { at, history } = this,
      { last } = history;
    return last < 1
      ? []
      : [
          {
            title: `step 0 to ${last} and back`,
            pose: (/** @type {number} */ share) => {
              this.pause();
              this.to(Math.round(last * (1 - Math.abs(1 - 2 * share))));
            },
            end: () => this.to(at),
          },
        ];
  }

  close() {
    this.closed = true;
    this.playing = false;
    for (const timer of [this.telling, this.pending, this.preparing]) clearTimeout(timer ?? 0);
    document.removeEventListener("visibilitychange", this.leave);
    removeEventListener("dml-link", this.tellAddress);
    this.observer?.disconnect();
    this.link.close();
  }
}
