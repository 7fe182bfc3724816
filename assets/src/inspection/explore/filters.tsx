// Filters by the values of columns; each value has the number of images that it would leave.
import type { ComponentChildren } from "preact";
import { useComputed, useSignal } from "@preact/signals";
import type { Colouring, Facts, Filtered, Metadata } from "./types.ts";
import { chooseInterval, toggleCategory, toggleTag, toggleValue } from "./actions.ts";
import { HIGHEST, colourTable, cssColour, scaleOf, shapeOf, valueText } from "./colours.ts";
import { useMap } from "./context.ts";
import { FILTERS, NOWHERE, chosenMetadata, isMetadata } from "./facets.ts";
import { reveal } from "./files.ts";
import { Mark } from "./mark.tsx";
import { numberText } from "./texts.ts";

const HEADINGS: Record<Filtered | "tags", string> = {
  right: "nearest neighbour",
  rank: "rank of the first hit",
  hubness: "hubness",
  doubted: "doubted label",
  split: "split",
  tags: "tags",
};

export function Filters() {
  const titles = useMap().s.data.value.menus.colour,
    columns = Object.keys(titles).filter(isMetadata);
  return (
    <div class="filters">
      {columns.length > 0 && (
        <div class="metadata">
          <h4>metadata</h4>
          {columns.map((name) => (
            <Column key={name} name={name} title={titles[name]} />
          ))}
        </div>
      )}
      {FILTERS.filter((name) => name in titles).map((name) => (
        <Group key={name} name={name} />
      ))}
      <Tagged />
    </div>
  );
}

// Button that toggles a value, with its mark if the points are coloured by its column.
function Value({
  column,
  code,
  name,
  chosen,
  count,
  act,
}: {
  column: Exclude<Colouring, "class">;
  code: number;
  name: string;
  chosen: boolean | null; // null: no value of the column is
  count: number;
  act(): void;
}) {
  const { s } = useMap(),
    facts = s.known.value[column],
    table = s.look.colour.value === column && colourTable(column, [], s.theme.value, facts);
  return (
    <button
      aria-pressed={Boolean(chosen)}
      class={chosen === false ? "faint" : ""}
      title={name}
      onClick={act}
    >
      {table && <Mark kind={shapeOf(column, code)} colour={cssColour(table, code)} />}
      <bdi>{name}</bdi>
      <small>{numberText(count)}</small>
    </button>
  );
}

const Titled = ({ name, children }: { name: Filtered | "tags"; children: ComponentChildren }) => (
  <div role="group" aria-label={HEADINGS[name]} data-filter={name}>
    <h4>{HEADINGS[name]}</h4>
    {children}
  </div>
);

// Values of a filter column that some point has; none if all points have the same.
function Group({ name }: { name: Filtered }) {
  const map = useMap(),
    { s } = map,
    facts = s.columns.value[name],
    chosen = s.look[name].value,
    codes = [...(facts?.names ?? []).keys()].filter((k) => facts?.values.includes(k));
  if (!codes.length) return null;
  if (codes.length < 2 && s.look.colour.value !== name && !chosen.length) return null;
  return (
    <Titled name={name}>
      {codes.map((k) => (
        <Value
          key={k}
          column={name}
          code={k}
          name={facts?.names?.[k] ?? ""}
          chosen={chosen.length ? chosen.includes(k) : null}
          count={map.tallied.value[name]?.[k] ?? 0}
          act={() => toggleValue(map, name, k)}
        />
      ))}
    </Titled>
  );
}

function Tagged() {
  const map = useMap(),
    { s } = map,
    { names } = s.tags.value,
    chosen = s.look.tags.value;
  if (!names.length)
    return s.look.colour.value === "tags" ? (
      <small>No tags yet. Add some under “Tags and views”.</small>
    ) : null;
  return (
    <Titled name="tags">
      {names.map((name, k) => (
        <Value
          key={name}
          column="tags"
          code={k}
          name={name}
          chosen={chosen.length ? chosen.includes(name) : null}
          count={map.tallied.value.tags?.[k] ?? 0}
          act={() => toggleTag(map, name)}
        />
      ))}
    </Titled>
  );
}

// A metadata column; its values are loaded when it is opened.
function Column({ name, title }: { name: Metadata; title: string }) {
  const map = useMap(),
    { s } = map,
    open = s.revealed.value.has(name),
    chosen = chosenMetadata({ meta: s.look.meta.value }).get(name);
  const toggle = (now: boolean) => {
    if (now === s.revealed.peek().has(name)) return;
    if (now) reveal(map, name);
    else s.revealed.value = new Set([...s.revealed.peek()].filter((one) => one !== name));
  };
  return (
    <details
      class="column"
      data-filter={name}
      open={open}
      onToggle={(e) => toggle(e.currentTarget.open)}
    >
      <summary title={title}>
        <bdi>{title}</bdi>
        {chosen && " •"}
      </summary>
      {open && <Values name={name} title={title} chosen={chosen} />}
    </details>
  );
}

interface ColumnProps {
  name: Metadata;
  title: string;
  chosen?: number[]; // highlighted values
}

function Values({ name, title, chosen }: ColumnProps) {
  const map = useMap(),
    { s } = map,
    facts = s.columns.value[name];
  if (!facts) return <small>{s.failed.value[name] ?? "Loading …"}</small>;
  if (facts.range) return <Interval {...{ name, title, chosen, facts }} />;
  const names = facts.names ?? [],
    codes = [...names.keys(), ...(facts.values.includes(NOWHERE) ? [NOWHERE] : [])];
  return (
    <>
      {codes.map((code) => (
        <Value
          key={code}
          column={name}
          code={code}
          name={names[code] ?? "no value"}
          chosen={chosen ? chosen.includes(code) : null}
          count={map.tallied.value[name]?.[code] ?? 0}
          act={() => toggleCategory(map, name, code)}
        />
      ))}
    </>
  );
}

// Two sliders that limit the values of a scale.
function Interval({ name, title, chosen, facts }: ColumnProps & { facts: Facts }) {
  const map = useMap(),
    given = chosen ? [chosen[0], chosen[chosen.length - 1]] : [0, HIGHEST],
    ends = useSignal(given),
    whole = scaleOf(facts, title),
    sorted = useComputed(() => [...ends.value].sort((a, b) => a - b));
  ends.value = given;
  const texts = useComputed(() => [
    sorted.value[0] ? valueText(facts, sorted.value[0]) : whole.low,
    sorted.value[1] < HIGHEST ? valueText(facts, sorted.value[1]) : whole.high,
  ]);
  const spoken = [useComputed(() => texts.value[0]), useComputed(() => texts.value[1])];
  const rest = () => {
    const [low, high] = sorted.peek();
    chooseInterval(map, name, low || high < HIGHEST ? [low, high] : null);
  };
  return (
    <div class="interval">
      {["lowest", "highest"].map((end, k) => (
        <input
          type="range"
          min={0}
          max={HIGHEST}
          value={String(given[k])}
          aria-label={`${title}: ${end} value`}
          aria-valuetext={spoken[k]}
          onInput={(e) => {
            const value = Number(e.currentTarget.value);
            ends.value = ends.peek().map((one, i) => (i === k ? value : one));
          }}
          onChange={rest}
        />
      ))}
      <small>{useComputed(() => texts.value.join(" to "))}</small>
    </div>
  );
}
