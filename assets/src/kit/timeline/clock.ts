// Clock of a figure: the step shown, the steps that are loaded, and the requests for others. It
// drives the hooks of its figure and handles no elements.
import type { About, Kinds, TimelineFigure, TimelineRequest } from "./types.ts";
import { nextQuestion } from "./ahead.ts";
import { approach, prepare, reportDelay } from "./delays.ts";

const MOST_TIMES = 30; // frame times that are kept

// Connection to Python. `send` returns the number of the request.
interface Connection<S> {
  link: { busy: boolean; waiting: object | null };
  send(request: TimelineRequest<S>): number;
}
// Callbacks of the page around the figure.
export interface ClockHooks<A> {
  stride(): number; // steps from one displayed in playback to the next
  pause(why?: string): void;
  message(text: string): void;
  onToggle(playing: boolean): void;
  onLink(answer: A): void; // the answer has the link of the state
  onStep(): void; // the step shown has changed
  onGoal(): void; // the step of a link is shown
  rest(): void; // after a gesture
}

export class Clock<K extends Kinds> {
  state: K["state"];
  history: K["steps"];
  figure: TimelineFigure<K>;
  at = 0; // step shown
  goal = 0; // step named by a link, until it is loaded
  wanted: number | undefined; // step to show once it is loaded
  playing = false;
  drafting = false; // a slider or a point is still moving
  began = 0; // time at which playback last started
  frameTimes: number[] = []; // of the last steps
  recordedTo = -1; // last step of a recording that plays
  trained = -1; // last step that Python has computed
  late = false; // a delay is reported
  unseen = false; // the step that arrived is not painted yet
  closed = false;
  preparing: number | null = null; // timer
  frameRequest: number | null = null;
  readonly most: number; // last step there can be
  readonly hooks: ClockHooks<K["answer"]>;
  private readonly about: Pick<About<K>, "ahead" | "empty" | "showWanted">;
  private readonly server: Connection<K["state"]>;
  private readonly drafts: Map<number, boolean> = new Map(); // by request of this future
  private needsLink = false;

  constructor(
    server: Connection<K["state"]>,
    about: Pick<About<K>, "ahead" | "empty" | "showWanted">,
    { state, step, options }: Pick<K["data"], "state" | "step" | "options">,
    hooks: ClockHooks<K["answer"]>,
  ) {
    this.server = server;
    this.about = about;
    this.most = options.limits.steps;
    this.hooks = hooks;
    this.renew(state, step ?? 0);
  }

  // ---- requests to Python
  ask(more: Partial<TimelineRequest<K["state"]>> = {}) {
    this.needsLink ||= Boolean(more.rest);
    const { at, state, hooks, about } = this,
      { last, sparse } = this.history,
      id = this.server.send({
        state,
        have: last,
        want: Math.max(last, at),
        show: about.showWanted ? (more.want ?? at) : at,
        stride: hooks.stride(),
        ...more,
        frames: sparse ? more.frames : undefined,
        rest: this.needsLink && !more.draft,
      });
    this.drafts.set(id, Boolean(more.draft));
  }

  // Request the first step and the step of a link.
  requestFirst() {
    const { goal } = this;
    this.ask({ rest: true, want: goal, frames: goal ? [goal] : [] });
  }

  // Let Python compute further steps while the page shows loaded ones. While an answer is handled
  // the link is still busy; the request is sent right after.
  askAhead(answered = false) {
    const { busy, waiting } = this.server.link;
    if ((busy && !answered) || waiting || this.goal || this.closed || this.preparing) return;
    const question = nextQuestion(this, this.about.ahead, this.hooks.stride());
    if (question) this.ask(question);
  }

  take(answer: K["answer"]) {
    const { hooks, figure, drafts, history } = this,
      isDraft = drafts.get(answer.id);
    for (const id of drafts.keys()) if (id <= answer.id) drafts.delete(id);
    if (isDraft === undefined) return;
    if (answer.preparing) {
      figure.onAnswer?.(answer);
      return prepare(this, answer.preparing, Boolean(answer.failed));
    }
    if (isDraft) return this.drafting && figure.onDraft?.(answer);
    if (this.preparing) hooks.message("");
    this.preparing = null;
    this.trained = answer.ready;
    history.add(answer);
    figure.onAnswer?.(answer);
    if (answer.query) {
      this.needsLink = false;
      hooks.onLink(answer);
    }
    if (answer.stopped) this.goal = Math.min(this.goal, history.last);
    if (this.goal) approach(this);
    else reportDelay(this);
    if (this.wanted !== undefined && history.has(this.wanted)) this.arrive(this.wanted);
    const isEnd = Number(this.wanted) > history.last || (this.playing && this.at >= history.last);
    if (answer.stopped && isEnd)
      hooks.pause(`${answer.stopped}. Lower the learning rate, or go back and change a setting.`);
    this.askAhead(true);
    this.invalidate();
  }

  // ---- the step shown
  arrive(step: number) {
    this.wanted = undefined;
    this.at = step;
    this.unseen = true;
    this.frameTimes = [...this.frameTimes, performance.now()].slice(-MOST_TIMES);
    this.hooks.onStep();
    this.invalidate();
    if (!this.playing) this.hooks.rest();
    this.figure.onArrive?.(step);
  }

  to(step: number) {
    if (this.goal) this.hooks.message("");
    this.goal = 0;
    this.at = Math.min(Math.max(step, 0), Math.max(this.history.last, 0));
    this.hooks.onStep();
    if (!this.history.has(this.at)) this.await(this.at);
    this.invalidate();
    this.figure.onJump?.();
  }

  // Show a step once it is loaded.
  await(step: number) {
    this.wanted = step;
    this.askAhead();
  }

  // ---- changes of the future
  // Compute the steps from `from` on with another state.
  fork(state: K["state"], from: number) {
    this.drafts.clear();
    clearTimeout(this.preparing ?? 0);
    Object.assign(this, { state, goal: 0, wanted: undefined, preparing: null });
    Object.assign(this, { recordedTo: -1, trained: -1 });
    this.history.forget(from);
  }

  // Start again with another state and go to the step `goal`.
  renew(state: K["state"], goal: number) {
    this.history = this.about.empty();
    this.fork(structuredClone(state), 0);
    Object.assign(this, { at: 0, goal, drafting: false });
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
    if (!this.closed) this.figure.paint();
  }

  close() {
    this.closed = true;
    this.playing = false;
    clearTimeout(this.preparing ?? 0);
  }
}
