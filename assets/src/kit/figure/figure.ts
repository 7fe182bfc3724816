// One figure: a canvas with its handles, view, pointer, keys, tooltip, legend, description and
// files. A figure provides its state, its drawing and its hit test (spec.ts lists all it may say):
//
//   const points = [[0.2, 0.5], [0.8, 0.3]];
//   const figure = new Figure({
//     label: "two points",
//     view: (width, height) => plane([0.5, 0.5, 0.6], width, height), // or chart(...), or pixels
//     draw(ctx, { view, ink }) {                                      // from the state alone
//       ctx.strokeStyle = ink.positive;
//       ctx.beginPath();
//       for (const point of points) ctx.lineTo(...view.to(point));
//       ctx.stroke();
//     },
//     handles: () => points.map((at, i) => ({
//       name: `point ${i}`,
//       at,
//       move: (place) => (points[i] = place),                         // mouse, touch, arrow keys
//     })),
//     change: (phase) => phase === "end" && save(points),             // "start", "move", "end"
//     axes: { x: 5 },                                                 // grid and numbers
//     describe: () => `distance ${Math.hypot(...)}`,                  // for screen readers
//   });
//   parent.append(figure.root, figure.legend);
//   figure.invalidate();        // after the state has changed by other means: one paint a frame
//   await fileOf(figure.sheet(), "pdf");   // a blob; or "png", "svg" (file.ts);  figure.close()
//
// Coordinates are of three kinds: places (units of the figure), pixels (CSS pixels of the canvas,
// y down), and device pixels, which only the kernel knows.
import type { Context, Theme } from "../types.ts";
import type { At, FigureSpec } from "./spec.ts";
import type { View } from "./view.ts";
import { INK } from "../colours.ts";
import { drawing, el, setText } from "../dom.ts";
import { fit } from "../screen.ts";
import type { Sheet } from "./file.ts";
import { fileOf } from "./file.ts";
import { grid, labels, numbers } from "./axes.ts";
import { Handles } from "./handles.ts";
import { renderLegend } from "./legend.tsx";
import { listen, zoomBy } from "./pointer.ts";
import { renderTools, toolsOf } from "./tools.tsx";
import { pixels } from "./view.ts";

const REST = 250, // ms after the last key or turn of the wheel until a gesture has ended
  ANNOUNCE = 400; // ms after a gesture until its result is read out

export class Figure<Hit = unknown> {
  readonly root = el("div", { class: "frame" });
  readonly legend = el("div", { class: "below" });
  readonly canvas: HTMLCanvasElement;
  readonly handles: Handles;
  busy: HTMLElement | null = null; // element that is dragged
  cursor: At | null = null; // where the pointer or the arrow keys look
  private readonly spec: FigureSpec<Hit>;
  readonly tools = el("div", { class: "zoom" });
  private readonly keys = el("span", { style: "display: contents" });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly live = el("div", { class: "hidden", "aria-live": "polite" });
  private readonly sizes = new ResizeObserver(() => this.resize());
  private size: [width: number, height: number] = [0, 0];
  private theme: Theme = "light";
  request = 0; // frame that is requested for painting; 0: the figure shows its state
  private shown = ""; // legend and buttons as they are rendered
  private resting: ReturnType<typeof setTimeout> | undefined;
  private announcing: ReturnType<typeof setTimeout> | undefined;

  constructor(spec: FigureSpec<Hit>) {
    this.spec = spec;
    this.canvas = el("canvas", { class: spec.class, role: "img", "aria-label": spec.label });
    if (spec.hover || spec.setView || spec.key) this.canvas.tabIndex = 0;
    if (spec.aspect) this.root.style.aspectRatio = String(spec.aspect);
    this.legend.append(this.keys);
    this.root.append(this.canvas, this.tip, this.tools, this.live);
    this.handles = new Handles(this, this.tip, () => spec.handles?.() ?? []);
    listen(this, spec, this.handles);
    this.sizes.observe(this.root);
  }

  /** The mapping between places and pixels, for the state of this moment. */
  get view(): View {
    return (this.spec.view ?? pixels)(...this.size);
  }

  /** Paint in the next frame, however often this is called before it. */
  invalidate(): void {
    this.request ||= requestAnimationFrame(() => this.flush());
  }

  /** Paint at once: for players, which must not skip a step, and films, which read WebGL only then. */
  flush(): void {
    cancelAnimationFrame(this.request);
    this.request = 0;
    const [width, height] = this.size,
      ctx = drawing(this.canvas);
    if (!width) return;
    ctx.clearRect(0, 0, width, height);
    this.draw(ctx, false);
    this.handles.sync();
    this.surround();
  }

  /** Fit the canvas to its element and to the resolution of the screen; paint if it changed. */
  resize(): void {
    if (!fit([this.canvas])) return;
    this.size = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.theme = getComputedStyle(this.root).colorScheme === "dark" ? "dark" : "light";
    this.invalidate();
  }

  /** Set the theme; a figure that is not told takes the colour scheme of its element. */
  setTheme(theme: Theme): void {
    if (theme === this.theme) return;
    this.theme = theme;
    this.invalidate();
  }

  /** Zoom by a factor, below 1 closer, about the centre: for buttons. */
  zoom(factor: number): void {
    this.nudge(() => zoomBy(this, this.spec as FigureSpec<never>, factor));
  }

  /** Show the tooltip at a place, as rows of a name and a text; null hides it. */
  showTip(
    place: readonly number[] | null,
    rows: readonly (readonly [string, string])[] = [],
  ): void {
    const { tip, view } = this;
    tip.hidden = !place;
    if (!place) return;
    tip.replaceChildren(
      ...rows.map(([name, text]) => el("div", {}, el("span", {}, name), el("b", {}, text))),
    );
    const [x, y] = view.to(place),
      { offsetWidth, offsetHeight } = tip,
      top = Math.min(Math.max(y - 40, 4), view.height - offsetHeight - 4);
    tip.style.left = `${x + 20 + offsetWidth > view.width ? x - 16 - offsetWidth : x + 16}px`;
    tip.style.top = `${top}px`;
    if (this.cursor?.by === "keys") setText(this.live, rows.map((row) => row.join(" ")).join("; "));
  }

  /** Return what files show, `scale` pixels of a PNG per CSS pixel; by default as on the screen. */
  sheet(scale = this.canvas.width / this.view.width): Sheet {
    const { width, height } = this.view;
    return { width, height, scale, draw: (ctx) => this.export(ctx) };
  }

  /** Return the figure as a PNG `width` pixels wide, by default at the resolution of the screen. */
  png(width = this.canvas.width): Promise<Blob> {
    return fileOf(this.sheet(width / this.view.width), "png");
  }

  /** Stop listening and painting. */
  close(): void {
    this.sizes.disconnect();
    cancelAnimationFrame(this.request);
    clearTimeout(this.resting);
    clearTimeout(this.announcing);
  }

  // ---- for handles.ts and pointer.ts

  /** Start a gesture on an element; call the function returned when it is over. */
  gesture(target: HTMLElement): (moved: boolean) => void {
    this.look(null);
    this.busy = target;
    this.spec.change?.("start");
    return (moved) => {
      this.busy = null;
      if (moved) this.rest();
    };
  }

  /** Report a change within a gesture, and paint. */
  changed(): void {
    this.spec.change?.("move");
    this.invalidate();
  }

  /** Make one change as a gesture that ends when no further one follows. */
  nudge(change: () => void): void {
    this.spec.change?.("start");
    change();
    this.changed();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), REST);
  }

  /** Look at a place, or at none. */
  look(at: At | null): void {
    if (!at && !this.cursor) return;
    this.cursor = at;
    if (!at) this.tip.hidden = true;
    this.spec.hover?.(at, (at && this.spec.hit?.(at)) ?? null);
  }

  /** Describe the figure to screen readers once it rests. */
  announce(): void {
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => {
      const { label, describe, keys } = this.spec,
        text = describe?.();
      this.canvas.ariaLabel = [text ?? label, keys].filter(Boolean).join(". ");
      if (text) setText(this.live, text);
    }, ANNOUNCE);
  }

  private rest(): void {
    this.spec.change?.("end");
    requestAnimationFrame(() => this.invalidate()); // a frame later, so that texts change at once
    this.announce();
  }

  // Render legend and buttons if they have changed.
  private surround(): void {
    const { theme, spec } = this,
      keys = spec.legend?.(INK[theme]) ?? [],
      tools = toolsOf(spec as FigureSpec, (factor) => this.zoom(factor)),
      now = JSON.stringify([theme, keys, tools]);
    if (now === this.shown) return;
    this.shown = now;
    renderLegend(this.keys, keys, theme);
    renderTools(this.tools, tools);
    this.tools.hidden = !tools.length;
  }

  private export(ctx: Context): void {
    ctx.fillStyle = INK[this.theme].page;
    ctx.fillRect(0, 0, this.view.width, this.view.height);
    this.draw(ctx, true);
  }

  private draw(ctx: Context, exported: boolean): void {
    const { view, theme, spec } = this,
      { axes } = spec,
      ink = INK[theme],
      write = view.window ? numbers : labels;
    if (axes) grid(ctx, view, ink, axes);
    if (axes?.below) write(ctx, view, ink, axes);
    spec.draw(ctx, { view, ink, theme, exported, moving: Boolean(this.busy) });
    if (axes && !axes.below) write(ctx, view, ink, axes);
  }
}
