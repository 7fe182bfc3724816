// Images of the highlighted points; only those in view have elements, however many there are.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { State } from "./state.ts";
import { hover, openSample } from "./actions.ts";
import { useMap } from "./context.ts";
import { isWrong, numberText, titleOf } from "./texts.ts";

const GAP = 4,
  SPARE = 2; // rows of images above and below the visible ones
const MISSING = "Images are missing because the run or its data set was removed. Reload the page.";

export function Wall() {
  const map = useMap(),
    { s } = map,
    view = useRef<HTMLDivElement>(null),
    box = useSignal({ width: 0, height: 0, top: 0 }),
    missing = useSignal(false),
    focus = useRef(false),
    rows = s.rows.value,
    { width, height, top } = box.value,
    columns = Math.max(1, Math.floor((width + GAP) / (s.look.size.value + GAP))),
    size = width ? (width + GAP) / columns : s.look.size.value + GAP, // the rows fill the width
    active = Math.max(0, rows.indexOf(s.active.value)),
    first = width ? Math.max(0, (Math.floor(top / size) - SPARE) * columns) : 0,
    past = width ? Math.min(rows.length, (Math.ceil((top + height) / size) + SPARE) * columns) : 0,
    places = Array.from({ length: Math.max(0, past - first) }, (_, k) => first + k),
    judged = places.some((place) => isWrong(s, rows[place]) !== undefined);
  const measure = () => {
    const { clientWidth = 0, clientHeight = 0, scrollTop = 0 } = view.current ?? {};
    box.value = { width: clientWidth, height: clientHeight, top: scrollTop };
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    if (view.current) observer.observe(view.current);
    return () => observer.disconnect();
  }, []);
  // another map starts at its top
  useLayoutEffect(() => {
    missing.value = false;
    view.current?.scrollTo(0, 0);
  }, [s.cloud.value]);
  // Make an image the one that Tab reaches, and bring it into view.
  const bring = (place: number) => {
    const at = Math.floor(place / columns) * size,
      node = view.current;
    if (!node) return;
    s.active.value = rows[place];
    if (at < node.scrollTop) node.scrollTop = at;
    else if (at + size > node.scrollTop + node.clientHeight)
      node.scrollTop = at + size - node.clientHeight;
    focus.current = true;
    box.value = { ...box.value, top: node.scrollTop };
  };
  map.bringImage = () => bring(active);
  useLayoutEffect(() => {
    if (!focus.current) return;
    focus.current = false;
    view.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  });
  const press = (e: KeyboardEvent) => {
    const step = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns,
      Home: -Infinity,
      End: Infinity,
    }[e.key];
    if (step === undefined || e.ctrlKey || e.metaKey || e.altKey || !rows.length) return;
    e.preventDefault();
    bring(Math.min(rows.length - 1, Math.max(0, active + step)));
  };
  const point = (target: EventTarget | null) => {
    const tile = target instanceof Element ? target.closest<HTMLElement>(".tile") : null;
    hover(map, tile ? Number(tile.dataset.row) : -1, false);
  };
  return (
    <div class="wall">
      <div class="line">
        <output class="said" aria-live="polite" aria-label="images">
          {headingOf(s)}
        </output>
        <span class="frames" hidden={!judged}>
          <i class="right" />
          nearest neighbour right
          <i class="wrong" />
          wrong
        </span>
      </div>
      <p class="none" hidden={!s.cloud.value || (rows.length > 0 && !missing.value)}>
        {missing.value ? MISSING : rows.length ? "" : "No sample passes these filters."}
      </p>
      <div
        class="view"
        role="group"
        aria-label="images"
        ref={view}
        data-shown={places.length}
        data-count={rows.length}
        onScroll={() => requestAnimationFrame(measure)}
        onKeyDown={press}
        onPointerOver={(e) => point(e.target)}
        onPointerLeave={() => point(null)}
      >
        <div
          class="inner"
          style={`height: ${Math.ceil(rows.length / columns) * size}px; --size: ${size - GAP}px`}
          onErrorCapture={() => (missing.value = true)}
        >
          {places.map((place) => (
            <Tile
              key={rows[place]}
              row={rows[place]}
              at={`translate(${(place % columns) * size}px, ${Math.floor(place / columns) * size}px)`}
              active={place === active}
              open={() => {
                s.active.value = rows[place];
                openSample(map, rows[place]);
              }}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

// Return how many images are shown, of how many, and why not all.
function headingOf(s: State) {
  const all = s.cloud.value?.count;
  if (!all) return "";
  const why = s.preview.value ? " in the lasso" : s.mask.value ? " selected" : "";
  return `${numberText(s.rows.value.length)} of ${numberText(all)} images${why}`;
}

function Tile({
  row,
  at,
  active,
  open,
}: {
  row: number;
  at: string;
  active: boolean;
  open(): void;
}) {
  const { s } = useMap(),
    index = s.cloud.value?.indices[row],
    title = titleOf(s, row),
    wrong = isWrong(s, row),
    verdict = wrong === undefined ? "" : wrong ? " wrong" : " right",
    name = useSignal(verdict);
  name.value = verdict;
  const look = useComputed(() => `tile${name.value}${s.hovered.value === row ? " lit" : ""}`);
  return (
    <button
      class={look}
      data-row={row}
      data-index={index}
      aria-label={title}
      title={title}
      tabIndex={active ? 0 : -1}
      style={{ transform: at }}
      onClick={open}
    >
      <img src={s.data.value.images + index} alt="" />
    </button>
  );
}
