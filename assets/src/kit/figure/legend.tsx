// Legends: one key for each mark and colour of a figure.
import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Theme } from "../types.ts";
import { paintScale } from "../component.ts";

/** One entry of a legend: a kind of line or area, or a ramp of colours between two texts. */
export interface Key {
  text: string;
  mark?: "line" | "dashed" | "dotted" | "hatched" | "disc" | "square"; // default: line
  colour?: string; // default: the colour of text
  // `colour`, of 0..1, stays the same function as long as it has the same colours
  ramp?: { colour(t: number, theme: Theme): number[]; low: string; high: string };
  hidden?: boolean;
}

/** Scale of colours between two texts. */
export function Ramp({ colour, low, high, theme }: NonNullable<Key["ramp"]> & { theme: Theme }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (canvas.current) paintScale(canvas.current, (t) => colour(t, theme));
  }, [colour, theme]);
  return (
    <>
      <span>{low}</span>
      <canvas width={110} height={1} ref={canvas} />
      <span>{high}</span>
    </>
  );
}

/** Render the keys of a figure into an element. */
export function renderLegend(into: HTMLElement, keys: Key[], theme: Theme): void {
  render(
    keys.map(({ text, mark = "line", colour, ramp, hidden }) =>
      ramp ? (
        <span class="bar" hidden={hidden} key={text}>
          <span>{text}</span>
          <Ramp {...ramp} theme={theme} />
        </span>
      ) : (
        <span class="key" hidden={hidden} key={text}>
          <i class={mark === "line" ? "" : mark} style={colour ? { color: colour } : undefined} />
          {text}
        </span>
      ),
    ),
    into,
  );
}
