// Curves of both training runs over the steps.
import type { History } from "./history.ts";
import type { Column } from "./types.ts";
import type { Theme } from "../../kit/types.ts";
import { INK } from "../../kit/colours.ts";
import { Curves } from "../../kit/timeline/curves.ts";

// name of a colour
export type Role = "positive" | "negative" | "faint";
export type Reading = (history: History) => (step: number) => number;
export type Curve = [name: string, role: Role, value: Reading, noisy?: Reading];
export type Chart = { name: string; title: string; top?: number; lines: Curve[] };

const SIDE: [letter: string, role: Role][] = [
  ["A", "positive"],
  ["B", "negative"],
];

export class ToysCurves extends Curves<Chart> {
  losses: HTMLCanvasElement[];
  constructor(sides: number, recent: number, onScrub: (step: number) => void, onRest: () => void) {
    const both = SIDE.slice(0, sides),
      value: (i: number, name: Column) => Reading = (i, name) => (history) =>
        history.column(i, name);
    const charts: Chart[] = [
      ...both.map(([letter, colour], i) => ({
        name: `loss ${letter}`,
        title: `loss ${letter}`,
        lines: [[`mean of ${recent}`, colour, value(i, "mean_loss"), value(i, "loss")]] as Curve[],
      })),
      {
        name: "active",
        title: `active, mean of ${recent}`,
        top: 1,
        lines: both.map(
          ([letter, colour], i) =>
            [letter, colour, value(i, "mean_active"), value(i, "active")] as Curve,
        ),
      },
      {
        name: "MAP@R",
        title: "MAP@R",
        lines: [
          ...both.map(([letter, colour], i) => [letter, colour, value(i, "map_at_r")] as Curve),
          ["inputs", "faint", (history) => () => history.data?.baseline.map_at_r ?? NaN],
        ],
      },
    ];
    super(charts, onScrub, onRest);
    this.losses = this.canvases.slice(0, sides);
    this.whole.replaceChildren(...this.canvases.slice(sides));
  }

  // There is space for a word next to its number.
  short(chart: Chart, canvas: HTMLCanvasElement) {
    return this.charts.indexOf(chart) < this.losses.length && canvas.clientWidth < 240;
  }

  title(chart: Chart, canvas: HTMLCanvasElement) {
    return this.short(chart, canvas) ? "loss" : chart.title;
  }

  paint(history: History, step: number, marks: number[], theme: Theme, tell: boolean) {
    const ink = INK[theme];
    this.paintAll(
      history.last,
      step,
      theme,
      (chart, canvas) =>
        chart.lines.map(([name, colour, of, noisy]) => ({
          name: this.short(chart, canvas) ? "mean" : name,
          colour: ink[colour],
          value: of(history),
          noisy: noisy?.(history),
        })),
      { marks, tell },
    );
  }
}
