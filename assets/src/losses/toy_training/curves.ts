// Curves of both training runs over the steps.
import type { StepChart } from "../../kit/chart/steps.tsx";
import type { History } from "./history.ts";

const SIDES = [
  { letter: "A", colour: "positive" },
  { letter: "B", colour: "negative" },
] as const;
const NARROW = 240; // pixels without space for a word next to a number

// Return the charts: first the loss of each side, then those of all sides. `recent` is the number
// of batches over which the means are taken.
export function toyCurves(sides: number, recent: number): StepChart<History>[] {
  const shown = SIDES.slice(0, sides),
    isNarrow = (canvas: HTMLCanvasElement) => canvas.clientWidth < NARROW;
  return [
    ...shown.map(({ letter, colour }, i): StepChart<History> => ({
      name: `loss ${letter}`,
      title: (canvas) => (isNarrow(canvas) ? "loss" : `loss ${letter}`),
      lines: (history, ink, canvas) => [
        {
          name: isNarrow(canvas) ? "mean" : `mean of ${recent}`,
          colour: ink[colour],
          value: history.column(i, "mean_loss"),
          noisy: history.column(i, "loss"),
        },
      ],
    })),
    {
      name: "active",
      title: `active, mean of ${recent}`,
      top: 1,
      lines: (history, ink) =>
        shown.map(({ letter, colour }, i) => ({
          name: letter,
          colour: ink[colour],
          value: history.column(i, "mean_active"),
          noisy: history.column(i, "active"),
        })),
    },
    {
      name: "MAP@R",
      title: "MAP@R",
      lines: (history, ink) => [
        ...shown.map(({ letter, colour }, i) => ({
          name: letter,
          colour: ink[colour],
          value: history.column(i, "map_at_r"),
        })),
        {
          name: "inputs",
          colour: ink.faint,
          value: () => history.data?.baseline.map_at_r ?? NaN,
        },
      ],
    },
  ];
}
