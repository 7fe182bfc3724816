// Announcements for screen readers of changes that Streamlit makes silently: a new page, the
// progress of a task, and its result. Streamlit itself provides the skip link.
import { watchDocument } from "./settled.ts";

const AGAIN = 20_000; // ms between two announcements for one task

const live = document.createElement("div");
live.className = "said-only";
live.setAttribute("role", "status");
document.body.append(live);

const words = (node: Element | null | undefined) =>
  node?.textContent?.replace(/\s+/g, " ").trim() ?? "";
let title = document.title,
  working = "", // last announcement for the running task
  spoken = 0; // time of that announcement

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

watchDocument(look);
