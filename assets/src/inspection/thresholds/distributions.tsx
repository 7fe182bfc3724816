// Distributions of the pairs with the threshold to drag. A drag paints nothing: it moves the handle
// and the edge at which style sheets clip the canvases of errors (--x).
import type { ComponentChildren } from "preact";
import type { PartProps } from "./page.tsx";
import type { ThresholdState } from "./state.ts";
import { useLayoutEffect } from "preact/hooks";
import { useComputed } from "@preact/signals";
import { scrubbed, within } from "../../kit/hand.ts";
import { Painting, useWidth } from "../../kit/panel/painting.tsx";
import { closest, rateAt } from "./curves.ts";
import { paintDistributions, paintErrors, scale } from "./figures.ts";
import { RATES, percent } from "./words.ts";

const ERRORS = ["same", "different"] as const;

export function Distributions({ state }: PartProps) {
  const { curves, densities, look, theme } = state,
    drawn = (width: number, height: number) => {
      return { curves, densities, side: look.value.side, theme: theme.value, width, height };
    };
  return (
    <ThresholdPlot state={state}>
      <Painting paint={(ctx, ...size) => paintDistributions(ctx, drawn(...size))} />
      {ERRORS.map((kind) => (
        <Painting
          key={kind}
          class={kind}
          paint={(ctx, ...size) => paintErrors(ctx, kind, drawn(...size))}
        />
      ))}
      <button
        class="mark"
        hidden={!state.recommended.value}
        title="Recommended threshold: move the threshold there"
        onClick={() => state.recommend(look.value.fmr)}
      />
      <Handle state={state} />
    </ThresholdPlot>
  );
}

// Plot over all thresholds, on which a press or a drag moves the threshold.
export function ThresholdPlot({
  state,
  also = "",
  children,
}: PartProps & { also?: string; children: ComponentChildren }) {
  const { curves, k, recommended } = state,
    [plot, width] = useWidth<HTMLDivElement>();
  const style = useComputed(() => {
    const { x } = scale(curves, width.value),
      mark = recommended.value?.threshold ?? 0;
    return `--x: ${x(curves.thresholds[k.value])}px; --mark: ${x(mark)}px`;
  });
  useLayoutEffect(() => {
    if (plot.current) listen(plot.current, state);
  }, []);
  return (
    <div ref={plot} class={`plot ${also}`} style={style}>
      {children}
    </div>
  );
}

function listen(plot: HTMLElement, state: ThresholdState) {
  const { curves, handle } = state;
  const follow = (event: PointerEvent) => {
    if (event.button > 0) return; // -1 while the pointer moves
    const t = scale(curves, plot.clientWidth).t(within(event, plot)[0]);
    state.move(closest(curves.thresholds, t));
    if (event.type === "pointerdown") handle.current?.focus({ preventScroll: true });
  };
  scrubbed(plot, follow, () => state.rest());
}

function Handle({ state }: PartProps) {
  const { curves, k, look } = state,
    { thresholds } = curves,
    number = (i: number) => Number(thresholds[i].toFixed(3)),
    now = useComputed(() => number(k.value)),
    spoken = useComputed(() => {
      const rates = (["fmr", "fnmr"] as const).map((rate) => {
        const { value } = rateAt(curves, look.value.side, rate, k.value);
        return `${percent(value)} ${RATES[rate].toLowerCase()}`;
      });
      return `${now.value}: ${rates.join(", ")}`;
    });
  return (
    <div
      ref={state.handle}
      class="threshold"
      role="slider"
      tabIndex={0}
      aria-label="threshold of the cosine similarity"
      aria-orientation="horizontal"
      aria-valuemin={number(0)}
      aria-valuemax={number(thresholds.length - 1)}
      aria-valuenow={now}
      aria-valuetext={spoken}
      onKeyDown={(event) => state.press(event)}
    >
      <span class="grip" />
    </div>
  );
}
