// Base class of pages with a player: keyboard, changes of the settings, presets, link. Subclasses
// define the page, the computation and the drawing.
import type { ComponentChildren } from "preact";
import { asset } from "../address.ts";
import type { About, State, Steps, TimelineAnswer, TimelineData } from "./types.ts";
import type { Schema, SetState, Theme } from "../types.ts";
import { loadStyles, newTheme, receiveFallback } from "../component.ts";
import { div, still } from "../dom.ts";
import { findPreset, mountPanel } from "../panel/panel.tsx";
import { Link, decode, socketAddress } from "../socket.ts";
import { PlayerAddress } from "./address.ts";
import { settingsOf, withSettings } from "./changes.ts";
import { Clock } from "./clock.ts";
import { scrubMotions } from "./playback.ts";
import { PlayerView, pressKey } from "./view.ts";

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
  view = new PlayerView();
  ready: Promise<void>;
  schema: Schema;
  whole = div("lab");
  show: () => void; // renders the page
  observer: ResizeObserver;
  now: N;
  nowSeen: string;
  theme: Theme;
  setState: SetState;
  telling: number;
  pending: number | null = null;
  addressBar = new PlayerAddress();
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
    this.link = new Link(socketAddress(data, about.api), this.receive, (request) =>
      this.setState("ask", request),
    );
    this.ready = this.build(data);
  }

  async build(data: D) {
    await this.createElements();
    this.start(data);
  }

  async createElements() {
    const { root, about } = this;
    this.schema = await loadStyles(root, about.styles, asset("kit/timeline/timeline.css"));
    this.now = clone(this.settingsAt(this.at));
    newTheme(this);
    this.onSchema?.();
    this.show = mountPanel(this.whole, () => this.page());
    root.append(this.whole);
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
  resize() {
    this.invalidate();
  }
  onSchema?(): void; // the schema is loaded; the page is rendered next
  onTheme?(): void; // the theme has changed
  onStateReplaced?(): void; // another state replaces the settings of the panel
  onLink?(answer: A): void; // additional fields of a link
  marks?(): Record<string, string>; // further parameters of the address
  describeStep?(): string; // the step shown, for screen readers
  defaultNotice?(): string; // while there is no message
  get sentence() {
    return "";
  }
  // Settings that can change during playback, by name.
  get settings(): string[] {
    return [];
  }

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
    this.view.show(this.at, this.history.last, this.moment(), this.playing ? this.frameTimes : []);
    this.tell();
  }

  moment() {
    return `step ${this.at}`;
  }

  message(text: string) {
    this.view.message = text;
    this.tell();
  }

  tell() {
    const slower = this.link.fallback ? "No direct connection. Steps take longer." : "";
    this.view.tell(this.defaultNotice?.(), slower);
  }

  key = (event: KeyboardEvent) => pressKey(this.keys, event);

  // ---- messages from Streamlit and Python
  async update(data: D) {
    await this.ready;
    if (newTheme(this)) {
      this.onTheme?.();
      this.invalidate();
    }
    const query = JSON.stringify(data.query);
    if (query !== this.query && !this.addressBar.matches(query)) {
      this.query = query;
      this.load(data.state, data.step ?? 0);
    }
    receiveFallback(this, data);
  }

  receive = (buffer: ArrayBuffer) => this.take(decode(buffer));

  // ---- changes
  settingsAt(step: number): N {
    return settingsOf(this.state, this.settings, step);
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
    const changed = withSettings(this.state, this.settings, this.at, clone(this.now));
    if (changed) this.change(changed);
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
    this.onStateReplaced?.();
    this.panel();
    this.requestFirst();
  }

  preset(index: number) {
    this.load(this.options.presets[index].state);
    this.press(index);
    if (!still()) this.play();
  }

  // ---- link
  // After a gesture: update the link and the numbers for screen readers.
  rest() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.playing || this.closed) return;
      const { wanted } = this;
      this.ask({ rest: true, ...(wanted === undefined ? {} : { want: wanted, frames: [wanted] }) });
      const text = this.describeStep?.();
      if (text) this.view.live.value = text;
    }, 150);
  }

  remember(answer: A) {
    if (answer.query) this.addressBar.remember(answer.query, this.goal || this.at);
    this.onLink?.(answer);
    if (this.goal || (this.data.idle && this.playing)) return;
    // While playing, link to the step of the last change, which shows its result.
    const step = this.playing ? (this.state.changes.at(-1)?.at ?? 0) : this.at;
    this.addressBar.write(step, this.marks?.());
  }

  // Write the address of the step shown on request, even while playing.
  tellAddress = () => {
    if (this.addressBar.state && !this.goal) this.addressBar.write(this.at, this.marks?.());
  };

  // Query of the state and the step shown.
  get address() {
    return this.addressBar.text;
  }

  // Return the file name for an export of the state and the step shown.
  file(name: string) {
    const base = new URL(this.data.base, location.href);
    return new URL(`${this.about.api}/${name}?${this.addressBar.text}`, base).href;
  }

  get motions() {
    return scrubMotions(this);
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
