// Card with the image of the point under the pointer; for an opened point also its neighbours and
// links.
import type { Explore } from "./explore.tsx";
import type { State } from "./state.ts";
import type { MapData, Near } from "./types.ts";
import { onward } from "../../kit/dom.ts";
import { openCard, openSample } from "./actions.ts";
import { useMap } from "./context.ts";
import { followedBy } from "./keeping.tsx";
import { nameOf, titleOf, valueOf } from "./texts.ts";

const MOST_VALUES = 6, // metadata values on the card; the view of one sample has all
  MOST_NEIGHBOURS = 5;

export function Card() {
  const { s } = useMap(),
    card = s.card.value;
  if (!card || !s.cloud.value) return <div class="card" hidden />;
  const { row, pinned, near } = card,
    index = s.cloud.value.indices[row],
    { images } = s.data.value;
  return (
    <div class={`card ${pinned ? "pinned" : ""}`.trim()}>
      <img key={index} src={images + index} alt={titleOf(s, row)} width={128} height={128} />
      <b>
        <bdi>{nameOf(s, row)}</bdi>
      </b>
      <small>{factsOf(s, row, near?.id || `sample ${index}`)}</small>
      {pinned && <Opened row={row} index={index} near={near} />}
    </div>
  );
}

// Return the line below the name: the sample, unless it is the name, and the value of its colour.
function factsOf(s: State, row: number, sample: string) {
  const value = valueOf(s, row);
  return s.data.value.labelled || sample !== nameOf(s, row) ? sample + value : value.slice(3);
}

function Opened({ row, index, near }: { row: number; index: number; near?: Near }) {
  const map = useMap(),
    { s } = map,
    { links, labelled, images } = s.data.value,
    neighbours = near?.neighbours ?? [],
    failed = neighbours.length > 0 && !neighbours[0].right;
  return (
    <>
      <div class="metadata">
        <Definitions values={near?.metadata.slice(0, MOST_VALUES)} />
      </div>
      <div class="near">
        {neighbours.slice(0, MOST_NEIGHBOURS).map(({ row: other, right, distance }) => {
          const sign = !labelled ? "" : right ? "✓" : "✗",
            verdict = right ? "right" : "wrong",
            name = labelled ? `${sign} ${verdict}: class ${nameOf(s, other)}` : nameOf(s, other),
            text = `${name}, distance ${distance.toFixed(3)}`;
          return (
            <button
              key={other}
              class={labelled ? verdict : ""}
              title={text}
              aria-label={`neighbour, ${text}`}
              onClick={() => openCard(map, other, true)}
            >
              <img src={images + s.cloud.value?.indices[other]} alt="" width={26} height={26} />
              {sign}
            </button>
          );
        })}
      </div>
      <button onClick={() => openSample(map, row)}>Full screen</button>
      {links.map((link) => (
        <PageLink
          key={link.page}
          link={link}
          index={index}
          hidden={link.page === "failures" && !failed}
        />
      ))}
      <button
        class="shut"
        aria-label="close"
        title="Close (Esc)"
        onClick={() => {
          openCard(map, -1);
          map.canvas.focus();
        }}
      >
        ×
      </button>
    </>
  );
}

// Link to another page about a sample.
export function PageLink({
  link: { page, label, parameters },
  index,
  hidden = false,
}: {
  link: MapData["links"][number];
  index: number;
  hidden?: boolean;
}) {
  const map = useMap(),
    query = new URLSearchParams({ ...parameters, query: String(index) });
  return (
    <a
      class="button"
      href={onward(`${map.data.base}${page}`, query.toString())}
      data-page={page}
      hidden={hidden}
      onClick={followedBy(() => map.tell("open", { page, index }))}
    >
      {label}
    </a>
  );
}

// List of names and values.
export const Definitions = ({ values = [] }: { values?: Near["metadata"] }) =>
  values.length > 0 ? (
    <dl>
      {values.map(([name, value]) => (
        <>
          <dt>
            <bdi>{name}</bdi>
          </dt>
          <dd>
            <bdi>{value}</bdi>
          </dd>
        </>
      ))}
    </dl>
  ) : null;

// Put the card next to its point, inside the map.
export function placeCard({ s, figure, overlay }: Explore) {
  const card = s.card.peek(),
    cloud = s.cloud.peek(),
    root = overlay.querySelector<HTMLElement>(".card");
  if (!card || !cloud || !root) return;
  const { view } = figure,
    [x, y] = view.to([cloud.x(card.row), cloud.y(card.row)]),
    { offsetWidth: w, offsetHeight: h } = root,
    left = x + w + 18 < view.width ? x + 14 : x - w - 14;
  root.style.left = `${Math.max(4, Math.min(left, view.width - w - 4))}px`;
  root.style.top = `${Math.max(4, Math.min(y - 60, view.height - h - 4))}px`;
}
