// Changes of the scene as a whole: presets, reset, snap, undo and redo.
import type { Hyper, Place, Point } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Scene } from "./types.ts";
import { History } from "./history.ts";
import { defaultsOf, marginOf } from "./parameters.ts";
import { snapNow, snapped } from "./snap.ts";

export class Edit {
  readonly history: History;
  private readonly app: Fields;

  constructor(app: Fields) {
    this.app = app;
    this.history = new History(JSON.stringify(app.scene));
  }

  /** Change parts of the scene: a preset, a step of the tour. `keepScale`: of the colours. */
  put(part: Partial<Scene>, keepScale = false): void {
    const { app } = this;
    app.touch();
    app.scene = { ...app.scene, ...structuredClone(part) };
    if (part.loss && part.hyper === undefined) app.scene.hyper = this.parameters().hyper;
    if (!keepScale) app.requests.rescale();
    app.rebuild();
    app.rest();
  }

  /** Return the default parameters of the loss, with its kind of margin. */
  parameters(): Pick<Scene, "hyper" | "margin" | "mu"> {
    const { schema, scene, variant } = this.app,
      hyper: Hyper = variant.defaults?.(scene.loss) ?? defaultsOf(schema, scene.loss);
    return { hyper, ...marginOf(schema, scene.loss) };
  }

  /** Return the points and the view from which the page starts. */
  atHome(): Pick<Scene, "anchor" | "positive" | "negative" | "view"> {
    const { variant, schema } = this.app,
      { anchor, positive, negative, view } = variant.home?.() ?? schema.plain;
    return structuredClone({ anchor, positive, negative, view });
  }

  /** Reset parameters, points and view. */
  reset(): void {
    const { lessons, schema } = this.app,
      { probe, snap } = schema.plain;
    lessons.preset = undefined;
    this.put({ ...this.parameters(), ...this.atHome(), probe, snap });
  }

  /** Return the place that a point takes when it is moved to another one. */
  snapped(name: Point, place: Place): Place {
    return snapped(this.app.scene, name, place, this.app.variant.radius?.() ?? 1);
  }

  /** Move the points to where the chosen snap allows them. */
  snap(): void {
    const { app } = this;
    snapNow(app.scene, app.variant.radius?.() ?? 1);
    app.rest();
  }

  /** Remember the scene for undo. */
  remember(): void {
    this.history.push(JSON.stringify(this.app.scene));
  }
  undo(): void {
    this.revive(this.history.undo());
  }
  redo(): void {
    this.revive(this.history.redo());
  }

  private revive(state: string | undefined): void {
    if (!state) return;
    const { app } = this;
    app.touch();
    app.scene = JSON.parse(state);
    app.requests.rescale();
    app.rebuild();
    app.rest(false);
  }
}
