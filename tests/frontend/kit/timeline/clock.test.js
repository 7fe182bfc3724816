import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { Clock } from "../../../../assets/src/kit/timeline/clock.ts";
import { Frames } from "../../../../assets/src/kit/timeline/frames.ts";
import { Playback } from "../../../../assets/src/kit/timeline/playback.ts";

/** @type {Map<number, () => void>} */
let due = new Map();
let requests = 0;
globalThis.requestAnimationFrame = (act) => {
  due.set(++requests, act);
  return requests;
};
globalThis.cancelAnimationFrame = (id) => due.delete(id);
const nextFrame = () => {
  const now = due;
  due = new Map();
  for (const act of now.values()) act();
};
afterEach(() => {
  due.clear();
  mock.timers.reset();
  mock.restoreAll();
});

const newSteps = () =>
  new Frames(({ count, first }) => Array.from({ length: count }, (_, k) => ({ step: first + k })));

// Figure of 20 steps, five per epoch, on a clock whose connection stores the requests.
class Page {
  epoch = 5;
  asked = [];
  painted = [];
  previews = [];
  links = 0;
  rests = 0;
  said = "";
  link = { busy: false, waiting: null };

  constructor({ ahead = 3, most = 20 } = {}) {
    const data = {
      state: { seed: 0, changes: [] },
      step: null,
      options: { limits: { steps: most } },
    };
    this.clock = new Clock(this, { ahead, empty: newSteps }, data, {
      stride: () => this.playback.stride,
      pause: (why) => this.playback.pause(why),
      message: (text) => (this.said = text),
      onToggle: () => {},
      onLink: () => (this.links += 1),
      onStep: () => {},
      onGoal: () => {},
      rest: () => (this.rests += 1),
    });
    this.clock.figure = this;
    this.playback = new Playback(this.clock, [["at once", 1, 1e9]]);
    this.playback.setSpeed(0);
    this.clock.requestFirst();
  }
  send(request) {
    this.link.busy = true;
    return this.asked.push(request);
  }
  paint() {
    const { history, at } = this.clock;
    if (history.at(at)) this.painted.push(at);
  }
  onDraft(answer) {
    this.previews.push(answer.first);
  }
  // Make Python answer the last request with `count` steps, starting at `first`.
  answer(first, count, more = {}) {
    const id = this.asked.length;
    this.clock.take({ id, first, count, ready: first + count - 1, ...more }); // still busy
    this.link.busy = this.asked.length > id;
  }
}

test("every step is shown once, in order, and what comes next is asked ahead", () => {
  const page = new Page();
  page.answer(0, 1);
  page.playback.play();
  for (let k = 0; k < 12; k++) {
    if (page.link.busy) page.answer(page.clock.history.last + 1, 2);
    nextFrame();
  }
  const shown = [...new Set(page.painted)];
  assert.deepEqual(
    shown,
    shown.map((_, k) => k),
  );
  assert.ok(page.clock.at > 4 && page.clock.history.last <= page.clock.at + 3 + 2);
});

test("a step is painted in every frame, or as often as Python makes one", () => {
  const frame = 1000 / 60;
  let now = 0;
  mock.method(performance, "now", () => now);
  const page = new Page({ ahead: 1, most: 1000 });
  page.answer(0, 1);
  page.playback.play();
  for (const takes of [5, 17, 21, 29]) {
    const from = page.clock.at,
      began = now;
    let answers = page.link.busy ? now + takes : Infinity;
    for (let k = 0; k < 120; k++) {
      for (const end = began + (k + 1) * frame; answers < end;) {
        now = answers;
        page.answer(page.clock.history.last + 1, 1);
        answers = page.link.busy ? now + takes : Infinity;
      }
      now = began + (k + 1) * frame;
      nextFrame();
      if (answers === Infinity && page.link.busy) answers = now + takes;
    }
    const steps = page.clock.at - from;
    assert.ok(
      steps > (120 * frame) / Math.max(takes, frame) - 4,
      `${takes} ms: ${steps} steps in 120 frames`,
    );
  }
  assert.deepEqual(
    page.painted,
    page.painted.map((_, step) => step),
  );
});

test("the step that is not here yet is waited for", () => {
  const page = new Page();
  page.answer(0, 1);
  page.playback.play();
  for (let k = 0; k < 5; k++) nextFrame();
  assert.deepEqual([page.clock.at, page.clock.wanted, page.asked.length], [0, 1, 2]);
  page.answer(1, 1);
  nextFrame();
  assert.equal(page.clock.at, 1);
});

test("playing twice within a frame is one clock", () => {
  const page = new Page();
  page.answer(0, 9);
  page.playback.play();
  page.playback.pause();
  page.playback.play();
  nextFrame();
  nextFrame();
  assert.ok(page.clock.at <= 2);
});

test("answers about a future that was changed are dropped, the past stays", () => {
  const page = new Page();
  page.answer(0, 9);
  page.clock.to(4);
  page.clock.ask();
  page.clock.fork({ seed: 0, changes: [{ at: 4 }] }, 5);
  page.answer(9, 3);
  assert.deepEqual([page.clock.history.last, page.clock.at], [4, 4]);
  page.clock.ask();
  assert.deepEqual([page.asked.at(-1).have, page.asked.at(-1).state.changes.length], [4, 1]);
  page.answer(5, 2);
  assert.equal(page.clock.history.last, 6);
});

test("a link into the middle is approached, told, and given up for another step", () => {
  const page = new Page();
  page.clock.goal = 7;
  page.answer(0, 4);
  assert.match(page.said, /step 7: 3/);
  assert.equal(page.asked.at(-1).want, 7);
  page.playback.play();
  nextFrame();
  assert.equal(page.clock.at, 3); // it is waiting
  page.answer(4, 4);
  assert.deepEqual([page.clock.at, page.clock.goal, page.said], [7, 0, ""]);
  page.clock.goal = 12;
  page.playback.scrubTo(2);
  page.answer(8, 1);
  assert.deepEqual([page.clock.at, page.clock.goal], [2, 0]);
});

test("a step beyond what is here waits for Python; an epoch goes to its end", () => {
  const page = new Page();
  page.answer(0, 3);
  page.playback.step(1, true);
  assert.deepEqual([page.clock.at, page.asked.at(-1).want], [0, 5]);
  page.answer(3, 2); // not yet
  assert.equal(page.asked.at(-1).have, 4);
  page.answer(5, 1);
  assert.equal(page.clock.at, 5);
  page.playback.step(-1);
  page.playback.step(-1, true);
  assert.equal(page.clock.at, 0);
  page.playback.step(-1);
  assert.equal(page.clock.at, 0);
});

test("it stops where no step can be made, and says why", () => {
  const page = new Page();
  page.answer(0, 3);
  page.playback.play();
  for (let k = 0; k < 8; k++) nextFrame();
  page.answer(3, 0, { stopped: "B stops here" });
  assert.deepEqual([page.clock.playing, page.clock.at], [false, 2]);
  assert.match(page.said, /^B stops here\. Lower/);
  const stepping = new Page();
  stepping.answer(0, 3);
  stepping.clock.to(2);
  stepping.playback.step(1);
  stepping.answer(3, 0, { stopped: "B stops here" });
  assert.equal(stepping.asked.length, 2); // and does not ask again and again
});

test("a full history ends the play", () => {
  const page = new Page();
  page.answer(0, 21);
  page.clock.to(19);
  page.playback.play();
  for (let k = 0; k < 4; k++) nextFrame();
  assert.deepEqual([page.clock.at, page.clock.playing], [20, false]);
  assert.match(page.said, /20 steps; the history is full/);
});

test("steps that Python no longer keeps are made again before it goes on", () => {
  const page = new Page();
  page.answer(0, 9);
  page.clock.to(8);
  page.playback.play();
  nextFrame();
  page.answer(9, 0, { ready: 2 });
  assert.match(page.said, /step 8, to continue from there: 2/);
  assert.equal(page.asked.at(-1).want, 8);
  page.answer(9, 0, { ready: 8 });
  assert.equal(page.said, "");
});

test("a draft is shown while the hand is there, and asks for no link", () => {
  const page = new Page();
  page.answer(0, 3);
  page.playback.play();
  page.playback.hold();
  page.clock.ask({ draft: true, rest: true });
  assert.equal(page.asked.at(-1).rest, false);
  page.answer(2, 1);
  assert.deepEqual([page.previews, page.clock.history.last], [[2], 2]);
  page.clock.ask({ draft: true });
  assert.equal(page.playback.release(), true);
  page.answer(2, 1);
  assert.deepEqual(page.previews, [2]);
});

test("a link is asked for until one comes", () => {
  const page = new Page();
  page.clock.ask({ want: 2 });
  assert.equal(page.asked.at(-1).rest, true);
  page.answer(0, 3, { query: {} });
  page.clock.ask({ want: 5 });
  assert.deepEqual([page.links, page.asked.at(-1).rest], [1, false]);
});

test("what must be prepared is asked for again, unless it failed", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const page = new Page();
  page.answer(0, 0, { preparing: "wait", failed: false });
  assert.equal(page.said, "wait");
  mock.timers.tick(700);
  assert.equal(page.asked.length, 2);
  page.answer(0, 0, { preparing: "it cannot be", failed: true });
  mock.timers.tick(2000);
  assert.deepEqual([page.asked.length, page.said], [2, "it cannot be"]);
});
