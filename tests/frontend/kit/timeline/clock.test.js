import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { Clock } from "../../../../assets/src/kit/timeline/clock.ts";
import { Frames } from "../../../../assets/src/kit/timeline/frames.ts";

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

class Steps extends Frames {
  unpack(answer) {
    return Array.from({ length: answer.count }, (_, k) => ({ step: answer.first + k }));
  }
}

// Page of 20 steps, five per epoch, whose link stores the requests.
class Page extends Clock {
  constructor() {
    super({ ahead: 3, most: 20, speeds: [["at once", 1, 1e9]], speed: 0 });
    this.asked = [];
    this.painted = [];
    this.previews = [];
    this.links = 0;
    this.rests = 0;
    this.said = "";
    this.state = { seed: 0, changes: [] };
    this.link = {
      busy: false,
      waiting: null,
      send: (request) => {
        this.asked.push(request);
        this.link.busy = true;
      },
    };
    this.requestFirst();
  }
  empty() {
    return new Steps();
  }
  paint() {
    if (this.history.at(this.at)) this.painted.push(this.at);
  }
  onDraft(answer) {
    this.previews.push(answer.first);
  }
  remember() {
    this.links += 1;
  }
  rest() {
    this.rests += 1;
  }
  message(text) {
    this.said = text;
  }
  get epoch() {
    return 5;
  }
  // Make Python answer the last request with `count` steps, starting at `first`.
  answer(first, count, more = {}) {
    const asked = this.asked.length;
    this.take({ id: this.seq, first, count, ready: first + count - 1, ...more }); // still busy
    this.link.busy = this.asked.length > asked;
  }
}

test("every step is shown once, in order, and what comes next is asked ahead", () => {
  const page = new Page();
  page.answer(0, 1);
  page.play();
  for (let k = 0; k < 12; k++) {
    if (page.link.busy) page.answer(page.history.last + 1, 2);
    nextFrame();
  }
  const shown = [...new Set(page.painted)];
  assert.deepEqual(
    shown,
    shown.map((_, k) => k),
  );
  assert.ok(page.at > 4 && page.history.last <= page.at + 3 + 2);
});

test("a step is painted in every frame, or as often as Python makes one", () => {
  const frame = 1000 / 60;
  let now = 0;
  mock.method(performance, "now", () => now);
  const page = new Page();
  Object.assign(page, { ahead: 1, most: 1000 });
  page.answer(0, 1);
  page.play();
  for (const takes of [5, 17, 21, 29]) {
    const from = page.at,
      began = now;
    let answers = page.link.busy ? now + takes : Infinity;
    for (let k = 0; k < 120; k++) {
      for (const end = began + (k + 1) * frame; answers < end;) {
        now = answers;
        page.answer(page.history.last + 1, 1);
        answers = page.link.busy ? now + takes : Infinity;
      }
      now = began + (k + 1) * frame;
      nextFrame();
      if (answers === Infinity && page.link.busy) answers = now + takes;
    }
    const steps = page.at - from;
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
  page.play();
  for (let k = 0; k < 5; k++) nextFrame();
  assert.deepEqual([page.at, page.wanted, page.asked.length], [0, 1, 2]);
  page.answer(1, 1);
  nextFrame();
  assert.equal(page.at, 1);
});

test("playing twice within a frame is one clock", () => {
  const page = new Page();
  page.answer(0, 9);
  page.play();
  page.pause();
  page.play();
  nextFrame();
  nextFrame();
  assert.ok(page.at <= 2);
});

test("answers about a future that was changed are dropped, the past stays", () => {
  const page = new Page();
  page.answer(0, 9);
  page.to(4);
  page.ask();
  page.fork({ seed: 0, changes: [{ at: 4 }] }, 5);
  page.answer(9, 3);
  assert.deepEqual([page.history.last, page.at], [4, 4]);
  page.ask();
  assert.deepEqual([page.asked.at(-1).have, page.asked.at(-1).state.changes.length], [4, 1]);
  page.answer(5, 2);
  assert.equal(page.history.last, 6);
});

test("a link into the middle is approached, told, and given up for another step", () => {
  const page = new Page();
  page.goal = 7;
  page.answer(0, 4);
  assert.match(page.said, /step 7: 3/);
  assert.equal(page.asked.at(-1).want, 7);
  page.play();
  nextFrame();
  assert.equal(page.at, 3); // it is waiting
  page.answer(4, 4);
  assert.deepEqual([page.at, page.goal, page.said], [7, 0, ""]);
  page.goal = 12;
  page.scrubTo(2);
  page.answer(8, 1);
  assert.deepEqual([page.at, page.goal], [2, 0]);
});

test("a step beyond what is here waits for Python; an epoch goes to its end", () => {
  const page = new Page();
  page.answer(0, 3);
  page.step(1, true);
  assert.deepEqual([page.at, page.asked.at(-1).want], [0, 5]);
  page.answer(3, 2); // not yet
  assert.equal(page.asked.at(-1).have, 4);
  page.answer(5, 1);
  assert.equal(page.at, 5);
  page.step(-1);
  page.step(-1, true);
  assert.equal(page.at, 0);
  page.step(-1);
  assert.equal(page.at, 0);
});

test("it stops where no step can be made, and says why", () => {
  const page = new Page();
  page.answer(0, 3);
  page.play();
  for (let k = 0; k < 8; k++) nextFrame();
  page.answer(3, 0, { stopped: "B stops here" });
  assert.deepEqual([page.playing, page.at], [false, 2]);
  assert.match(page.said, /^B stops here\. Lower/);
  const stepping = new Page();
  stepping.answer(0, 3);
  stepping.to(2);
  stepping.step(1);
  stepping.answer(3, 0, { stopped: "B stops here" });
  assert.equal(stepping.asked.length, 2); // and does not ask again and again
});

test("a full history ends the play", () => {
  const page = new Page();
  page.answer(0, 21);
  page.to(19);
  page.play();
  for (let k = 0; k < 4; k++) nextFrame();
  assert.deepEqual([page.at, page.playing], [20, false]);
  assert.match(page.said, /20 steps; the history is full/);
});

test("steps that Python no longer keeps are made again before it goes on", () => {
  const page = new Page();
  page.answer(0, 9);
  page.to(8);
  page.play();
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
  page.play();
  page.hold();
  page.ask({ draft: true, rest: true });
  assert.equal(page.asked.at(-1).rest, false);
  page.answer(2, 1);
  assert.deepEqual([page.previews, page.history.last], [[2], 2]);
  page.ask({ draft: true });
  assert.equal(page.release(), true);
  page.answer(2, 1);
  assert.deepEqual(page.previews, [2]);
});

test("a link is asked for until one comes", () => {
  const page = new Page();
  page.ask({ want: 2 });
  assert.equal(page.asked.at(-1).rest, true);
  page.answer(0, 3, { query: {} });
  page.ask({ want: 5 });
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
