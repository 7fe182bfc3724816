// Signs of the planes and their meaning.
import type { ComponentChildren } from "preact";
import type { Theme } from "../../kit/types.ts";
import { INK } from "../../kit/colours.ts";
import { colourOf } from "./draw.ts";

const BAGS = [
  [5, 6],
  [12, 5],
  [9, 13],
];

export function Signs({ theme, bound }: { theme: Theme; bound: number }) {
  const ink = INK[theme],
    own = colourOf(0, theme),
    sign = (text: string, mark: ComponentChildren) => (
      <span class="key">
        <svg viewBox="0 0 18 18" aria-hidden="true">
          {mark}
        </svg>
        {text}
      </span>
    ),
    diamond = (fill: string) => (
      <path d="M9 2l7 7-7 7-7-7z" fill={fill} stroke={ink.anchor} stroke-width="1.4" />
    );
  return (
    <div class="legend" role="group" aria-label="signs">
      {sign(
        "token of one class, 4 each",
        <circle cx="9" cy="9" r="6" fill={own} stroke={ink.rim} stroke-width="1.3" />,
      )}
      {sign("S1–S4: tokens of all classes", diamond(ink.anchor))}
      {sign("hollow: hardly used by the chosen class", diamond(ink.page))}
      {sign(
        "bag of 50 tokens, pooled",
        BAGS.map(([x, y]) => <circle key={x} cx={x} cy={y} r="2.8" fill={own} />),
      )}
      {sign(
        "hull of the tokens that a class uses",
        <path
          d="M2 14L7 2l9 5-3 9z"
          fill={own}
          fill-opacity="0.12"
          stroke={own}
          stroke-width="1.3"
        />,
      )}
      {sign(
        "prototype of GSP",
        <circle cx="9" cy="9" r="5" fill="none" stroke={ink.text} stroke-width="1.3" />,
      )}
      {sign(
        `limit of token coordinates, ±${bound}`,
        <path d="M2.5 2.5h13v13h-13z" fill="none" stroke={ink.faint} stroke-dasharray="3" />,
      )}
    </div>
  );
}
