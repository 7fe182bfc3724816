// Changes of the scene as a whole: presets, reset, snap, undo and redo.
import type { Hyper, Schema } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Scene } from "./types.ts";
import { defaultsOf } from "../panel/values.ts";
import { History } from "./history.ts";
import { snapNow } from "./snap.ts";

const OF_THE_NORMALISED = ["s", "r", "rho", "m1"]; // a loss with these has a normalised margin

/**
 * Return the first kind of margin of a loss. A normalised margin, which Python computes, keeps the
 * field active while other parameters change.
 */
export function marginOf(schema: Schema, loss: string): Pick<Scene, "margin" | "mu"> {
  const names = schema.losses[loss].controls.map((c) => c.name),
    has = OF_THE_NORMALISED.every((name) => names.includes(name));
  return { margin: has ? "normalised" : "raw", mu: null };
}

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
      hyper: Hyper = variant.defaults?.(scene.loss) ?? defaultsOf(schema.losses[scene.loss]);
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
