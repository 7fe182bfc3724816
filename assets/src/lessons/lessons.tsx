// List of lessons, and the question below each step. Python checks the answer against the state of
// the figure, which the address holds.
import { useRef } from "preact/hooks";
import type { LessonsData, Question, Row, Verdict } from "./types.ts";
import type { SetState } from "../kit/types.ts";
import { defineComponent, loadStyles } from "../kit/component.ts";
import { applyTheme, div, onward } from "../kit/dom.ts";
import { mountPanel } from "../kit/panel/panel.tsx";
import { answered, remember, lessonProgress } from "./progress.ts";

const SETTLED = 250; // ms after which a released figure has written its address

class Lessons {
  root: ParentNode;
  data: LessonsData;
  ready: Promise<void>;
  setState: SetState;
  whole = div("lab lessons");
  show: () => void;
  asked = 0; // number of the answer that is checked
  verdict: Verdict | "checking" | null = null;
  shown = "";

  constructor(root: ParentNode, data: LessonsData) {
    this.root = root;
    this.data = data;
    this.ready = loadStyles(root, "lessons/lessons.css").then(() => {
      root.append(this.whole);
      this.show = mountPanel(this.whole, () => <Page app={this} />);
    });
  }

  async update(data: LessonsData) {
    await this.ready;
    this.data = data;
    applyTheme(this.root, this.whole);
    const { lesson, step, verdict } = data,
      place = `${lesson}.${step}`;
    if (place !== this.shown) {
      this.shown = place;
      this.asked = 0;
      this.verdict = null;
    }
    if (verdict && verdict.id === this.asked) {
      this.verdict = verdict;
      if (verdict.right && lesson) remember(lesson, step);
    }
    this.show();
  }

  close() {}

  check(given: string) {
    const asked = (this.asked = Date.now() % 1e9);
    this.verdict = "checking";
    this.show();
    setTimeout(() => {
      if (asked !== this.asked) return;
      this.setState("ask", { id: this.asked, query: location.search, given });
    }, SETTLED);
  }
}

function Page({ app }: { app: Lessons }) {
  const { lessons, lesson, question } = app.data,
    row = lessons.find((each) => each.name === lesson);
  return row && question ? (
    <Step key={app.shown} app={app} row={row} question={question} />
  ) : (
    <List app={app} />
  );
}

interface Place {
  text: string;
  lesson: string | null; // null: the list of lessons
  step?: number;
}
interface Look {
  class?: string;
  title?: string;
  "aria-label"?: string;
  "aria-current"?: "step";
}

function Link({ app, to, look }: { app: Lessons; to: Place; look?: Look }) {
  const { text, lesson, step = 0 } = to,
    query = lesson ? `lesson=${lesson}&step=${step}` : "";
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    app.setState("go", { lesson, step, at: Date.now() });
  };
  return (
    <a href={onward(location.pathname, query)} onClick={follow} {...look}>
      {text}
    </a>
  );
}

function List({ app }: { app: Lessons }) {
  const all = answered();
  return (
    <ol class="list">
      {app.data.lessons.map((row, i) => {
        const { name, title, steps, minutes, claim } = row,
          { done, next } = lessonProgress(row, all),
          whole = done.length === steps.length,
          state = whole ? "done" : done.length ? `${done.length} of ${steps.length}` : "new";
        return (
          <li key={name} class={whole ? "whole" : ""}>
            <div class="head">
              <span>
                {i + 1}.{" "}
                <b>
                  <Link app={app} to={{ text: title, lesson: name, step: next }} />
                </b>
              </span>
              <span class="state">{`${minutes} min · ${state}`}</span>
            </div>
            <p>{claim}</p>
          </li>
        );
      })}
    </ol>
  );
}

function Step({ app, row, question }: { app: Lessons; row: Row; question: Question }) {
  const file = `${app.data.base}api/lessons/handout`;
  return (
    <>
      <div class="question" role="group" aria-label="question">
        <p class="ask">{question.ask}</p>
        <div class="pills">
          <Answer question={question} check={(given) => app.check(given)} />
        </div>
      </div>
      <div class="verdict" role="status" aria-live="polite">
        <Judgement verdict={app.verdict} />
      </div>
      <Way app={app} row={row} />
      <p class="caption">
        <Link app={app} to={{ text: "All lessons", lesson: null }} />
        {" · handout: "}
        <a href={`${file}.html?lesson=${row.name}`} download="" children="HTML" />{" "}
        <a href={`${file}.pdf?lesson=${row.name}`} download="" children="PDF" />
      </p>
    </>
  );
}

function Answer({ question, check }: { question: Question; check(given: string): void }) {
  const { ask, kind, values } = question,
    number = useRef<HTMLInputElement>(null),
    give = () => check(number.current?.value ?? ""),
    enter = (event: KeyboardEvent) => event.key === "Enter" && give();
  return (
    <>
      {kind === "number" && (
        <input ref={number} type="number" step="any" aria-label={ask} onKeyDown={enter} />
      )}
      {kind === "choose" ? (
        values.map((value) => <button onClick={() => check(value)}>{value}</button>)
      ) : (
        <button onClick={give}>Check</button>
      )}
    </>
  );
}

function Judgement({ verdict }: { verdict: Lessons["verdict"] }) {
  if (!verdict) return null;
  if (verdict === "checking") return <>Checking the figure …</>;
  const { right, measured, words } = verdict;
  return (
    <>
      <b class={right ? "right" : "wrong"}>{right ? "Right. " : "Not yet. "}</b>
      {[measured, words].filter(Boolean).join(" ")}
    </>
  );
}

// Steps of the lesson, and the way on, which is emphasised once the answer was right.
function Way({ app, row }: { app: Lessons; row: Row }) {
  const { data, verdict } = app,
    { name: lesson, steps } = row,
    { done } = lessonProgress(row, answered()),
    isRight = verdict && verdict !== "checking" && verdict.right;
  const dots = steps.map((title, i) => {
    const step = i + 1,
      isDone = done.includes(step),
      label = `step ${step}: ${title}${isDone ? ", answered" : ""}`,
      current = step === data.step ? "step" : undefined,
      look: Look = { title, "aria-label": label, "aria-current": current };
    return <Link app={app} to={{ text: isDone ? "✓" : String(step), lesson, step }} look={look} />;
  });
  const after = data.lessons[data.lessons.indexOf(row) + 1],
    ahead: Place =
      data.step < steps.length
        ? { text: "Next step ▸", lesson, step: data.step + 1 }
        : after
          ? { text: `Next lesson: ${after.title} ▸`, lesson: after.name, step: 1 }
          : { text: "All lessons ▸", lesson: null };
  return (
    <div class="way">
      <nav class="dots" aria-label="steps of this lesson">
        {dots}
      </nav>
      <Link app={app} to={ahead} look={{ class: isRight ? "next ready" : "next" }} />
    </div>
  );
}

export const { render, unmount } = defineComponent(Lessons);
