// Rates of each class over the threshold, and the classes with the highest rates.
import type { PartProps } from "./page.tsx";
import { Painting } from "../../kit/panel/painting.tsx";
import { worstClasses } from "./curves.ts";
import { ThresholdPlot } from "./distributions.tsx";
import { paintClasses } from "./figures.ts";
import { PageLink } from "./page_link.tsx";
import { RATES, percent } from "./words.ts";

const WORST = 5; // classes listed

export function Classes({ state }: PartProps) {
  const { curves, look, theme } = state;
  const drawn = () => ({
    curves,
    side: look.value.side,
    rate: look.value.curve,
    theme: theme.value,
  });
  return (
    <div class="main">
      <ThresholdPlot state={state} also="classes">
        <Painting
          paint={(ctx, width, height) => paintClasses(ctx, { ...drawn(), width, height })}
        />
        <div class="line" />
      </ThresholdPlot>
      <Worst state={state} />
    </div>
  );
}

function Worst({ state }: PartProps) {
  const { curves, look, settled } = state,
    { side, curve } = look.value,
    facts = curves.sides[side],
    found = worstClasses(curves, side, curve, curves.thresholds[settled.value], WORST),
    shown = facts?.class_names.length ?? 0,
    all = facts?.classes ?? 0,
    of = ` (the ${shown} of ${all.toLocaleString("en")} classes that deviate most)`;
  return (
    <div class="side">
      <p class="caption">
        {`${RATES[curve]} of each class${shown < all ? of : ""}; bold: median. Highest at this threshold:`}
      </p>
      <ol class="worst">
        {found.map(({ row, value }) => {
          const name = facts?.class_names[row],
            label = facts?.class_labels[row];
          return (
            <li key={row}>
              <b>{percent(value)}</b>{" "}
              {label === undefined ? (
                <span>{name}</span>
              ) : (
                <PageLink
                  state={state}
                  page="explore"
                  parameters={{ classes: label }}
                  title="Show this class on the map"
                >
                  {name}
                </PageLink>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
