// Column next to the plane of a real triplet: the effect of one step of each loss on the ranks of
// the query, and how it is computed.
import type { Best, FailureData, Sorting, Way } from "./types.ts";
import { LETTER, POINTS } from "../../kit/colours.ts";
import { div, still } from "../../kit/dom.ts";
import { Control, clamp, mountPanel } from "../../kit/panel/panel.tsx";
import { StepTable, count, nextSorting, percent, sortLosses } from "./step_table.tsx";
import type { Names, Shown } from "./step_table.tsx";

const WAYS: Record<Way, [text: string, rule: string]> = {
  length: ["step length δ", "Each loss moves its farthest point by δ, regardless of its gradient"],
  rate: [
    "rate η",
    "Each loss moves each point by η times its gradient, so this mostly compares gradient sizes",
  ],
};
const PARTS = [
  ["size", "length", "length of the force"],
  ["in", "in plane", "length of the component in the plane, which is drawn"],
  ["off", "off plane", "component normal to the plane; only for losses that depend on norms"],
  [
    "radial",
    "radial",
    "component along the embedding of the point (outward positive), which normalisation removes",
  ],
  ["tangential", "tangential", "length of the component that moves the point along the sphere"],
] as const;
const TABLE =
  "★ marks the best value of a column. Click a header to sort the table or a loss to draw it.";

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

export class Ranks {
  readonly root = div("ranks");
  readonly losses: Names;
  readonly draw: (loss: string) => void;
  readonly show: () => void;
  size: StepSize = { rate: 1, by: "length" };
  data: FailureData | undefined;
  moved: (rests: boolean) => void = () => {};
  shown: Shown | undefined;
  best: Best | undefined; // last judgement
  drawn = "";
  by: Sorting | null = null;
  order: string[];

  /** `draw` is called with the loss that the visitor chooses in the table. */
  constructor(losses: Names, draw: (loss: string) => void) {
    this.losses = losses;
    this.draw = draw;
    this.order = losses.map(([name]) => name);
    this.show = mountPanel(this.root, () => this.data && <Column ranks={this} data={this.data} />);
  }

  /**
   * Show the size of the step. It is changed in place, then `moved` is called, at the end of a
   * gesture with true.
   */
  showSize(size: StepSize, data: FailureData, moved: (rests: boolean) => void): void {
    Object.assign(this, { size, data, moved });
    this.show();
  }

  /** Show the numbers of an answer; `drawn`: the loss of the plane; `busy`: during a gesture. */
  update(shown: Shown, drawn: string, busy: boolean): void {
    Object.assign(this, { shown, drawn });
    this.best = shown.best ?? this.best;
    if (!busy) this.order = sortLosses(this.losses, shown.steps, this.by);
    this.show();
  }

  /** Show the verdict of the true step, once it was taken. */
  showTrueStep(data: FailureData): void {
    this.data = data;
    this.show();
  }

  sort(by: Sorting | null): void {
    this.by = by;
    this.order = sortLosses(this.losses, this.shown?.steps ?? {}, by);
    this.show();
  }
}

function Column({ ranks, data }: { ranks: Ranks; data: FailureData }) {
  const { losses, order, by, shown, drawn, draw, size, best } = ranks,
    [, rule] = WAYS[size.by],
    verdict = [
      "verdict",
      size.by === "rate" && "by-rate",
      data.last_word && "outranked",
      shown && !shown.best && "stale",
    ];
  return (
    <>
      <section>
        <h3>After one step of each loss</h3>
        <p class="now" role="status">
          {shown && nowText(shown)}
        </p>
        <div class="step">
          <Size ranks={ranks} data={data} />
        </div>
        <p class="rule">{`${rule}.${data.circle ? " Points stay on the unit sphere." : ""}`}</p>
        <p class={verdict.filter(Boolean).join(" ")} role="status">
          <strong>{best?.verdict}</strong>
        </p>
        <LastWord data={data} />
        <StepTable
          losses={losses}
          order={order}
          by={by}
          shown={shown}
          drawn={drawn}
          onSort={(key) => ranks.sort(nextSorting(by, key))}
          onDraw={draw}
        />
        <p class="caption">{TABLE}</p>
      </section>
      <details class="section method">
        <summary>Method</summary>
        <p>
          The step moves only A, P and N, and ranks them among{" "}
          <span>{shown && count(shown.searched)}</span> samples. <span>{best?.judged}</span>
        </p>
        <h4>Components of each force</h4>
        <Parts shown={shown} />
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

function nowText({ now, data, moved }: Shown) {
  const percents = (x: number) => `${percent(x)} %`,
    was = (text: string) => (moved ? ` (was ${text})` : "");
  return `Now: P at rank ${count(now.right)}${was(count(data.right))}, N at rank ${count(now.wrong)}${was(count(data.wrong))}, AP@R ${percents(now.ap)}${was(percents(data.ap))}.`;
}

function Size({ ranks: { size, moved, show }, data }: { ranks: Ranks; data: FailureData }) {
  const [low, high] = data.rates,
    schema = {
      name: "step size",
      symbol: size.by === "rate" ? "η" : "δ",
      help: `${WAYS[size.by][1]}.`,
      ...{ low, high, log: true, default: size.rate },
    };
  return (
    <>
      <Control
        schema={schema}
        value={size.rate}
        onInput={(x) => {
          size.rate = clamp(Number(x), low, high);
          moved(false);
        }}
        onRest={() => moved(true)}
      />
      <div class="pills" role="group" aria-label="equal for all losses">
        <span aria-hidden="true">Equal</span>
        {(Object.keys(WAYS) as Way[]).map((way) => (
          <button
            key={way}
            aria-pressed={way === size.by}
            onClick={() => {
              size.by = way;
              show();
              moved(true);
            }}
          >
            {WAYS[way][0]}
          </button>
        ))}
      </div>
    </>
  );
}

// Verdict of the true step; an embedding set has no network, so no true step.
const LastWord = ({ data: { last_word, trained } }: { data: FailureData }) => (
  <p class={`verdict last-word ${last_word ? "known" : ""}`} role="status" hidden={!trained}>
    <strong>{last_word && `True step: ${last_word}`}</strong>{" "}
    <span>
      {last_word
        ? "The table moves only three embeddings. Compare it with"
        : "An estimate; check it with"}
    </span>{" "}
    <button class="link" onClick={trueStep}>
      an actual training step ↓
    </button>
  </p>
);

const Parts = ({ shown }: { shown?: Shown }) => (
  <table class="numbers parts">
    <tr>
      <th scope="col" />
      {PARTS.map(([key, text, title]) => (
        <th key={key} scope="col" title={title}>
          {text}
        </th>
      ))}
    </tr>
    {POINTS.map((name, i) => (
      <tr key={name}>
        <th scope="row">{LETTER[name]}</th>
        {PARTS.map(([key]) => (
          <td key={key} data-part={key}>
            {shown && number(shown.parts[key][i])}
          </td>
        ))}
      </tr>
    ))}
  </table>
);
