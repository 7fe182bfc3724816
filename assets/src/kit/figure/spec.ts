// Specification of a figure: state, drawing, hit test. Only `label` and `draw` are required.
import type { Context, Ink, Theme } from "../types.ts";
import type { Marks } from "./axes.ts";
import type { Key } from "./legend.tsx";
import type { View, ZoomLimits } from "./view.ts";

/** Arguments of `draw` next to the context: where, in which colours, and in which situation. */
export interface Frame {
  view: View;
  ink: Ink;
  theme: Theme;
  moving: boolean; // a drag is going on: leave out what would flicker
  exported: boolean; // drawn for a file, not for the screen
}

/** A place on the figure under a pointer, or under the cursor that the arrow keys move. */
export interface At {
  place: number[];
  pixel: [number, number];
  by: "mouse" | "touch" | "keys";
  event?: PointerEvent;
}

/** A draggable point. The kernel makes one focusable button for each `name`. */
export interface Handle {
  name: string;
  label?: string; // read out with its place; default: the name
  at: readonly number[];
  move(place: number[]): void; // sets the point; the kernel then reports "move"
  title?: string; // tooltip; read once
  class?: string; // next to `handle`; read once
  data?: Record<string, string | number>; // data-* attributes; read once; default data-point: name
  hidden?: boolean;
  step?: number; // length of an arrow key in units of the place, default 0.01; Shift: tenfold
  nudge?(by: number[]): void; // an arrow key instead: [right, up], 1 or with Shift 10
  reach?: number; // a press within this many pixels takes it; default 40, 0: never
  focusable?: boolean; // false: not in the tab order; read once
  remove?(): void; // Delete and Backspace
  describe?(): string; // replaces label and coordinates
}

/** A drag that a figure starts itself, on a press on its canvas. */
export interface Drag {
  move(at: At, by: [dx: number, dy: number]): void; // by: pixels since the last call
  end?(at: At, moved: boolean, cancelled: boolean): void;
}

/** A button in the corner of the figure. */
export interface Tool {
  text: string;
  title: string;
  act(): void;
  disabled?: boolean; // shown only: a disabled button would swallow the keys of its user
}

/** "start": before the first change of a gesture; "move": after each; "end": once it is over. */
export type Phase = "start" | "move" | "end";

/** State, drawing and hit test of one figure. `Hit` is what its hit test returns. */
export interface FigureSpec<Hit = unknown> {
  label: string; // name for screen readers, before `describe` has more to say
  draw(ctx: Context, frame: Frame): void; // paints everything; the canvas is clear
  class?: string; // of the canvas
  aspect?: number; // width by height; default: that of the style sheet, 1
  keys?: string; // description of its keys, added to the accessible description

  // -- state
  view?(width: number, height: number): View; // default: pixels
  setView?(window: number[]): void; // allows moving and zooming of a plane
  zoom?: ZoomLimits & {
    about?: "centre" | "pointer"; // default: centre
    // default: Ctrl and the wheel, so that the page scrolls; a function decides for each turn
    wheel?: "ctrl" | "always" | ((event: WheelEvent) => boolean);
  };
  touch?: "scroll" | "all"; // one finger scrolls the page (default) or acts like a mouse
  handles?(): Handle[];
  change?(phase: Phase): void;

  // -- hit test
  hit?(at: At): Hit | null | undefined; // the object under the pointer
  hover?(at: At | null, hit: Hit | null): void; // null: the pointer has left
  open?(hit: Hit, at: At): void; // a click, or Enter at the cursor
  press?(at: At): Drag | null | undefined; // a press on the canvas, before handles and moving
  key?(event: KeyboardEvent): boolean | void; // further keys; true: handled

  // -- what belongs to it
  tools?(): Tool[]; // before those that zoom, which a figure with `setView` has
  showAll?(): void; // sets a view that shows everything: one more button
  axes?: Marks; // grid below and numbers above what `draw` paints, unless they say otherwise
  legend?(ink: Ink): Key[];
  describe?(): string; // the state in words, announced after each gesture
}
