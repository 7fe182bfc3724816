// Legend of the colours: classes with a search box, right and wrong, or a scale; and the filters.
import { useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Class, Facts } from "./types.ts";
import { paintScale } from "../../kit/component.ts";
import { toggleClass } from "./actions.ts";
import { NONE, scaleColour, scaleOf, shapeOf } from "./colours.ts";
import { NOWHERE, isMetadata } from "./facets.ts";
import { useMap } from "./context.ts";
import { Filters } from "./filters.tsx";
import { Mark } from "./mark.tsx";
import { coloured, matches } from "./state.ts";
import { numberText } from "./texts.ts";

const LISTED = 10, // classes listed until all are requested
  MOST_LISTED = 200,
  SEARCHED = 12; // classes from which on there is a search box

export function Legend() {
  const { s } = useMap();
  return (
    <details class="legend" open={!s.narrow.value}>
      <summary>Filters</summary>
      {s.cloud.value && (
        <>
          <Scale />
          <Classes />
          <Filters />
        </>
      )}
    </details>
  );
}

function Classes() {
  const map = useMap(),
    { s } = map,
    search = useSignal(""),
    expanded = useSignal(false),
    text = search.value.trim().toLowerCase(),
    classes = s.cloud.value?.classes ?? [],
    counts = map.tallied.value.classes,
    chosen = s.look.classes.value,
    { labelled } = s.data.value;
  // classes with highlighted samples first
  const found = [true, false].flatMap((some) =>
    classes.filter(
      (c, k) => (counts?.[k] ?? 1) > 0 === some && c.name.toLowerCase().includes(text),
    ),
  );
  const most = expanded.value || text ? MOST_LISTED : LISTED,
    first = found.slice(0, most),
    others = text ? [] : chosen.filter((label) => !first.some((c) => c.label === label)),
    shown = [...classes.filter((c) => others.includes(c.label)), ...first],
    left = found.length - first.length;
  return (
    <>
      <h4 hidden={!labelled}>class</h4>
      <input
        type="search"
        placeholder="Search classes"
        aria-label="search classes by name"
        autocomplete="off"
        hidden={classes.length < SEARCHED}
        onInput={(e) => (search.value = e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && found.length) toggleClass(map, found[0].label);
        }}
      />
      <button class="all" hidden={!chosen.length} onClick={() => toggleClass(map, null)}>
        Show all classes
      </button>
      <div class="classes" role="group" aria-label="classes" hidden={!labelled}>
        {shown.map((c) => (
          <Chip key={c.label} of={c} number={classes.indexOf(c)} />
        ))}
      </div>
      <small>
        {text && !found.length
          ? "No class name contains this text."
          : left && most === MOST_LISTED
            ? `and ${numberText(left)} more; search to find them`
            : ""}
      </small>
      <button
        class="more"
        hidden={Boolean(text) || classes.length <= LISTED}
        aria-expanded={expanded.value}
        onClick={() => (expanded.value = !expanded.value)}
      >
        {expanded.value ? "Show fewer classes" : `Show all ${numberText(classes.length)}`}
      </button>
    </>
  );
}

function Chip({ of, number }: { of: Class; number: number }) {
  const map = useMap(),
    { s } = map,
    count = map.tallied.value.classes?.[number] ?? of.count;
  return (
    <button
      aria-pressed={s.look.classes.value.includes(of.label)}
      class={matches(s, of.label) && count ? "" : "faint"}
      title={`${of.name}: ${of.count} samples`}
      onClick={() => toggleClass(map, of.label)}
    >
      {s.look.colour.value === "class" && (
        <Mark kind={shapeOf("class", number)} colour={of.colour} />
      )}
      <bdi>{of.name}</bdi>
      <small>{numberText(count)}</small>
    </button>
  );
}

const countMissing = ({ values }: Facts) =>
  values.reduce((sum, value) => sum + Number(value === NOWHERE), 0);

// Scale of the column that colours the points, if it is one.
function Scale() {
  const { s } = useMap(),
    colour = s.look.colour.value,
    facts = coloured(s);
  if (colour === "class" || facts?.names) return <div class="key" hidden />;
  if (!facts) {
    const loading = isMetadata(colour) ? "Loading …" : "Finding the nearest neighbours …";
    return (
      <div class="key">
        <small>{s.failed.value[colour] ?? loading}</small>
      </div>
    );
  }
  const { title, low, high } = scaleOf(facts, s.data.value.menus.colour[colour]),
    neither = facts.range ? countMissing(facts) : facts.neither;
  return (
    <div class="key">
      <small>{title}</small>
      <Ramp label={`${low} to ${high}`} />
      <div class="ends">
        <small>{low}</small>
        <small>{high}</small>
      </div>
      {Boolean(neither) && (
        <div class="line">
          <Mark kind="circle" colour={NONE} />
          <span>not defined</span>
          <small>{numberText(neither ?? 0)}</small>
        </div>
      )}
    </div>
  );
}

function Ramp({ label }: { label: string }) {
  const { s } = useMap(),
    canvas = useRef<HTMLCanvasElement>(null),
    theme = s.theme.value;
  useLayoutEffect(() => {
    if (canvas.current) paintScale(canvas.current, (t) => scaleColour(t, theme));
  }, [theme]);
  return <canvas ref={canvas} width={160} height={1} role="img" aria-label={label} />;
}
