// Footer of each step of the pooling story: the conclusion, and links to the previous and next
// step. A link carries matching settings; if it carried the same settings before, it leads to the
// step as it was left.
import { asset } from "../../kit/address.ts";
import { el, onward, setText } from "../../kit/dom.ts";

export type Remembered = { brought?: string; told?: string; left?: string };
export type Way = [address: string, title: string];

const STORE = "dml-pooling-steps";
const sheet = asset("pooling/story/story.css");

function remembered(): Record<string, Remembered> {
  try {
    return JSON.parse(sessionStorage.getItem(STORE) ?? "{}") ?? {};
  } catch {
    return {}; // no storage, or invalid content
  }
}

function remember(steps: Record<string, Remembered>) {
  try {
    sessionStorage.setItem(STORE, JSON.stringify(steps));
  } catch {
    // storage full or forbidden: links then lead to the settings they carry
  }
}

// Return the address of a link.
// step: what is stored about the step behind it
// brought: query it carries; null for the link back, which carries none
export function linkAddress(step: Remembered | undefined, brought: string | null) {
  if (brought === null) return step?.left ?? "";
  return step?.left && step.brought === brought ? step.left : brought;
}

// Return the description of where a step's settings come from, as long as the step still uses the
// settings it received.
// query: of the step
// key: of the query's parameter with the settings
export function origin(step: Remembered | undefined, query: string, key: string) {
  const brought = new URLSearchParams(step?.brought).get(key);
  return brought !== null && brought === new URLSearchParams(query).get(key)
    ? (step?.told ?? "")
    : "";
}

export class Story {
  app: { data: { base: string }; hidden: ReadonlySet<string> };
  here: string;
  verdict: HTMLParagraphElement;
  doors: [node: HTMLAnchorElement, address: string, next: boolean][];
  brought: string;
  told: string;
  whole: HTMLDivElement;
  // here: address of this step
  constructor(
    app: { data: { base: string }; hidden: ReadonlySet<string> },
    here: string,
    { back, next }: { back?: Way; next: Way },
  ) {
    this.app = app;
    this.here = here;
    this.verdict = el("p", { class: "conclusion" });
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

  door([address, title]: Way, next: boolean): [HTMLAnchorElement, string, boolean] {
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

  // Return where the settings of this step come from.
  // query: of this step
  origin(query: string, key: string) {
    return origin(remembered()[this.here], query, key);
  }

  query(address: string, next: boolean) {
    return linkAddress(remembered()[address], next ? this.brought : null);
  }

  // Navigate within the session, like the links of the menu.
  leave(address: string, next: boolean) {
    const query = this.query(address, next),
      steps = remembered();
    steps[this.here] = { ...steps[this.here], left: location.search.slice(1) };
    if (next) steps[address] = { ...steps[address], brought: this.brought, told: this.told };
    remember(steps);
    history.pushState({}, "", onward(`${this.app.data.base}${address}`, query));
    dispatchEvent(new PopStateEvent("popstate"));
  }

  // Update the conclusion and the links.
  // brought: query for the next step
  // told: description of its origin, for the next step
  tell(verdict: string, brought: string, told: string = "") {
    setText(this.verdict, verdict);
    this.brought = brought;
    this.told = told;
    for (const [node, address, next] of this.doors) {
      const query = this.query(address, next);
      node.href = onward(`${this.app.data.base}${address}`, query);
    }
  }
}
