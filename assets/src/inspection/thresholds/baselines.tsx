// Recommended thresholds of the run and of its baselines, for the promised rate.
import type { PartProps } from "./page.tsx";
import type { Recommended } from "./types.ts";
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { interval, percent, ratio, similarity } from "./words.ts";

const HEADS = ["threshold", "false matches", "× promise", "missed", "equal error rate"];
const wide = (i: number) => (i === 0 || i === 4 ? "wide" : undefined);

export function Baselines({ state }: PartProps) {
  const { rows, offer } = state.data.value.baselines,
    promised = state.recommended.value?.promised,
    isAsked = useSignal(false);
  useLayoutEffect(() => {
    isAsked.value = false;
  }, [state.data.value]);
  return (
    <section>
      <h3>Compared with baselines</h3>
      <table class="baselines">
        <tr>
          <td />
          {HEADS.map((title, i) => (
            <th key={title} scope="col" class={wide(i)}>
              {title}
            </th>
          ))}
        </tr>
        {rows.map(({ name, recommended }, i) => (
          <tr key={name} class={i ? undefined : "own"}>
            <th scope="row">{name}</th>
            <Cells found={recommended.find((each) => each.promised === promised)} />
          </tr>
        ))}
      </table>
      <p class="caption">
        Each with its own threshold for the rate chosen above. × promise: measured by promised rate;
        1 keeps the promise.
      </p>
      <button
        hidden={!offer}
        disabled={isAsked.value}
        onClick={() => {
          isAsked.value = true;
          state.compute();
        }}
      >
        {isAsked.value ? "Computing …" : offer}
      </button>
    </section>
  );
}

function Cells({ found }: { found?: Recommended }) {
  if (!found) return <td colSpan={5}>cannot promise this rate</td>;
  const cells = [
    [similarity(found.threshold), interval(found.within, similarity)],
    [percent(found.fmr), interval(found.fmr_within)],
    [ratio(found.ratio), interval(found.ratio_within, ratio)],
    [percent(found.fnmr), interval(found.fnmr_within)],
    [percent(found.eer), interval(found.eer_within)],
  ];
  return (
    <>
      {cells.map(([value, within], i) => (
        <td key={i} class={wide(i)}>
          {value}
          <small>{within}</small>
        </td>
      ))}
    </>
  );
}
