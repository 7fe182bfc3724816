// Base class of pages with a player: keyboard, changes of the settings, presets, link. Subclasses
// define the page, the computation and the drawing.
import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { asset } from "../address.ts";
import type { About, State, Steps, TimelineAnswer, TimelineData } from "./types.ts";
import type { Schema, SetState, Theme } from "../types.ts";
import { loadStyles, newTheme, receiveFallback } from "../component.ts";
import { div, still, writeAddress } from "../dom.ts";
import { findPreset, mountPanel } from "../panel/panel.tsx";
import { Link, decode, socketAddress } from "../socket.ts";
import { Clock } from "./clock.ts";
import { showControls } from "./parts.ts";
import { pace } from "../screen.ts";

export const clone = <T>(x: T): T => structuredClone(x);
// N: settings of the panel: the part of a state that a change holds
export class Player<
  S extends State,
  D extends TimelineData<S>,
  A extends TimelineAnswer,
  H extends Steps<A>,
  N,
> extends Clock<S, A, H> {
  root: ParentNode;
  data: D;
  about: About;
  query: string;
  hidden: Set<string>;
  options: D["options"];
  // What the page shows of the player; it follows without rendering the page.
  view = {
    playing: signal(false),
    at: signal(0),
    last: signal(0),
    time: signal(""),
    notice: signal(""),
    live: signal(""), // for screen readers
    pressed: signal<number | null>(null), // preset
  };
  side = div("panel");
  show = () => showControls(this);
  ready: Promise<void>;
  schema: Schema;
  whole: HTMLElement;
  observer: ResizeObserver;
  now: N;
  nowSeen: string;
  written: string;
  theme: Theme;
  setState: SetState;
  telling: number;
  pending: number | null = null;
  said = "";
  address = ""; // query of the state and the step shown
  rested: TimelineAnswer["query"]; // query of the state alone
  keys: Record<string, (event: KeyboardEvent) => unknown> = {
    " ": () => this.toggle(),
    Home: () => this.reset(),
    End: () => this.end(),
  };

  constructor(root: ParentNode, data: D, about: About) {
    super({ ...about, most: data.options.limits.steps });
    this.root = root;
    this.data = data;
    this.about = about;
    this.state = clone(data.state);
    this.goal = data.step ?? 0;
    this.query = JSON.stringify(data.query);
    this.hidden = new Set(data.hide);
    this.options = data.options;
    this.link = new Link(
      socketAddress(data, about.api),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data);
  }

  async build(data: D) {
    await this.createElements();
    this.start(data);
  }

  async createElements() {
    const common = asset("kit/timeline/timeline.css");
    this.schema = await loadStyles(this.root, this.about.styles, common);
    this.now = clone(this.settingsAt(this.at));
    this.root.append((this.whole = this.dom()));
    newTheme(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.whole);
    document.addEventListener("visibilitychange", this.leave);
    addEventListener("dml-link", this.tellAddress);
    this.panel();
  }

  start(data: D) {
    this.resize();
    this.press(findPreset(this.options.presets, data.state));
    this.requestFirst();
    if (data.idle && !still()) this.play();
  }

  leave = () => {
    if (document.hidden) this.pause();
  };

  // ---- hooks for subclasses
  // Return the figure and the panel for the settings `now`.
  page(): ComponentChildren {
    return null;
  }
  // Return the whole page; pages without elements of their own render `page`.
  dom(): HTMLElement {
    const whole = div("lab");
    this.show = mountPanel(whole, () => this.page());
    return whole;
  }
  resize() {
    this.invalidate();
  }
  // Called after the theme has changed.
  onTheme() {}
  // Handle the additional fields of a link.
  onLink(_answer: A) {}
  // Return parameters of the address in addition to the state and the step.
  marks(): Record<string, string> {
    return {};
  }
  // Return a description of the step shown, for screen readers.
  describeStep() {
    return "";
  }
  // Return the notice shown while there is no message.
  defaultNotice() {
    return "";
  }
  get sentence() {
    return "";
  }
  // Settings that can change during playback, by name.
  get settings(): string[] {
    return [];
  }
  // Called when another state replaces the settings of the panel.
  onStateReplaced() {}

  // ---- the page
  panel() {
    this.now = clone(this.settingsAt(this.at));
    this.nowSeen = JSON.stringify(this.now);
    this.show();
  }

  // Mark the preset that the page shows; none by default.
  press(preset: number | null = null) {
    this.view.pressed.value = preset;
  }

  onPlayToggled(playing: boolean) {
    this.view.playing.value = playing;
  }

  // Show the position of the step among those loaded.
  progress() {
    const { view, at } = this,
      rate = this.playing ? pace(this.frameTimes) : null;
    view.last.value = Math.max(this.history.last, at);
    view.at.value = at;
    view.time.value = this.moment() + (rate ? `, ${rate}/s` : "");
    this.tell();
  }

  moment() {
    return `step ${this.at}`;
  }

  message(text: string) {
    this.said = text;
    this.tell();
  }

  tell() {
    const slower = "No direct connection. Steps take longer.",
      parts = [this.said || this.defaultNotice(), this.link.fallback ? slower : ""];
    this.view.notice.value = parts.filter(Boolean).join(" ");
  }

  key(event: KeyboardEvent) {
    const held = (event.target as Element).matches("input, select, button"),
      act = this.keys[event.key];
    if (!act || (held && !["Home", "PageUp", "PageDown"].includes(event.key))) return;
    if (act(event) !== false) event.preventDefault();
  }

  // ---- messages from Streamlit and Python
  async update(data: D) {
    await this.ready;
    if (newTheme(this)) {
      this.onTheme();
      this.invalidate();
    }
    const query = JSON.stringify(data.query);
    if (query !== this.query && query !== this.written) {
      this.query = query;
      this.load(data.state, data.step ?? 0);
    }
    receiveFallback(this, data);
  }

  receive(buffer: ArrayBuffer) {
    this.take(decode(buffer));
  }

  // ---- changes
  settingsAt(step: number) {
    return this.lastSettings(this.state.changes.filter((c) => c.at <= step));
  }

  // Return the values set by the last of these changes, or those of the initial state.
  lastSettings(changes: S["changes"]): N {
    const source: Record<string, any> = changes.at(-1) ?? this.state;
    return Object.fromEntries(this.settings.map((name) => [name, source[name]])) as N;
  }

  follow() {
    if (!this.pending && JSON.stringify(this.settingsAt(this.at)) !== this.nowSeen) this.panel();
  }

  // Apply a slider or a held key shortly after it comes to rest.
  commitSoon() {
    clearTimeout(this.pending ?? 0);
    this.pending = setTimeout(() => {
      this.pending = null;
      if (!this.closed) this.commit();
    }, 160);
  }

  // Apply the settings of the panel from the step shown; drop the steps after it.
  commit() {
    clearTimeout(this.pending ?? 0);
    this.pending = null;
    const { at, state } = this,
      now = clone(this.now),
      same = (before: N) => JSON.stringify(before) === JSON.stringify(now);
    if (same(this.settingsAt(at)) && !state.changes.some((c) => c.at > at)) return;
    const kept = state.changes.filter((c) => c.at < at);
    if (at === 0) this.change({ ...state, ...now, changes: [] });
    else if (same(this.lastSettings(kept))) this.change({ ...state, changes: kept });
    else this.change({ ...state, changes: [...kept, { at, ...now }] });
  }

  // Switch to a state that differs from the current one only after the step shown.
  change(state: S, from = this.at + 1, played = this.playing) {
    const { changes } = this.options.limits,
      full = state.changes.length > changes;
    this.press();
    if (full) this.load({ ...state, ...clone(this.now), changes: [] });
    else {
      this.fork(state, from);
      this.panel();
      this.ask({ rest: true });
    }
    if (played) this.play();
    else this.onPlayToggled(false);
    this.message(
      full
        ? `A link stores at most ${changes} changes. Training restarted with these settings.`
        : "",
    );
  }

  restart(change: Record<string, unknown>) {
    const played = this.playing;
    this.press();
    this.load({ ...clone(this.state), ...clone(this.now), changes: [], ...change });
    if (played) this.play();
  }

  load(state: S, goal = 0) {
    this.renew(state, goal);
    this.data = { ...this.data, idle: false };
    this.onStateReplaced();
    this.panel();
    this.requestFirst();
  }

  preset(index: number) {
    this.load(this.options.presets[index].state);
    this.press(index);
    if (!still()) this.play();
  }

  // ---- link After a gesture: update the link and the numbers for screen readers.
  rest() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.closed) return;
      const { wanted } = this;
      this.ask({ rest: true, ...(wanted === undefined ? {} : { want: wanted, frames: [wanted] }) });
      const text = this.describeStep();
      if (text) this.view.live.value = text;
    }, 150);
  }

  remember(answer: A) {
    this.rested = answer.query;
    this.written = JSON.stringify(answer.query);
    this.address = new URLSearchParams({
      ...answer.query,
      step: String(this.goal || this.at),
    }).toString();
    this.onLink(answer);
    if (this.goal || (this.data.idle && this.playing)) return;
    // While playing, link to the step of the last change, which shows its result.
    this.write(this.playing ? (this.state.changes.at(-1)?.at ?? 0) : this.at);
  }

  // Write the address of the step shown on request, even while playing.
  tellAddress = () => {
    if (this.rested && !this.goal) this.write(this.at);
  };

  write(step: number) {
    const address = new URLSearchParams(this.rested);
    if (step > 0) address.set("step", String(step));
    for (const [name, value] of Object.entries(this.marks())) address.set(name, value);
    writeAddress(address.toString(), ["hide", "socket"]);
  }

  // Return the file name for an export of the state and the step shown.
  file(name: string) {
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
            pose: (share: number) => {
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
