// Curves of a simulation over the steps.
import type { Line, StepChart } from "../../kit/chart/steps.tsx";
import type { Ink } from "../../kit/types.ts";
import type { History } from "./history.ts";
import type { Column } from "./types.ts";

export interface CurveData {
  history: History;
  step: number;
  classes: string[]; // colours
}
type Row = [
  name: string,
  column: Column,
  colour: "text" | "negative" | "positive",
  dash?: number[],
];

// Return the lines of a chart from its rows.
const measures =
  (...rows: Row[]) =>
  ({ history }: CurveData, ink: Ink): Line[] =>
    rows.map(([name, column, colour, dash]) => ({
      name,
      colour: ink[colour],
      dash,
      value: (k) => history.at(k).measures[column],
    }));

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [4, 2], [1, 3], [10, 3], [3, 3, 1, 3]];

export const CURVES: StepChart<CurveData>[] = [
  { name: "loss", lines: measures(["loss", "loss", "text"]) },
  {
    name: "active triplets and MAP@R",
    top: 1,
    lines: measures(["active", "active", "negative", [5, 3]], ["MAP@R", "map_at_r", "positive"]),
  },
  {
    name: "mean pull and push of active triplets",
    lines: measures(["pull", "pull", "positive"], ["push", "push", "negative", [5, 3]]),
  },
  {
    name: "class radii",
    title: "radii",
    lines: ({ history, step, classes }) =>
      Array.from(history.at(step).radii, (_, c) => ({
        name: String(c + 1),
        colour: classes[c],
        dash: DASHES[c],
        value: (k) => history.at(k).radii[c],
      })),
  },
  { name: "covering radius", lines: measures(["covering radius", "covering", "text"]) },
];
