// Footer of each step of the pooling story: the conclusion, and links to the previous and next
// step. A link carries matching settings; if it carried the same settings before, it leads to the
// step as it was left.
import { el, onward, setText } from "../../kit/dom.js";

/** @typedef {{ brought?: string, told?: string, left?: string }} Remembered */
/** @typedef {[address: string, title: string]} Way */

const STORE = "dml-pooling-steps";
const sheet = new URL("story.css", import.meta.url).href;

/** @returns {Record<string, Remembered>} */
function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(STORE) ?? "{}") ?? {};
  } catch {
    return {}; // no storage, or invalid content
  }
}

/** @param {Record<string, Remembered>} steps */
function remember(steps) {
  try {
    sessionStorage.setItem(STORE, JSON.stringify(steps));
  } catch {
    // storage full or forbidden: links then lead to the settings they carry
  }
}

/**
 * Return the address of a link.
 *
 * @param {Remembered | undefined} step what is stored about the step behind it
 * @param {string | null} brought query it carries; null for the link back, which carries none
 */
export function linkAddress(step, brought) {
  if (brought === null) return step?.left ?? "";
  return step?.left && step.brought === brought ? step.left : brought;
}

/**
 * Return the description of where a step's settings come from, as long as the step still uses the
 * settings it received.
 *
 * @param {Remembered | undefined} step
 * @param {string} query of the step
 * @param {string} key of the query's parameter with the settings
 */
export function origin(step, query, key) {
  const brought = new URLSearchParams(step?.brought).get(key);
  return brought !== null && brought === new URLSearchParams(query).get(key)
    ? (step?.told ?? "")
    : "";
}

export class Story {
  /**
   * @param {{ data: { base: string }, hidden: Set<string> }} app
   * @param {string} here address of this step
   * @param {{ back?: Way, next: Way }} ways
   */
  constructor(app, here, { back, next }) {
    this.app = app;
    this.here = here;
    this.verdict = el("p", { class: "conclusion" });
    /** @type {[node: HTMLAnchorElement, address: string, next: boolean][]} */
    this.doors = [...(back ? [this.door(back, false)] : []), this.door(next, true)];
    this.brought = "";
    this.told = "";
    const hidden = app.hidden.has("story");
    this.whole = el(
      "div",
      { class: "story", hidden },
      el("link", { rel: "stylesheet", href: sheet }),
      this.verdict,
      el("nav", { "aria-label": "neighbouring steps" }, ...this.doors.map(([node]) => node)),
    );
  }

  /**
   * @param {Way} way
   * @param {boolean} next
   * @returns {[HTMLAnchorElement, string, boolean]}
   */
  door([address, title], next) {
    const kind = next ? "door next" : "door",
      text = next ? `Next: ${title} →` : "← Back",
      node = el("a", { class: kind, "data-door": address, title: next ? "" : title }, text);
    node.href = `${this.app.data.base}${address}`;
    node.addEventListener("click", (event) => {
      if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.leave(address, next);
    });
    return [node, address, next];
  }

  /**
   * Return where the settings of this step come from.
   *
   * @param {string} query of this step @param {string} key
   */
  origin(query, key) {
    return origin(remembered()[this.here], query, key);
  }

  /** @param {string} address @param {boolean} next */
  query(address, next) {
    return linkAddress(remembered()[address], next ? this.brought : null);
  }

  // Navigate within the session, like the links of the menu.
  /** @param {string} address @param {boolean} next */
  leave(address, next) {
    const query = this.query(address, next),
      steps = remembered();
    steps[this.here] = { ...steps[this.here], left: location.search.slice(1) };
    if (next) steps[address] = { ...steps[address], brought: this.brought, told: this.told };
    remember(steps);
    history.pushState({}, "", onward(`${this.app.data.base}${address}`, query));
    dispatchEvent(new PopStateEvent("popstate"));
  }

  /**
   * Update the conclusion and the links.
   *
   * @param {string} verdict
   * @param {string} brought query for the next step
   * @param {string} [told] description of its origin, for the next step
   */
  tell(verdict, brought, told = "") {
    setText(this.verdict, verdict);
    this.brought = brought;
    this.told = told;
    for (const [node, address, next] of this.doors) {
      const query = this.query(address, next);
      node.href = onward(`${this.app.data.base}${address}`, query);
    }
  }
}
