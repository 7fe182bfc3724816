// Playback of a clock: play and pause, speed, single steps, and scrubbing.
import type { Motion } from "../types.ts";
import type { Clock } from "./clock.ts";
import type { Speed } from "./types.ts";

const SPEEDS: Speed[] = [
  ["slow motion", 1, 4],
  ["12 steps/s", 1, 12],
  ["30 steps/s", 1, 30],
  ["full speed", 1, 1000],
];

export class Playback {
  readonly speeds: readonly Speed[];
  speed = 2;
  private readonly clock: Clock<any>;
  private due = 0; // time of the next step
  private ticking: number | null = null;
  private played = false; // before a hold

  constructor(clock: Clock<any>, speeds = SPEEDS) {
    this.clock = clock;
    this.speeds = speeds;
  }

  private get epoch() {
    return this.clock.figure.epoch ?? 1;
  }

  // Steps from one step that is displayed to the next.
  get stride() {
    return this.speeds[this.speed][1] || this.epoch;
  }

  play() {
    const { clock } = this;
    if (clock.playing) return;
    clock.playing = true;
    clock.frameTimes = [];
    this.due = clock.began = performance.now();
    clock.hooks.message("");
    clock.hooks.onToggle(true);
    this.tickSoon();
  }

  pause(why?: string) {
    const { clock } = this,
      { hooks, playing } = clock;
    clock.wanted = undefined;
    if (why !== undefined) hooks.message(why);
    if (!playing) return;
    clock.playing = false;
    hooks.onToggle(false);
    clock.invalidate();
    hooks.rest();
  }

  toggle() {
    if (this.clock.playing) this.pause();
    else this.play();
  }

  setSpeed(index: number) {
    this.speed = index;
    this.clock.frameTimes = [];
  }

  // ---- steps
  step(by: number, epoch = false) {
    const { clock } = this,
      unit = epoch ? this.epoch : 1,
      to = unit * (by > 0 ? Math.floor(clock.at / unit) + 1 : Math.ceil(clock.at / unit) - 1);
    this.pause("");
    clock.goal = 0;
    if (to < 0 || to > clock.most) return;
    if (to <= clock.history.last) clock.to(to);
    else clock.await(to);
    clock.hooks.rest();
  }

  // Show a step while the scrubber is dragged.
  scrubTo(step: number) {
    this.pause();
    this.clock.to(step);
  }

  // Pause, and show a step that is loaded.
  goTo(step: number) {
    this.pause("");
    this.clock.to(step);
    this.clock.hooks.rest();
  }

  // Motion for recordings: from the first step to the last one and back.
  get motions(): Motion[] {
    const { at, history } = this.clock,
      { last } = history;
    if (last < 1) return [];
    const pose = (share: number) => this.scrubTo(Math.round(last * (1 - Math.abs(1 - 2 * share))));
    return [{ title: `step 0 to ${last} and back`, pose, end: () => this.clock.to(at) }];
  }

  // Pause while the visitor changes something that the steps depend on.
  hold() {
    this.played = this.clock.playing;
    Object.assign(this.clock, { playing: false, wanted: undefined, drafting: true });
  }

  // End a pause and return true if the page was playing before it.
  release() {
    const played = this.clock.drafting ? this.played : this.clock.playing;
    Object.assign(this.clock, { playing: false, drafting: false });
    return played;
  }

  // ---- frames
  // Show a step in every frame until the clock is paused.
  private tickSoon() {
    this.ticking ??= requestAnimationFrame(() => {
      this.ticking = null;
      if (this.clock.playing && !this.clock.closed) this.tick();
    });
  }

  private tick() {
    const { clock } = this,
      now = performance.now(),
      { unseen, history } = clock;
    // Paint a step that arrived meanwhile before going on, so that none is skipped. The next step
    // is expected at once, so that its answer triggers the next request.
    if (unseen) clock.repaint();
    if (clock.wanted === undefined && now >= this.due && history.last >= 0 && !clock.goal)
      this.next(now, unseen);
    clock.askAhead();
    clock.repaint();
    this.tickSoon();
  }

  // Show the next step, or wait for it; pause at the end of the history.
  private next(now: number, unseen: boolean) {
    const { clock, stride } = this,
      to = (Math.floor(clock.at / stride) + 1) * stride,
      isLoaded = clock.history.has(to),
      { full = "Reset, or go back and change a setting." } = clock.figure;
    if (to > clock.most) return this.pause(`${clock.at} steps; the history is full. ${full}`);
    if (unseen && isLoaded) return;
    this.due = Math.max(this.due + 1000 / this.speeds[this.speed][2], now - 100);
    if (isLoaded) clock.arrive(to);
    else clock.wanted = to;
  }
}
