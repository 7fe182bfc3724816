// Full-screen view of one sample: its image, neighbours, history during training, and tags.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { State } from "./state.ts";
import type { History, Near } from "./types.ts";
import { closeSample, keep, openSample, turnSample } from "./actions.ts";
import { Definitions, PageLink } from "./card.tsx";
import { useMap } from "./context.ts";
import { NameForm } from "./keeping.tsx";
import { nameOf, numberText, titleOf, unusual } from "./texts.ts";

const scores = (precision: number | null, rank: number) => [
  precision === null ? "not a query" : `AP@R ${(100 * precision).toFixed(1)} %`,
  rank ? `first hit at rank ${numberText(rank)}` : "only sample of its class",
];

export function Sample() {
  const map = useMap(),
    { s } = map,
    shown = s.sample.value,
    dialog = useRef<HTMLDialogElement>(null),
    index = shown && s.cloud.value?.indices[shown.row],
    { trained, images, links } = s.data.value;
  useLayoutEffect(() => {
    if (shown && !dialog.current?.open) dialog.current?.showModal();
  }, [shown]);
  const press = (e: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!step || e.target instanceof HTMLInputElement) return;
    e.preventDefault();
    turnSample(map, step);
  };
  const content = () => {
    if (!shown || index === null || index === undefined) return null;
    const { row, near, history, failed } = shown,
      wrong = near && near.neighbours.length > 0 && !near.neighbours[0].right && near.rank > 0;
    return (
      <>
        <header>
          <h2>{nameOf(s, row)}</h2>
          <span>
            <button
              aria-label="previous sample"
              title="previous sample"
              onClick={() => turnSample(map, -1)}
            >
              ←
            </button>
            <button aria-label="next sample" title="next sample" onClick={() => turnSample(map, 1)}>
              →
            </button>
            <button aria-label="close" title="close" onClick={() => dialog.current?.close()}>
              ×
            </button>
          </span>
        </header>
        <div class="columns">
          <div>
            <div>
              <img
                class="large"
                key={index}
                src={`${images}${index}?large=1`}
                alt={titleOf(s, row)}
              />
            </div>
            <p class="facts" aria-live="polite">
              {factsOf(s, row, index, near)}
            </p>
            <div class="metadata">
              <Definitions values={near?.metadata} />
            </div>
            <div class="links">
              {near &&
                links
                  .filter(({ page }) => page !== "failures" || (wrong && near.forces))
                  .map((link) => <PageLink key={link.page} link={link} index={index} />)}
            </div>
            <Tags row={row} index={index} />
          </div>
          <div>
            <h3>Nearest neighbours</h3>
            <div class="found">
              {near?.neighbours.map((neighbour, k) => (
                <Neighbour key={neighbour.row} {...neighbour} place={k + 1} />
              ))}
            </div>
            <h3 hidden={!trained}>During training</h3>
            <div class="history">
              {failed ? <small>{failed}</small> : history && <Moments {...history} />}
            </div>
          </div>
        </div>
      </>
    );
  };
  return (
    <dialog
      ref={dialog}
      class="sample"
      aria-label="sample"
      data-index={index ?? undefined}
      onClose={() => closeSample(map)}
      onKeyDown={press}
    >
      {content()}
    </dialog>
  );
}

// Return number or id, scores and unusual values of a sample.
function factsOf(s: State, row: number, index: number, near?: Near) {
  const { labelled } = s.data.value;
  if (!near) return labelled ? `sample ${index}` : "";
  return [
    ...(near.id || labelled ? [near.id || `sample ${index}`] : []),
    ...(labelled ? scores(near.precision, near.rank) : []),
    ...unusual(s, row),
  ].join(" · ");
}

function Neighbour({
  row,
  right,
  distance,
  place,
}: Near["neighbours"][number] & { place: number }) {
  const map = useMap(),
    { s } = map,
    { labelled, images } = s.data.value,
    verdict = right ? "right" : "wrong",
    name = labelled ? `class ${nameOf(s, row)}, ${verdict}` : nameOf(s, row),
    text = `neighbour ${place}: ${name}, distance ${distance.toFixed(3)}`;
  return (
    <button
      class={labelled ? verdict : ""}
      aria-label={text}
      title={text}
      onClick={() => openSample(map, row)}
    >
      <img src={images + s.cloud.value?.indices[row]} alt="" />
      <small>{`${labelled ? (right ? "✓ " : "✗ ") : ""}${distance.toFixed(3)}`}</small>
      <small class="class">{nameOf(s, row)}</small>
    </button>
  );
}

// The nearest neighbour of a sample at each checkpoint.
function Moments({ moments, kept }: History) {
  const { images } = useMap().data;
  if (!moments.length)
    return (
      <small>
        {kept
          ? `This run has ${kept} checkpoints without embeddings. Open Differences to compute them.`
          : "This run has no intermediate checkpoints. Train a run that keeps checkpoints to see the history of a sample."}
      </small>
    );
  return (
    <>
      {moments.map(({ step, nearest, right, rank, distance }) => {
        const verdict = right ? "right" : "wrong",
          text = `step ${numberText(step)}: nearest neighbour ${verdict}, distance ${distance.toFixed(3)}, first hit at rank ${rank}`;
        return (
          <figure key={step} class={verdict} title={text}>
            <img src={images + nearest} alt={text} />
            <figcaption>
              <b>{`${right ? "✓" : "✗"} ${numberText(step)}`}</b>
              <small>{`rank ${numberText(rank)}`}</small>
            </figcaption>
          </figure>
        );
      })}
    </>
  );
}

// The tags of a sample as switches, and a new one.
function Tags({ row, index }: { row: number; index: number }) {
  const map = useMap(),
    { names, masks } = map.s.tags.value,
    { closed } = map.s.data.value;
  return (
    <div class="tags">
      {names.map((name, k) => {
        const on = masks[k][row] === 1;
        return (
          <button
            key={name}
            aria-pressed={on}
            disabled={Boolean(closed)}
            onClick={() => keep(map, { tag: name, index, on: !on })}
          >
            {name}
          </button>
        );
      })}
      {closed ? (
        <small>{closed}</small>
      ) : (
        <NameForm
          placeholder="new tag"
          label="new tag of this sample"
          button="Tag"
          act={(tag) => keep(map, { tag, index, on: true })}
        />
      )}
    </div>
  );
}
