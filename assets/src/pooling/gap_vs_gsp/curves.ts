// Curves of both training runs over the steps. Dotted lines mark changes of settings and the
// initialisation of the prototypes.
import type { History } from "./history.ts";
import type { Measure } from "./types.ts";
import type { Theme } from "../../kit/types.ts";
import { el } from "../../kit/dom.ts";
import { INK } from "../../kit/colours.ts";
import { Curves } from "../../kit/timeline/curves.ts";
import { SIDES } from "./history.ts";

export const MEASURES: [name: Measure, title: string, help: string][] = [
  [
    "map_at_r",
    "MAP@R",
    "Over the validation bags shown, each as a query against the others; measured every ten steps",
  ],
  [
    "on_shared",
    "weight on shared tokens",
    "Share of the pooling weight on the four shared tokens, mean over classes",
  ],
  [
    "intersection",
    "histogram intersection",
    "Weight that two classes put on the same tokens, mean over pairs of classes",
  ],
  [
    "iou",
    "hull IoU",
    "Shared area of two class hulls over their joint area, mean over pairs of classes; measured every ten steps",
  ],
  ["loss", "loss", "Contrastive loss of the batch"],
];
const TOP: Partial<Record<Measure, number>> = { map_at_r: 1 };

const CHARTS = MEASURES.map(([name, label]) => ({ name, label, top: TOP[name] }));

export class GapCurves extends Curves<{ name: Measure; label: string; top?: number }> {
  constructor(onScrub: (step: number) => void, onRest: () => void) {
    super(CHARTS, onScrub, onRest);
    const figures = MEASURES.map(([, title, help], i) =>
      el("figure", { title: help }, el("figcaption", {}, title), this.canvases[i]),
    );
    this.whole.replaceChildren(...figures);
  }

  paint(history: History, step: number, marks: number[], theme: Theme) {
    const ink = INK[theme];
    this.paintAll(
      history.last,
      step,
      theme,
      ({ name }) =>
        SIDES.map((side) => ({
          name: side.toUpperCase(),
          colour: side === "gap" ? ink.negative : ink.positive,
          dash: side === "gap" ? [5, 3] : [],
          value: (k) => history.at(k)[side].held[name],
        })),
      { marks },
    );
  }
}
