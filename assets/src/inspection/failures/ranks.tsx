// Column next to the plane of a real triplet: the effect of one step of each loss on the ranks of
// the query, and how it is computed.
import type { FailureData, Way } from "./types.ts";
import type { Shown } from "./step_table.tsx";
import { useRef } from "preact/hooks";
import type { ReadonlySignal, Signal } from "@preact/signals";
import { LETTER, POINTS } from "../../kit/colours.ts";
import { still } from "../../kit/dom.ts";
import { Control, clamp } from "../../kit/panel/panel.tsx";
import { StepTable, count, percent } from "./step_table.tsx";

const WAYS: Record<Way, [text: string, rule: string]> = {
  length: ["step length δ", "Each loss moves its farthest point by δ, regardless of its gradient"],
  rate: [
    "rate η",
    "Each loss moves each point by η times its gradient, so this mostly compares gradient sizes",
  ],
};
const PARTS = [
  ["", ""],
  ["length", "length of the force"],
  ["in plane", "length of the component in the plane, which is drawn"],
  ["off plane", "component normal to the plane; only for losses that depend on norms"],
  [
    "radial",
    "component along the embedding of the point (outward positive), which normalisation removes",
  ],
  ["tangential", "length of the component that moves the point along the sphere"],
];
const TABLE =
  "★ best, or tied with the best; none if all tie or none improves. ✓ better, ✗ worse than now. Click a header to sort the table or a loss to draw it.";

// Scroll to the true step, which Streamlit renders below the plane.
const trueStep = () => {
  const head = document.querySelector(".st-key-true_step_head") as HTMLElement | null;
  if (!head) return;
  head.style.scrollMarginTop = "4.5rem"; // space for the menu on top
  head.scrollIntoView({ behavior: still() ? "auto" : "smooth" });
};
const number = (x: number | null) => (x === null ? "∞" : Math.abs(x) < 5e-5 ? "0" : x.toFixed(3));

/** Size of the step and what it means, as the visitor set them. */
export interface StepSize {
  rate: number;
  by: Way;
}

/** Values that the column shows. */
export interface RanksState {
  data: ReadonlySignal<FailureData>;
  size: Signal<StepSize>;
  numbers: ReadonlySignal<{ shown: Shown; drawn: string; busy: boolean } | undefined>;
}
interface RanksProps {
  losses: [name: string, title: string][];
  state: RanksState;
  onDraw(loss: string): void; // a loss was chosen in the table
  onSize(rests: boolean): void; // the size of the step changes, or has changed
}

export function Ranks({ losses, state, onDraw, onSize }: RanksProps) {
  const { numbers, size, data } = state,
    { shown, drawn = "", busy = false } = numbers.value ?? {},
    { by } = size.value,
    best = useRef(shown?.best),
    { last_word, trained } = data.value;
  best.current = shown?.best ?? best.current;
  const verdict = ["verdict"];
  if (shown && !shown.best) verdict.push("stale");
  if (by === "rate") verdict.push("by-rate");
  if (last_word) verdict.push("outranked");
  return (
    <>
      <section>
        <h3>After one step of each loss</h3>
        <p class="now" role="status">
          {shown && describeNow(shown)}
        </p>
        <Size state={state} onSize={onSize} />
        <p class="rule">
          {`${WAYS[by][1]}.${data.value.circle ? " Points stay on the unit sphere." : ""}`}
        </p>
        <p class={verdict.join(" ")} role="status">
          <strong>{best.current?.verdict}</strong>
        </p>
        <p class={`verdict last-word ${last_word ? "known" : ""}`} role="status" hidden={!trained}>
          <strong>{last_word && `True step: ${last_word}`}</strong>{" "}
          {last_word
            ? "The table moves only three embeddings. Compare it with"
            : "An estimate; check it with"}{" "}
          <button class="link" onClick={trueStep}>
            an actual training step ↓
          </button>
        </p>
        <StepTable losses={losses} shown={shown} drawn={drawn} busy={busy} onDraw={onDraw} />
        <p class="caption">{TABLE}</p>
      </section>
      <details class="section method">
        <summary>Method</summary>
        <p>
          {`The step moves only A, P and N, and ranks them among ${shown ? count(shown.searched) : ""} samples. ${best.current?.judged ?? ""}`}
        </p>
        <h4>Components of each force</h4>
        {shown && <Parts shown={shown} />}
        <h4>Why this figure is exact</h4>
        <ul class="exact">
          {shown?.words.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      </details>
    </>
  );
}

function describeNow({ now, data, moved }: Shown) {
  const was = (key: "right" | "wrong" | "ap", text = count) =>
    moved ? ` (was ${text(data[key])})` : "";
  return `Now: P at rank ${count(now.right)}${was("right")}, N at rank ${count(now.wrong)}${was("wrong")}, AP@R ${percent(now.ap)} %${was("ap", (x) => `${percent(x)} %`)}.`;
}

// Slider of the size of the step, and what it means.
function Size({ state: { size, data }, onSize }: Pick<RanksProps, "state" | "onSize">) {
  const { by, rate } = size.value,
    [low, high] = data.value.rates;
  return (
    <div class="step">
      <Control
        schema={{
          name: "step size",
          symbol: by === "rate" ? "η" : "δ",
          help: `${WAYS[by][1]}.`,
          low,
          high,
          log: true,
          default: rate,
        }}
        value={rate}
        onInput={(x) => {
          size.value = { by, rate: clamp(Number(x), low, high) };
          onSize(false);
        }}
        onRest={() => onSize(true)}
      />
      <div class="pills" role="group" aria-label="equal for all losses">
        <span aria-hidden="true">Equal</span>
        {(Object.keys(WAYS) as Way[]).map((way) => (
          <button
            key={way}
            aria-pressed={way === by}
            onClick={() => {
              size.value = { rate, by: way };
              onSize(true);
            }}
          >
            {WAYS[way][0]}
          </button>
        ))}
      </div>
    </div>
  );
}

// Components of the force on each point.
const Parts = ({ shown }: { shown: Shown }) => (
  <table class="numbers parts">
    <tr>
      {PARTS.map(([text, title]) => (
        <th key={text} scope="col" title={title}>
          {text}
        </th>
      ))}
    </tr>
    {POINTS.map((name, i) => (
      <tr key={name}>
        <th scope="row">{LETTER[name]}</th>
        {(["size", "in", "off", "radial", "tangential"] as const).map((part) => (
          <td key={part} data-part={part}>
            {number(shown.parts[part][i])}
          </td>
        ))}
      </tr>
    ))}
  </table>
);
