// Footer of each step of the pooling story: the conclusion, and links to the previous and next
// step. A link carries matching settings; if it carried the same settings before, it leads to the
// step as it was left.
import { h, render } from "preact";
import { div, onward } from "../../kit/dom.ts";
import type { Door } from "./view.tsx";
import { StoryView } from "./view.tsx";

export type Remembered = { brought?: string; told?: string; left?: string };
export type Way = [address: string, title: string];

const STORE = "dml-pooling-steps";

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
  readonly whole = div("story");
  private app: { data: { base: string } };
  private here: string; // address of this step
  private doors: Door[];
  private brought = ""; // query for the next step
  private told = ""; // description of its origin, for the next step

  constructor(
    app: { data: { base: string }; hidden: ReadonlySet<string> },
    here: string,
    { back, next }: { back?: Way; next: Way },
  ) {
    this.app = app;
    this.here = here;
    this.whole.hidden = app.hidden.has("story");
    this.doors = [
      ...(back ? [{ address: back[0], text: "← Back", title: back[1], next: false }] : []),
      { address: next[0], text: `Next: ${next[1]} →`, next: true },
    ];
    this.tell("", "");
  }

  // Return where the settings of this step come from.
  // query: of this step
  origin(query: string, key: string) {
    return origin(remembered()[this.here], query, key);
  }

  // Update the conclusion and the links.
  tell(verdict: string, brought: string, told: string = "") {
    Object.assign(this, { brought, told });
    const doors = this.doors.map((door) => ({ ...door, href: this.href(door) }));
    render(h(StoryView, { verdict, doors, onLeave: (door) => this.leave(door) }), this.whole);
  }

  private href({ address, next }: Door) {
    const query = linkAddress(remembered()[address], next ? this.brought : null);
    return onward(`${this.app.data.base}${address}`, query);
  }

  // Navigate within the session, like the links of the menu.
  private leave(door: Door) {
    const { here, brought, told } = this,
      { address, next } = door,
      href = this.href(door),
      steps = remembered();
    steps[here] = { ...steps[here], left: location.search.slice(1) };
    if (next) steps[address] = { ...steps[address], brought, told };
    remember(steps);
    history.pushState({}, "", href);
    dispatchEvent(new PopStateEvent("popstate"));
  }
}
