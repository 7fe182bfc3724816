// Clock of a page with a player: the step shown, the steps requested from Python, and playback. It
// handles no elements; player.js does.
import type { Link } from "../socket.ts";
import type { About, Speed, State, Steps, TimelineAnswer, TimelineRequest } from "./types.ts";

import { firstId } from "../socket.ts";
import { nextQuestion } from "./ahead.ts";

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
  // Handle an answer; `A` may carry more than steps.
  onAnswer(_answer: A) {}
  // Handle an answer to a draft.
  onDraft(_answer: A) {}
  // Handle a link and its additional fields.
  remember(_answer: A) {}
  // Called after the step shown has changed.
  follow() {}
  panel() {}
  paint() {}
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
      this.onAnswer(answer);
      this.prepare(answer.preparing, Boolean(answer.failed));
      return;
    }
    if (draft) {
      if (this.drafting) this.onDraft(answer);
      return;
    }
    if (this.preparing) {
      this.preparing = null;
      this.message("");
    }
    this.trained = answer.ready;
    this.history.add(answer);
    this.onAnswer(answer);
    if (answer.query) {
      this.needsLink = false;
      this.remember(answer);
    }
    const { last } = this.history;
    if (answer.stopped) this.goal = Math.min(this.goal, last);
    if (this.goal) this.approach();
    else this.isBehind();
    if (this.wanted !== undefined && this.history.has(this.wanted)) this.arrive(this.wanted);
    if (answer.stopped && (Number(this.wanted) > last || (this.playing && this.at >= last)))
      this.pause(`${answer.stopped}. Lower the learning rate, or go back and change a setting.`);
    this.next(true);
    this.invalidate();
  }

  // Handle a notice that something must be prepared before the first step; ask again until it is
  // ready.
  prepare(why: string, failed: boolean) {
    const { revision } = this;
    this.message(why);
    if (!failed)
      this.preparing = setTimeout(() => {
        if (!this.closed && revision === this.revision) this.requestFirst();
      }, 700);
  }

  // Fetch steps up to the one that a link names.
  approach() {
    const { history, goal } = this;
    if (history.has(goal)) {
      this.at = goal;
      this.goal = 0;
      this.message("");
      this.panel();
      this.rest();
      return;
    }
    this.at = Math.min(goal, Math.max(history.last, 0));
    this.message(`Computing up to step ${goal}: ${history.last} …`);
    this.ask({ want: goal, frames: [goal] });
  }

  // Return true if the display shows a recording or a step that Python has dropped: the next step
  // then waits until Python has computed those before it.
  isBehind() {
    const { last } = this.history,
      late =
        this.recordedTo < 0 && this.trained < last && (this.playing || this.wanted !== undefined);
    if (late)
      this.message(`Computing up to step ${last}, to continue from there: ${this.trained} …`);
    else if (this.late) this.message("");
    this.late = late;
  }

  // ---- playback
  play() {
    if (this.playing) return;
    this.playing = true;
    this.frameTimes = [];
    this.due = this.began = performance.now();
    this.message("");
    this.onPlayToggled(true);
    this.tickSoon();
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

  tickSoon() {
    this.ticking ??= requestAnimationFrame(() => {
      this.ticking = null;
      this.tick();
    });
  }

  tick() {
    if (!this.playing || this.closed) return;
    const now = performance.now(),
      { history, stride, unseen } = this;
    // Paint a step that arrived meanwhile before going on, so that none is skipped. The next step
    // is expected at once, so that its answer triggers the next request.
    if (unseen) this.repaint();
    if (this.wanted === undefined && now >= this.due && history.last >= 0 && !this.goal) {
      const to = (Math.floor(this.at / stride) + 1) * stride,
        here = history.has(to);
      if (to > this.most) return this.pause(`${this.at} steps; the history is full. ${this.full}`);
      if (!(unseen && here)) {
        this.due = Math.max(this.due + 1000 / this.speeds[this.speed][2], now - 100);
        if (here) this.arrive(to);
        else this.wanted = to;
      }
    }
    this.next();
    this.repaint();
    this.tickSoon();
  }

  // Let Python compute further steps while the page shows loaded ones. While an answer is handled
  // the link is still busy; the request is sent right after.
  next(answered = false) {
    const busy = (this.link.busy && !answered) || this.link.waiting;
    if (busy || this.goal || this.closed || this.preparing) return;
    const question = nextQuestion(this);
    if (question) this.ask(question);
  }

  arrive(step: number) {
    this.wanted = undefined;
    this.at = step;
    this.unseen = true;
    this.frameTimes.push(performance.now());
    if (this.frameTimes.length > 30) this.frameTimes.shift();
    this.follow();
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
      this.next();
    }
    this.rest();
  }

  to(step: number) {
    if (this.goal) this.message("");
    this.goal = 0;
    this.at = Math.min(Math.max(step, 0), Math.max(this.history.last, 0));
    this.follow();
    if (!this.history.has(this.at)) {
      this.wanted = this.at;
      this.next();
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
    if (!this.closed) this.paint();
  }
}
