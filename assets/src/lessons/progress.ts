// Answered steps, stored in this browser only.
import type { Progress, Row } from "./types.ts";

const KEY = "dml-lessons";

// Returns as stored, possibly by another tab
export function answered(): Progress {
  try {
    const kept: Progress | null = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(
      Object.entries(kept ?? {}).filter(([, steps]) => Array.isArray(steps)),
    );
  } catch {
    return {}; // invalid content, or storage is not available
  }
}

export function remember(lesson: string, step: number) {
  const all = answered();
  all[lesson] = [...new Set([...(all[lesson] ?? []), step])].sort((a, b) => a - b);
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // Private windows have no storage: the lesson goes on without progress.
  }
}

// Return which steps of a lesson were answered, and the first that was not.
export function lessonProgress(lesson: Row, all: Progress) {
  const steps = lesson.steps.map((_, i) => i + 1),
    done = steps.filter((step) => all[lesson.name]?.includes(step));
  return { done, next: steps.find((step) => !done.includes(step)) ?? 1 };
}
