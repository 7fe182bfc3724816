// Elements of the Thresholds page.
import type { ComponentChildren } from "preact";
import type { Interval, Look, Rate, Side, SideFacts } from "./types.ts";
import type { ThresholdState } from "./state.ts";
import { useComputed } from "@preact/signals";
import { Key, Pills } from "../../kit/panel/panel.tsx";
import { Baselines } from "./baselines.tsx";
import { Classes } from "./classes.tsx";
import { Distributions } from "./distributions.tsx";
import { PairGroups } from "./pair_groups.tsx";
import { rateAt } from "./curves.ts";
import { RATES, inParentheses, interval, percent, ratio, similarity } from "./words.ts";

const FEW = 10; // seen classes below which intervals are too narrow

export interface PartProps {
  state: ThresholdState;
}

// Message in place of the page.
export const Failed = ({ message }: { message: string }) => (
  <>
    <p class="failed" role="alert">
      The pairs cannot be shown. {message}
    </p>
    <button onClick={() => location.reload()}>Reload the page</button>
  </>
);

export const Page = ({ state }: PartProps) => (
  <>
    {state.curves.sides.seen && <Advice state={state} />}
    <div class="main">
      <div>
        <Distributions state={state} />
        <Legend state={state} />
      </div>
      <div class="side">
        <Head state={state} />
        <Rates state={state} />
        {state.curves.sides.seen && (
          <>
            <h4>Classes shown</h4>
            <Choice state={state} name="side" label="classes shown" />
          </>
        )}
      </div>
    </div>
    <section class="pairs" aria-label="pairs on both sides of the threshold">
      <div class="bar">
        <h3>Pairs on both sides</h3>
        <span class="labelled">
          Errors:
          <Choice state={state} name="order" label="order of the errors" />
        </span>
      </div>
      <PairGroups state={state} />
    </section>
    <section>
      <div class="bar">
        <h3>Class by class</h3>
        <Choice state={state} name="curve" label="rate of each class" />
      </div>
      <Classes state={state} />
    </section>
    {state.curves.sides.seen && <Baselines state={state} />}
  </>
);

// Pills for one of the display settings.
function Choice({
  state,
  name,
  label,
}: PartProps & { name: "side" | "order" | "curve"; label: string }) {
  const titles = Object.entries(state.data.value.menus[name]);
  return (
    <Pills
      label={label}
      pills={titles.map(([value, text]) => ({ value, text }))}
      value={state.look.value[name]}
      onChange={(value) => state.choose({ [name]: value } as Partial<Look>)}
    />
  );
}

function Advice({ state }: PartProps) {
  const { curves } = state,
    found = state.recommended.value,
    classes = curves.sides.seen?.classes ?? 0;
  return (
    <section class="advice" aria-label="recommended threshold">
      <div class="try">
        <span>At most this share of false matches:</span>
        <Pills
          label="promised false match rate"
          pills={curves.recommended.map(({ promised }) => ({
            value: String(promised),
            text: `${100 * promised} %`,
          }))}
          value={String(found?.promised)}
          onChange={(rate) => state.recommend(rate)}
        />
      </div>
      <p class="sentence" role="status">
        {found ? (
          <>
            Recommended threshold for {100 * found.promised} % false matches:{" "}
            <b>{similarity(found.threshold)}</b>. Expect <b>{percent(found.fmr)}</b>
            {inParentheses(found.fmr_within)} on unseen classes.
          </>
        ) : (
          "The seen classes have too few pairs to promise a false match rate. Add validation classes or samples."
        )}
      </p>
      <p class="caption">
        {found &&
          `That is ${ratio(found.ratio)} times the promise${inParentheses(found.ratio_within, ratio)}. ` +
            `It misses ${percent(found.fnmr)}${inParentheses(found.fnmr_within)} of the pairs of the same class. ` +
            (found.within
              ? `Interval of the threshold: ${interval(found.within, similarity)}.` +
                (classes < FEW
                  ? ` With only ${classes} seen classes, expect wider intervals than these.`
                  : "")
              : `With only ${classes} seen classes, the uncertainty of the threshold is unknown.`)}
      </p>
    </section>
  );
}

function Legend({ state }: PartProps) {
  const other = state.curves.sides[state.look.value.side === "seen" ? "unseen" : "seen"];
  return (
    <div class="legend">
      <Key kind="same">same class</Key>
      <Key kind="different">different classes</Key>
      <Key kind="error">full colour: errors</Key>
      {other && <Key kind="dashed">{other.name}</Key>}
      {state.recommended.value && <Key kind="triangle">recommended threshold</Key>}
      <span class="key">Height: square root of the share of pairs</span>
    </div>
  );
}

function Head({ state }: PartProps) {
  const { thresholds } = state.curves,
    t = useComputed(() => similarity(thresholds[state.k.value])),
    distance = useComputed(() =>
      Math.sqrt(Math.max(0, 2 - 2 * thresholds[state.k.value])).toFixed(3),
    );
  return (
    <>
      <h3>Threshold {t}</h3>
      <p class="caption">
        Unit vectors at a distance of at most {distance} are accepted. Intervals are for this
        threshold.
      </p>
    </>
  );
}

function Rates({ state }: PartProps) {
  const { sides } = state.curves,
    row = (name: Rate) => (
      <tr class={name}>
        <th scope="row">
          {RATES[name]}
          <small>95 % interval</small>
          <small>pairs</small>
        </th>
        {state.sides.map((side) => (
          <RateCell key={side} state={state} side={side} rate={name} />
        ))}
      </tr>
    );
  const each = (cell: (side: Side) => ComponentChildren) => state.sides.map(cell);
  return (
    <table class="rates">
      <tr>
        <td />
        {each((side) => (
          <th scope="col">
            {sides[side]?.name}
            {sides.seen && <small>{side}</small>}
          </th>
        ))}
      </tr>
      {row("fmr")}
      {row("fnmr")}
      <tr>
        <th scope="row" title="Rate at the threshold where both rates are equal">
          Equal error rate
          <small>95 % interval</small>
        </th>
        {each((side) => (
          <td>
            <b>{percent(sides[side]?.eer ?? NaN)}</b>
            <small>{sides[side] && within(sides[side], sides[side].eer_within)}</small>
          </td>
        ))}
      </tr>
    </table>
  );
}

// Return the interval of a rate of a side as text.
const within = ({ classes }: SideFacts, ends: Interval) =>
  ends ? interval(ends) : `unknown: ${classes} classes`;

function RateCell({ state, side, rate }: PartProps & { side: Side; rate: Rate }) {
  const found = useComputed(() => rateAt(state.curves, side, rate, state.k.value)),
    value = useComputed(() => percent(found.value.value)),
    facts = state.curves.sides[side],
    ends = useComputed(() => facts && within(facts, found.value.within)),
    pairs = useComputed(() => {
      const { count, of } = found.value;
      return `${count.toLocaleString("en")} of ${of.toLocaleString("en")}`;
    });
  return (
    <td>
      <b>{value}</b>
      <small>{ends}</small>
      <small>{pairs}</small>
    </td>
  );
}
