// Pairs on both sides of the threshold: errors, and correct decisions.
import type { Kind, Pair } from "./types.ts";
import type { PartProps } from "./page.tsx";
import { useComputed, useSignalEffect } from "@preact/signals";
import { useWidth } from "../../kit/panel/painting.tsx";
import { PageLink } from "./page_link.tsx";
import { group } from "./pairs.ts";
import { similarity } from "./words.ts";

const WRONG = 6, // pairs in a group of errors
  NARROW = 880, // px of width below which there are half as many
  CORRECT = 2; // pairs in a group of correct decisions
const GROUPS: { kind: Kind; above: boolean; title: string; what: string }[] = [
  { kind: "same", above: false, title: "✗ Missed", what: "same class, below the threshold" },
  { kind: "different", above: true, title: "✗ False matches", what: "different classes, accepted" },
  { kind: "different", above: false, title: "✓ Kept apart", what: "different classes, below" },
  { kind: "same", above: true, title: "✓ Found", what: "same class, accepted" },
];
type Group = (typeof GROUPS)[number] & { errors: number }; // pairs in a group of errors

export function PairGroups({ state }: PartProps) {
  const { look, settled, data } = state,
    [box, width] = useWidth<HTMLDivElement>(),
    errors = useComputed(() => (width.value < NARROW ? WRONG / 2 : WRONG));
  useSignalEffect(() => {
    if (settled.value >= 0) state.load(look.value.side);
  });
  return (
    <>
      <p class="caption" hidden={look.value.side === "unseen" || data.value.set}>
        Failures and Explore show test classes only.
      </p>
      <div class="groups" ref={box}>
        {GROUPS.map((each) => (
          <PairGroup key={each.title} state={state} {...each} errors={errors.value} />
        ))}
      </div>
    </>
  );
}

function PairGroup({ state, kind, above, title, what, errors }: PartProps & Group) {
  const { side, order } = state.look.value,
    k = state.settled.value,
    pairs = state.pairs.value[side],
    wrong = above === (kind === "different"),
    nearest = !wrong || order === "near",
    loaded = pairs && !(pairs instanceof Error),
    shown = loaded ? group(pairs, kind, k, above, nearest, wrong ? errors : CORRECT) : [],
    accepted = state.curves[`${side}_${kind}`][k],
    total = above ? accepted : (state.curves.sides[side]?.[kind] ?? 0) - accepted,
    some = shown.length < total ? `${shown.length} of ` : "";
  return (
    <section>
      <h4>
        <b>{title}</b> {what}{" "}
        <span class="count">
          {loaded && (total ? `${some}${total.toLocaleString("en")}` : "none")}
        </span>
      </h4>
      <ul>
        {shown.map((pair) => (
          <PairItem key={pair.samples.join()} state={state} pair={pair} />
        ))}
        {pairs && !shown.length && (
          <li class="none">
            {loaded ? "No pair." : `The pairs cannot be loaded. ${(pairs as Error).message}`}
          </li>
        )}
      </ul>
    </section>
  );
}

// Both images of a pair with its similarity and its links. Images and links need no further data,
// so a pair can be opened in a new tab, too.
function PairItem({
  state,
  pair: { kind, samples, names, value, pages },
}: PartProps & { pair: Pair }) {
  const [query, other] = samples,
    role = kind === "same" ? "right" : "wrong";
  return (
    <li class={`pair ${kind}`}>
      <div class="both">
        {samples.map((sample, i) => (
          <img
            key={i}
            src={`${state.data.value.images}${sample}?large=1`}
            alt={`${names[i]}, sample ${sample}`}
            draggable={false}
          />
        ))}
        {names.slice(0, kind === "same" ? 1 : 2).map((name, i) => (
          <span key={i} class="name" title={name}>
            {name}
          </span>
        ))}
      </div>
      <p>
        <b>{similarity(value)}</b>
        <span class="links">
          {Boolean(pages & 2) && (
            <PageLink state={state} page="failures" parameters={{ query, [role]: other }}>
              Forces
            </PageLink>
          )}
          {Boolean(pages & 1) && (
            <PageLink state={state} page="explore" parameters={{ point: query, query: other }}>
              On the map
            </PageLink>
          )}
        </span>
      </p>
    </li>
  );
}
