// Which steps were answered: kept in this browser, sent nowhere.
/** @import { Progress, Row } from "./types.js" */

const KEY = "dml-lessons";

/** @returns {Progress} whatever another tab or hand has left there */
export function answered() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(
      Object.entries(kept ?? {}).filter(([, steps]) => Array.isArray(steps)),
    );
  } catch {
    return {}; // not ours, or a browser that keeps nothing
  }
}

/**
 * @param {string} lesson
 * @param {number} step
 */
export function remember(lesson, step) {
  const all = answered();
  all[lesson] = [...new Set([...(all[lesson] ?? []), step])].sort((a, b) => a - b);
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // A private window: the lesson goes on, its progress is forgotten.
  }
}

/**
 * The steps of a lesson that were answered, and the first that was not.
 *
 * @param {Row} lesson
 * @param {Progress} all
 */
export function standing(lesson, all) {
  const steps = lesson.steps.map((_, i) => i + 1),
    done = steps.filter((step) => all[lesson.name]?.includes(step));
  return { done, next: steps.find((step) => !done.includes(step)) ?? 1 };
}
