// List of lessons, and the question below each step. Python checks the answer against the state of
// the figure, which the address holds.
import type { LessonsData, Question, Row, Verdict } from "./types.ts";
import type { Child, SetState } from "../kit/types.ts";
import { defineComponent, loadStyles } from "../kit/component.ts";
import { applyTheme, div, el, onward } from "../kit/dom.ts";
import { answered, remember, lessonProgress } from "./progress.ts";

const SETTLED = 250; // ms after which a released figure has written its address

class Lessons {
  root: ParentNode;
  data: LessonsData;
  ready: Promise<void>;
  setState: SetState;
  whole = div("lab lessons");
  live = el("div", { class: "verdict", role: "status", "aria-live": "polite" });
  asked = 0;
  shown = "";

  constructor(root: ParentNode, data: LessonsData) {
    this.root = root;
    this.data = data;
    this.ready = loadStyles(root, "lessons/lessons.css").then(() => root.append(this.whole));
  }

  async update(data: LessonsData) {
    await this.ready;
    this.data = data;
    applyTheme(this.root, this.whole);
    const place = `${data.lesson}.${data.step}`;
    if (place !== this.shown) {
      this.shown = place;
      this.asked = 0;
      this.live.replaceChildren();
      this.draw();
    }
    if (data.verdict && data.verdict.id === this.asked) this.showJudgement(data.verdict);
  }

  close() {}

  draw() {
    const { lessons, lesson, question } = this.data,
      row = lessons.find((each) => each.name === lesson);
    if (row && question) this.whole.replaceChildren(...this.step(row, question));
    else this.whole.replaceChildren(this.list(lessons));
  }

  go(lesson: string | null, step: number) {
    this.setState("go", { lesson, step, at: Date.now() });
  }

  link(text: string, lesson: string | null, step: number, more: Record<string, string> = {}) {
    const follow = (event: MouseEvent) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      this.go(lesson, step);
    };
    const query = lesson ? `lesson=${lesson}&step=${step}` : "";
    return el("a", { href: onward(location.pathname, query), onclick: follow, ...more }, text);
  }

  // ---- list of lessons
  list(lessons: Row[]) {
    const all = answered();
    return el(
      "ol",
      { class: "list" },
      ...lessons.map((row) => {
        const { done, next } = lessonProgress(row, all),
          whole = done.length === row.steps.length,
          state = whole ? "done" : done.length ? `${done.length} of ${row.steps.length}` : "new";
        return el(
          "li",
          { class: whole ? "whole" : "" },
          el("b", {}, this.link(row.title, row.name, next)),
          el("span", { class: "state" }, `${row.minutes} min · ${state}`),
          el("p", {}, row.claim),
        );
      }),
    );
  }

  // ---- one step
  step(row: Row, question: Question): Child[] {
    const { lessons, step, base } = this.data,
      { done } = lessonProgress(row, answered()),
      last = step === row.steps.length,
      after = lessons[lessons.indexOf(row) + 1];
    const dots = el(
      "nav",
      { class: "dots", "aria-label": "steps of this lesson" },
      ...row.steps.map((title, i) =>
        this.link(done.includes(i + 1) ? "✓" : String(i + 1), row.name, i + 1, {
          title,
          "aria-label": `step ${i + 1}: ${title}${done.includes(i + 1) ? ", answered" : ""}`,
          ...(i + 1 === step ? { "aria-current": "step" } : {}),
        }),
      ),
    );
    const ahead = last
      ? after
        ? this.link(`Next lesson: ${after.title} ▸`, after.name, 1, { class: "next" })
        : this.link("All lessons ▸", null, 0, { class: "next" })
      : this.link("Next step ▸", row.name, step + 1, { class: "next" });
    const file = (kind: string) =>
      el(
        "a",
        { href: `${base}api/lessons/handout.${kind}?lesson=${row.name}`, download: true },
        kind.toUpperCase(),
      );
    return [
      this.question(question),
      this.live,
      div("way", dots, ahead),
      el(
        "p",
        { class: "caption" },
        this.link("All lessons", null, 0),
        " · handout: ",
        file("html"),
        " ",
        file("pdf"),
      ),
    ];
  }

  question({ ask, kind, values }: Question) {
    const number = el("input", { type: "number", step: "any", "aria-label": ask });
    const give = {
      choose: () =>
        values.map((value) => el("button", { onclick: () => this.check(value) }, value)),
      number: () => [number, el("button", { onclick: () => this.check(number.value) }, "Check")],
      do: () => [el("button", { onclick: () => this.check("") }, "Check")],
    };
    number.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.check(number.value);
    });
    return el(
      "div",
      { class: "question", role: "group", "aria-label": "question" },
      el("p", { class: "ask" }, ask),
      div("pills", ...give[kind]()),
    );
  }

  check(given: string) {
    this.live.textContent = "Checking the figure …";
    const asked = (this.asked = Date.now() % 1e9);
    setTimeout(() => {
      if (asked !== this.asked) return;
      this.setState("ask", { id: this.asked, query: location.search, given });
    }, SETTLED);
  }

  showJudgement({ right, measured, words }: Verdict) {
    const { lesson, step } = this.data;
    this.live.replaceChildren(
      el("b", { class: right ? "right" : "wrong" }, right ? "Right. " : "Not yet. "),
      [measured, words].filter(Boolean).join(" "),
    );
    if (!right || !lesson) return;
    remember(lesson, step);
    const row = this.data.lessons.find((each) => each.name === lesson),
      dot = this.whole.querySelector('.dots [aria-current="step"]');
    if (dot && row) {
      dot.textContent = "✓";
      dot.setAttribute("aria-label", `step ${step}: ${row.steps[step - 1]}, answered`);
    }
    this.whole.querySelector(".next")?.classList.add("ready");
  }
}

export const { render, unmount } = defineComponent(Lessons);
