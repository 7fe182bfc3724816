// Changes of the map and of the prototypes: the brush, strokes, and undo.
import type { Brush, Options, State } from "./types.ts";
import { History } from "../../kit/plane/history.ts";
import { SIDE, STEPS, join } from "./draw.ts";

export class Editor {
  state: State; // modified in place
  brush: Brush = { hue: "red", code: join(STEPS, 0), purity: 1, side: 1 };
  preset: number | null = null; // that was loaded and not changed since
  touched: number | null = null; // prototype
  isHeld = false; // a gesture that changes the scene is going on
  readonly scenes: History; // for undo
  private readonly options: Options;
  private readonly report: (atRest: boolean) => void;

  // `report` is called after each change of the state, and at the end of a gesture.
  constructor(state: State, options: Options, report: (atRest: boolean) => void) {
    this.state = structuredClone(state);
    this.options = options;
    this.report = report;
    this.scenes = new History(this.scene());
  }

  // ---- the brush
  setBrush(change: Partial<Brush>) {
    const brush = { ...this.brush, ...change },
      s = Math.round(((1 - brush.purity) * STEPS) / 2),
      pure = STEPS - 2 * s,
      codes = { red: join(pure, s), blue: join(s, pure), background: join(s, s) };
    if ("code" in change) brush.hue = "free";
    else if ("purity" in change && brush.hue === "free") brush.hue = "red";
    if (brush.hue !== "free") brush.code = codes[brush.hue];
    this.brush = brush;
  }

  // ---- gestures, each of which is one entry of the undo list
  begin() {
    this.isHeld = true;
  }
  end() {
    this.isHeld = false;
    this.scenes.push(this.scene());
    this.report(true);
  }

  // Paint a square of the width of the brush at column x and row y.
  paint(x: number, y: number) {
    const { side, code } = this.brush,
      from = -Math.floor((side - 1) / 2),
      inside = (v: number) => v >= 0 && v < SIDE;
    for (let dy = from; dy < from + side; dy++)
      for (let dx = from; dx < from + side; dx++)
        if (inside(x + dx) && inside(y + dy)) this.state.pixels[x + dx + SIDE * (y + dy)] = code;
    this.changed();
  }

  move(prototype: number, code: number) {
    this.state.prototypes[prototype] = code;
    this.touched = prototype;
    this.changed();
  }

  set(name: "mu" | "epsilon" | "sweeps", value: number) {
    this.state[name] = value;
    this.changed();
  }

  // ---- changes at once
  change(act: (state: State) => unknown) {
    act(this.state);
    this.preset = null;
    this.end();
  }

  add() {
    if (this.isFull) return;
    this.change(({ prototypes }) => prototypes.push(this.brush.code));
    this.touched = this.state.prototypes.length - 1;
  }
  remove(prototype = this.touched ?? Infinity) {
    const last = this.state.prototypes.length - 1;
    if (!last) return;
    this.change(({ prototypes }) => prototypes.splice(Math.min(prototype, last), 1));
    this.touched = null;
  }
  get isFull() {
    return this.state.prototypes.length >= this.options.limits.prototypes;
  }

  undo() {
    this.restore(this.scenes.undo());
  }
  redo() {
    this.restore(this.scenes.redo());
  }

  loadPreset(index: number) {
    this.load(this.options.presets[index].state, index);
  }
  load(state: State, preset = this.preset) {
    this.state = structuredClone(state);
    this.preset = preset;
    this.end();
  }

  private changed() {
    this.preset = null;
    this.report(false);
  }
  private scene() {
    return JSON.stringify([this.state.pixels, this.state.prototypes]);
  }
  private restore(scene: string | undefined) {
    if (!scene) return;
    [this.state.pixels, this.state.prototypes] = JSON.parse(scene);
    this.preset = null;
    this.report(true);
  }
}
