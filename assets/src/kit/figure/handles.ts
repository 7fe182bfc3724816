// Draggable points as focusable buttons over the canvas of a figure.
import type { Handle } from "./spec.ts";
import type { View } from "./view.ts";
import { el, tidy } from "../dom.ts";
import { arrow, follow, within } from "../hand.ts";
import { nearest } from "./hit.ts";
import { rounded } from "./view.ts";

const REACH = 40; // pixels within which a press on the canvas takes hold of a handle
const STEP = 0.01; // of an arrow key

/** Parts of a figure that its handles use. */
export interface Host {
  canvas: HTMLCanvasElement;
  view: View;
  gesture(target: HTMLElement): (moved: boolean) => void; // starts one; call the result at its end
  changed(): void; // after each change within a gesture
  nudge(change: () => void): void; // a gesture of one key or one turn of the wheel
}

/** The buttons of a figure's handles, by name. */
export class Handles {
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private list: Handle[] = [];
  private readonly host: Host;
  private readonly before: Element;
  private readonly read: () => Handle[];

  /** The buttons are put before an element of the figure. */
  constructor(host: Host, before: Element, read: () => Handle[]) {
    this.host = host;
    this.before = before;
    this.read = read;
  }

  /** Put each button where its point is now; make buttons for new names, remove the others. */
  sync(): void {
    this.list = this.read();
    const names = new Set(this.list.map(({ name }) => name));
    for (const [name, button] of this.buttons)
      if (!names.has(name)) {
        button.remove();
        this.buttons.delete(name);
      }
    const { view } = this.host;
    for (const handle of this.list) {
      const button = this.buttons.get(handle.name) ?? this.make(handle),
        [x, y] = view.to(handle.at);
      // a transform causes no layout, unlike left and top
      button.style.transform = `translate(${x}px, ${y}px)`;
      button.hidden = Boolean(handle.hidden);
      const label =
        handle.describe?.() ??
        `${handle.label ?? handle.name} at ${handle.at.map(tidy).join(", ")}`;
      if (button.ariaLabel !== label) button.ariaLabel = label;
    }
  }

  /** Return the handle that a press at a pixel of the canvas takes hold of. */
  near(pixel: readonly number[]): Handle | undefined {
    const { view } = this.host;
    let best: Handle | undefined;
    for (const reach of new Set(this.list.map((handle) => handle.reach ?? REACH)))
      best ??= nearest(
        pixel,
        this.list
          .filter((handle) => reach > 0 && !handle.hidden && (handle.reach ?? REACH) === reach)
          .map((handle) => [handle, view.to(handle.at)] as const),
        reach,
      );
    return best;
  }

  /** Return the button of a handle. */
  get(name: string): HTMLButtonElement | undefined {
    if (!this.buttons.has(name)) this.sync();
    return this.buttons.get(name);
  }

  /** Drag a handle until the pointer is released; it stays within the canvas of most views. */
  drag(event: PointerEvent, { name, at }: Handle): void {
    const { host } = this,
      { canvas, view } = host,
      button = this.buttons.get(name);
    if (!button) return;
    const end = host.gesture(button),
      [px, py] = within(event, canvas),
      [hx, hy] = view.to(at),
      clip = (v: number, most: number) => (view.open ? v : Math.min(Math.max(v, 0), most));
    event.preventDefault();
    button.focus();
    const move = (e: PointerEvent) => {
      const [x, y] = within(e, canvas);
      this.find(name)?.move(
        view.from([clip(x - px + hx, view.width), clip(y - py + hy, view.height)]).map(rounded),
      );
      host.changed();
    };
    follow(event, button, move, end);
  }

  // The entry of a handle as its figure describes it at present.
  private find(name: string): Handle | undefined {
    return this.read().find((handle) => handle.name === name);
  }

  private make(handle: Handle): HTMLButtonElement {
    const { name, title, focusable = true, data = { point: name } } = handle,
      button = el("button", { class: ["handle", handle.class].filter(Boolean).join(" ") });
    if (title) button.title = title;
    if (!focusable) button.tabIndex = -1;
    Object.assign(
      button.dataset,
      Object.fromEntries(Object.entries(data).map(([key, value]) => [key, String(value)])),
    );
    button.addEventListener("pointerdown", (event) => {
      const found = this.find(name);
      if (found) this.drag(event, found);
    });
    button.addEventListener("keydown", (event) => this.key(event, name));
    this.buttons.set(name, button);
    this.before.before(button);
    return button;
  }

  private key(event: KeyboardEvent, name: string): void {
    const found = this.find(name);
    if (!found) return;
    if (found.remove && (event.key === "Delete" || event.key === "Backspace")) {
      event.preventDefault();
      this.host.nudge(found.remove);
      return;
    }
    const step = arrow(event);
    if (!step) return;
    if (found.nudge) return this.host.nudge(() => found.nudge?.(step));
    const up = this.host.view.from([0, 0])[1] < this.host.view.from([0, 1])[1] ? -1 : 1; // y down
    const by = found.step ?? STEP,
      place = [found.at[0] + by * step[0], found.at[1] + by * step[1] * up].map(rounded);
    this.host.nudge(() => found.move(place));
  }
}
