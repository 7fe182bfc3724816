// Clock of a page with a player: the step shown, the steps requested from Python, and playback. It
// handles no elements; player.ts does.
import type { Link } from "../socket.ts";
import type { About, Speed, State, Steps, TimelineAnswer, TimelineRequest } from "./types.ts";

import { firstId } from "../socket.ts";
import { approach, askAhead, prepare, reportDelay, tickSoon } from "./playback.ts";

const SPEEDS: Speed[] = [
  ["slow motion", 1, 4],
  ["12 steps/s", 1, 12],
  ["30 steps/s", 1, 30],
  ["full speed", 1, 1000],
];

// S: state that determines the steps
// H: steps that are loaded
export class Clock<S extends State, A extends TimelineAnswer, H extends Steps<A>> {
  ahead: number;
  speeds: Speed[];
  speed: number;
  most: number;
  history: H;
  at = 0; // step shown
  goal = 0; // step named by a link, until it is loaded
  seq = firstId();
  answered = this.seq;
  revision = 0; // of the future; every change increments it
  revisions: Map<number, [revision: number, draft: boolean]> = new Map(); // revision by request
  playing = false;
  frameTimes: number[] = [];
  due = 0;
  began = 0;
  wanted: number | undefined; // step to show once it is loaded
  recordedTo = -1; // last step of a recording that plays
  trained = -1; // last step that Python has computed
  drafting = false; // a slider is still moving
  played = false; // playing before a hold
  late = false;
  unseen = false; // the step that arrived is not painted yet
  needsLink = false;
  closed = false;
  preparing: number | null = null;
  ticking: number | null = null;
  frameRequest: number | null = null;
  state: S;
  link: Link<TimelineRequest<S>>;

  constructor({
    ahead,
    speeds = SPEEDS,
    speed = 2,
    most,
  }: Pick<About, "ahead" | "speeds" | "speed"> & { most: number }) {
    this.ahead = ahead;
    this.speeds = speeds;
    this.speed = speed;
    this.most = most;
    this.history = this.empty();
  }

  // ---- hooks for pages
  empty(): H {
    throw new TypeError("a page keeps its own steps");
  }
  onAnswer?(answer: A): void; // `A` may carry more than steps
  onDraft?(answer: A): void; // answer to a draft
  remember?(answer: A): void; // link and its additional fields
  follow?(): void; // the step shown has changed
  paint?(): void;
  panel() {}
  rest() {}
  onPlayToggled(_playing: boolean) {}
  message(_text: string) {}
  // Number of steps per epoch.
  get epoch() {
    return 1;
  }
  get full() {
    return "Reset, or go back and change a setting.";
  }

  get stride() {
    return this.speeds[this.speed][1] || this.epoch;
  }

  // ---- requests to Python
  ask(more: Partial<TimelineRequest<S>> = {}) {
    this.needsLink ||= Boolean(more.rest);
    const { last } = this.history,
      request = {
        id: ++this.seq,
        state: this.state,
        have: last,
        want: Math.max(last, this.at),
        show: this.at,
        stride: this.stride,
        ...more,
        frames: this.history.sparse ? more.frames : undefined,
        rest: this.needsLink && !more.draft,
      };
    this.revisions.set(request.id, [this.revision, Boolean(more.draft)]);
    this.link.send(request);
  }

  // Request the first step and the step of a link.
  requestFirst() {
    const { goal } = this;
    this.ask({ rest: true, want: goal, frames: goal ? [goal] : [] });
  }

  take(answer: A) {
    const [revision, draft] = this.revisions.get(answer.id) ?? [-1, false];
    this.answered = Math.max(this.answered, answer.id);
    for (const id of this.revisions.keys()) if (id <= answer.id) this.revisions.delete(id);
    if (revision !== this.revision) return;
    if (answer.preparing) {
      this.onAnswer?.(answer);
      prepare(this, answer.preparing, Boolean(answer.failed));
      return;
    }
    if (draft) {
      if (this.drafting) this.onDraft?.(answer);
      return;
    }
    if (this.preparing) {
      this.preparing = null;
      this.message("");
    }
    this.trained = answer.ready;
    this.history.add(answer);
    this.onAnswer?.(answer);
    if (answer.query) {
      this.needsLink = false;
      this.remember?.(answer);
    }
    const { last } = this.history;
    if (answer.stopped) this.goal = Math.min(this.goal, last);
    if (this.goal) approach(this);
    else reportDelay(this);
    if (this.wanted !== undefined && this.history.has(this.wanted)) this.arrive(this.wanted);
    if (answer.stopped && (Number(this.wanted) > last || (this.playing && this.at >= last)))
      this.pause(`${answer.stopped}. Lower the learning rate, or go back and change a setting.`);
    askAhead(this, true);
    this.invalidate();
  }

  // ---- playback
  play() {
    if (this.playing) return;
    this.playing = true;
    this.frameTimes = [];
    this.due = this.began = performance.now();
    this.message("");
    this.onPlayToggled(true);
    tickSoon(this);
  }

  pause(why?: string) {
    this.wanted = undefined;
    if (why !== undefined) this.message(why);
    if (!this.playing) return;
    this.playing = false;
    this.onPlayToggled(false);
    this.invalidate();
    this.rest();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  setSpeed(index: number) {
    this.speed = index;
    this.frameTimes = [];
  }

  arrive(step: number) {
    this.wanted = undefined;
    this.at = step;
    this.unseen = true;
    this.frameTimes.push(performance.now());
    if (this.frameTimes.length > 30) this.frameTimes.shift();
    this.follow?.();
    this.invalidate();
    if (!this.playing) this.rest();
  }

  step(by: number, epoch = false) {
    this.pause("");
    this.goal = 0;
    const unit = epoch ? this.epoch : 1,
      to =
        by > 0 ? (Math.floor(this.at / unit) + 1) * unit : (Math.ceil(this.at / unit) - 1) * unit;
    if (to < 0 || to > this.most) return;
    if (to <= this.history.last) this.to(to);
    else {
      this.wanted = to;
      askAhead(this);
    }
    this.rest();
  }

  to(step: number) {
    if (this.goal) this.message("");
    this.goal = 0;
    this.at = Math.min(Math.max(step, 0), Math.max(this.history.last, 0));
    this.follow?.();
    if (!this.history.has(this.at)) {
      this.wanted = this.at;
      askAhead(this);
    }
    this.invalidate();
  }

  // Show a step while the scrubber is dragged.
  scrubTo(step: number) {
    this.pause();
    this.to(step);
  }

  // Pause while the visitor changes something that the steps depend on.
  hold() {
    this.played = this.playing;
    this.playing = false;
    this.wanted = undefined;
    this.drafting = true;
  }

  // End a pause and return true if the page was playing before it.
  release() {
    const played = this.drafting ? this.played : this.playing;
    this.drafting = false;
    this.playing = false;
    return played;
  }

  reset() {
    this.pause("");
    this.to(0);
    this.rest();
  }

  end() {
    this.pause("");
    this.to(this.history.last);
    this.rest();
  }

  // ---- changes of the future Drop all steps after the one shown. `from`: first step to recompute.
  fork(state: S, from: number) {
    this.revision += 1;
    this.state = state;
    this.wanted = undefined;
    this.goal = 0;
    this.recordedTo = -1;
    this.trained = -1;
    this.history.forget(from);
  }

  // goal: step to go to
  renew(state: S, goal: number) {
    this.pause("");
    this.revision += 1;
    this.state = structuredClone(state);
    this.history = this.empty();
    this.at = 0;
    this.goal = goal;
    this.recordedTo = -1;
    this.trained = -1;
    this.drafting = false;
    clearTimeout(this.preparing ?? 0);
    this.preparing = null;
  }

  // ---- painting
  invalidate() {
    this.frameRequest ??= requestAnimationFrame(() => this.repaint());
  }

  // Do what `invalidate` scheduled, immediately.
  repaint() {
    if (!this.frameRequest) return;
    cancelAnimationFrame(this.frameRequest);
    this.frameRequest = null;
    this.unseen = false;
    if (!this.closed) this.paint?.();
  }
}
