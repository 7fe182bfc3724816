// Page with a player: a figure on a clock, with playback, changes of the settings, presets and an
// address. A page is an object that gives its figure, and uses the parts of its player:
//
//   class Charges implements TimelineFigure<ChargesKinds> {
//     constructor(player: Player<ChargesKinds>) { ... }  // style sheets and schema are loaded
//     page() { return h(Page, { app: this }); }          // rendered when other settings are shown
//     paint() { ... }                                    // paints the step player.clock.at
//   }
//   export const { render, unmount } = definePlayer<ChargesKinds>(
//     { api: "api/charges", styles: "losses/charges/charges.css", ahead: 1, empty },
//     (player) => new Charges(player),
//   );
//
//   clock      the step shown, the steps that are loaded, and the requests for others
//   playback   play and pause, speed, single steps, scrubbing
//   changes    settings that act from the step shown, other states, presets
//   address    the link of the state and the step shown
//   view       what controls and messages show, as signals
import type { ComponentChildren } from "preact";
import type { StepChart } from "../chart/steps.tsx";
import type { Session, SessionPage } from "../session.ts";
import type { About, Kinds, TimelineFigure, TimelineRequest } from "./types.ts";
import { StepCharts } from "../chart/steps.tsx";
import { still } from "../dom.ts";
import { findPreset, mountPanel } from "../panel/panel.tsx";
import { pace } from "../screen.ts";
import { defineSession } from "../session.ts";
import { PlayerAddress } from "./address.ts";
import { Changes } from "./changes.ts";
import { Clock } from "./clock.ts";
import { Playback } from "./playback.ts";
import { newView, pressKey } from "./view.ts";

type PlayerSession<K extends Kinds> = Session<K["data"], TimelineRequest<K["state"]>, K["answer"]>;

export class Player<K extends Kinds> implements SessionPage<K["data"], K["answer"]> {
  readonly session: PlayerSession<K>;
  readonly about: About<K>;
  readonly options: K["data"]["options"];
  readonly figure: TimelineFigure<K>;
  readonly clock: Clock<K>;
  readonly playback: Playback;
  readonly changes: Changes<K>;
  readonly address: PlayerAddress<K>;
  readonly view = newView();
  readonly show: () => void; // renders the page
  idle: boolean; // the address requested nothing, and its state was not replaced
  private message = "";
  private readonly observer = new ResizeObserver(() => this.resize());
  private readonly listening = new AbortController();

  constructor(
    session: PlayerSession<K>,
    about: About<K>,
    create: (player: Player<K>) => TimelineFigure<K>,
  ) {
    const { data, whole } = session,
      { signal } = this.listening;
    this.session = session;
    this.about = about;
    this.options = data.options;
    this.idle = data.idle;
    this.changes = new Changes(this);
    this.address = new PlayerAddress(this, data.query);
    this.clock = new Clock(session, about, data, {
      stride: () => this.playback.stride,
      pause: (why) => this.playback.pause(why),
      message: (text) => this.tell(text),
      onToggle: (playing) => (this.view.playing.value = playing),
      onLink: (answer) => this.address.take(answer),
      onStep: () => this.changes.follow(),
      onGoal: () => {
        this.panel();
        this.address.rest();
      },
      rest: () => this.address.rest(),
    });
    this.playback = new Playback(this.clock, about.speeds);
    this.figure = this.clock.figure = create(this);
    this.changes.read();
    this.show = mountPanel(whole, () => this.figure.page());
    this.observer.observe(whole);
    const leave = () => document.hidden && this.playback.pause();
    document.addEventListener("visibilitychange", leave, { signal });
    addEventListener("dml-link", () => this.address.tell(), { signal });
    this.start();
  }

  private async start() {
    await this.figure.ready;
    if (this.clock.closed) return;
    this.resize();
    this.view.pressed.value = findPreset(this.options.presets, this.clock.state);
    this.clock.requestFirst();
    if (this.idle && !still()) this.playback.play();
  }

  // ---- the page
  // Render the page with the settings in effect at the step shown.
  panel() {
    this.changes.read();
    this.show();
    this.figure.onPanel?.();
  }

  // Show the step, its position among those loaded, and the pace of playback.
  progress() {
    const { view, figure } = this,
      { at, history, playing, frameTimes } = this.clock,
      rate = playing && pace(frameTimes);
    view.at.value = at;
    view.last.value = Math.max(history.last, at);
    view.time.value = (figure.moment?.() ?? `step ${at}`) + (rate ? `, ${rate}/s` : "");
    this.tell(this.message);
  }

  // Show a message until the next one; without one, what holds at the step shown.
  tell(message: string) {
    const text = message || this.figure.defaultNotice?.(),
      slower = this.session.link.fallback && "No direct connection. Steps take longer.";
    this.message = message;
    this.view.notice.value = [text, slower].filter(Boolean).join(" ");
  }

  // Return charts over the steps, on which the visitor scrubs; `after` follows them.
  charts<D>(charts: StepChart<D>[], after?: ComponentChildren) {
    return new StepCharts(
      charts,
      (step) => this.playback.scrubTo(step),
      () => this.address.rest(),
      after,
    );
  }

  key(event: KeyboardEvent) {
    const keys = {
      " ": () => this.playback.toggle(),
      Home: () => this.playback.goTo(0),
      End: () => this.playback.goTo(this.clock.history.last),
      ...this.figure.keys,
    };
    pressKey(keys, event);
  }

  get theme() {
    return this.session.theme.peek();
  }

  get motions() {
    return this.playback.motions;
  }

  // ---- messages from Streamlit and Python
  onAnswer(answer: K["answer"]) {
    this.clock.take(answer);
  }

  onTheme() {
    this.figure.onTheme?.();
    this.clock.invalidate();
  }

  onData({ query, state, step }: K["data"]) {
    if (this.address.isFollowed(query)) this.changes.load(state, step ?? 0);
  }

  resize() {
    this.figure.resize();
    this.clock.invalidate();
  }

  paint() {
    this.figure.paint();
  }

  close() {
    for (const part of [this.clock, this.changes, this.address]) part.close();
    this.listening.abort();
    this.observer.disconnect();
    this.figure.close?.();
  }
}

// Return the render and unmount functions of a page with a player.
export const definePlayer = <K extends Kinds>(
  about: About<K>,
  create: (player: Player<K>) => TimelineFigure<K>,
) =>
  defineSession(
    { ...about, below: "kit/timeline/timeline.css" },
    (session: PlayerSession<K>) => new Player(session, about, create),
  );
