// Plane of one pooling as a figure; a class is highlighted under the pointer and chosen by a click.
import type { GapOrGsp } from "./gap_vs_gsp.ts";
import type { Frame, Side } from "./types.ts";
import type { At, FigureSpec } from "../../kit/figure/spec.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { plane } from "../../kit/figure/view.ts";
import { brief } from "../../kit/plot.ts";
import { classAt, paintPlane } from "./draw.ts";
import { percent } from "./words.ts";

export const TITLES = {
  gap: "GAP: the plain average",
  gsp: "GSP: a learned gate, then the average",
};
const REACH = 0.33, // half the width of the view: the box of ±0.3 plus a margin
  NEAR = 12, // px within which a pointer finds a class
  NEAR_FINGER = 22,
  CLICK = 4; // px that a click may move

export class PlaneFigure {
  side: Side;
  figure: Figure<number>;
  private app: GapOrGsp;
  private readonly spec: FigureSpec<number>;

  constructor(app: GapOrGsp, side: Side) {
    this.app = app;
    this.side = side;
    this.spec = this.newSpec();
    this.figure = new Figure(this.spec);
    Object.assign(this.figure.canvas, { tabIndex: -1 }).dataset.side = side; // keys act on the pair
  }

  private newSpec(): FigureSpec<number> {
    const { app, side } = this;
    return {
      label: TITLES[side],
      touch: "all",
      view: (width, height) => plane([0, 0, REACH], width, height),
      // inside the line of the limit, where they cross nothing, and never over a token
      get axes() {
        const { bound } = app.player.options;
        return { corner: [-bound, -bound] as const, below: true };
      },
      draw: (ctx, { view, theme }) => {
        const { frame, labels, highlighted: chosen, shown, player } = app,
          { bound } = player.options;
        if (frame) paintPlane(ctx, view, frame[side], labels, { chosen, shown, bound }, theme);
      },
      hit: (at) => this.find(at),
      hover: (_, over) => {
        if (over === app.over) return;
        app.over = over;
        app.clock.invalidate();
      },
      press: (first) => ({
        move() {},
        end: (at) => {
          const moved = Math.hypot(...at.pixel.map((x, i) => x - first.pixel[i]));
          if (moved > CLICK) return;
          const found = this.find(at);
          app.choose(found === app.chosen ? null : found);
        },
      }),
    };
  }

  private find({ pixel, by }: Pick<At, "pixel" | "by">) {
    const { frame, labels } = this.app,
      reach = by === "touch" ? NEAR_FINGER : NEAR;
    return frame ? classAt(frame[this.side], labels, this.figure.view, pixel, reach) : null;
  }

  describe(frame: Frame) {
    const { labels, clock } = this.app,
      { held, classes, prototypes } = frame[this.side];
    this.spec.label = `${TITLES[this.side]}, step ${clock.at}: ${labels.length} bags of ${classes} classes, MAP@R ${brief(held.map_at_r)}, weight on shared tokens ${percent(held.on_shared)}, hull IoU ${brief(held.iou)}, ${prototypes.length / 2} prototypes placed`;
    this.figure.announce();
  }
}
