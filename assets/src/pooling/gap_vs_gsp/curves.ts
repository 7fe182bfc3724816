// Curves of both training runs over the steps.
import type { StepChart } from "../../kit/chart/steps.tsx";
import type { History } from "./history.ts";
import type { Measure } from "./types.ts";
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

export const CURVES = MEASURES.map(([name, caption, help]): StepChart<History> => ({
  name,
  label: caption,
  caption,
  help,
  top: name === "map_at_r" ? 1 : undefined,
  lines: (history, ink) =>
    SIDES.map((side) => ({
      name: side.toUpperCase(),
      colour: side === "gap" ? ink.negative : ink.positive,
      dash: side === "gap" ? [5, 3] : [],
      value: (k) => history.at(k)[side].held[name],
    })),
}));
