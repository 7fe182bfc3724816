// For those who listen: words for what Streamlit changes without a word: another page, a task that
// works, and how it ended. Streamlit itself has a link past the menu.
import { settled } from "./settled.js";

const AGAIN = 20_000; // ms between two reports of one task

const live = document.createElement("div");
live.className = "said-only";
live.setAttribute("role", "status");
document.body.append(live);

const words = (/** @type {Element | null | undefined} */ node) =>
  node?.textContent?.replace(/\s+/g, " ").trim() ?? "";
let title = document.title,
  working = "", // what was said of the task at work
  spoken = 0; // when

function look() {
  const now = performance.now(),
    progress = document.querySelector('[data-testid="stProgress"]'),
    task = words(progress);
  progress?.querySelector('[role="progressbar"]')?.setAttribute("aria-label", task);
  if (document.title !== title) {
    title = document.title;
    working = "";
    live.textContent = title;
  }
  if (task && task !== working && (!working || now - spoken > AGAIN)) {
    live.textContent = working = task;
    spoken = now;
  } else if (!task && working) {
    working = "";
    const ends = [...document.querySelectorAll('[data-testid="stMain"] .stMarkdownBadge')];
    live.textContent = `It has ended. ${ends.map(words).join(". ")}`;
  }
}

settled(look);
