// Curves of a simulation over the steps.
import type { History } from "./history.ts";
import type { Column } from "./types.ts";
import type { Theme } from "../../kit/types.ts";
import { INK } from "../../kit/colours.ts";
import { Curves } from "../../kit/timeline/curves.ts";

const of = (name: Column) => (history: History) => (k: number) => history.at(k).measures[name];
export type Reading = (history: History) => (step: number) => number;
// name of a colour
export type Role = "text" | "negative" | "positive";
export type Row = [name: string, role: Role, value: Reading, dash?: number[]];
export interface Chart {
  name: string;
  title?: string;
  top?: number;
  classes?: boolean; // one line per class, of its radius
  lines?: Row[];
}
const CHARTS: Chart[] = [
  { name: "loss", title: "", lines: [["loss", "text", of("loss")]] },
  {
    name: "active triplets and MAP@R",
    top: 1,
    lines: [
      ["active", "negative", of("active"), [5, 3]],
      ["MAP@R", "positive", of("map_at_r")],
    ],
  },
  {
    name: "mean pull and push of active triplets",
    lines: [
      ["pull", "positive", of("pull")],
      ["push", "negative", of("push"), [5, 3]],
    ],
  },
  { name: "class radii", title: "class radii", classes: true },
  { name: "covering radius", lines: [["covering radius", "text", of("covering")]] },
];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [4, 2], [1, 3], [10, 3], [3, 3, 1, 3]];

export class ChargesCurves extends Curves<Chart> {
  constructor(onScrub: (step: number) => void, onRest: () => void) {
    super(CHARTS, onScrub, onRest);
  }

  paint(history: History, step: number, theme: Theme, colours: string[]) {
    const ink = INK[theme],
      radius = (c: number) => (k: number) => history.at(k).radii[c];
    this.paintAll(history.last, step, theme, (chart) =>
      chart.classes
        ? Array.from(history.at(step).radii, (_, c) => ({
            colour: colours[c],
            dash: DASHES[c],
            value: radius(c),
          }))
        : (chart.lines ?? []).map(([name, colour, value, dash]) => ({
            name,
            colour: ink[colour],
            dash,
            value: value(history),
          })),
    );
  }
}
