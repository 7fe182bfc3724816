// Row of controls above map and images.
import { useComputed } from "@preact/signals";
import type { Colouring, Look } from "./types.ts";
import { PresentButtons } from "../../kit/panel/export_menu.tsx";
import { clearFilters, set } from "./actions.ts";
import { useMap } from "./context.ts";
import { savePng } from "./export.ts";
import { filtered, isMetadata } from "./facets.ts";
import { Keeping } from "./keeping.tsx";
import { numberText } from "./texts.ts";

const TOOLS = [
  ["move", "Move", "Drag to move the map (M); Shift and drag draws a lasso"],
  ["lasso", "Lasso", "Draw around points to select them (L); hold Shift to add them"],
] as const;
const BOXES = [
  ["names", "names", "Show the name of each class next to its most central point"],
  ["images", "images", "Show points as images when at most 150 are in view"],
  [
    "contours",
    "density",
    "Draw lines around the smallest regions that contain 25 to 90 % of the points",
  ],
] as const;

export function Tools() {
  const map = useMap(),
    { s } = map,
    { menus, labelled, points } = s.data.value;
  return (
    <div class="bar">
      <span class="tools" role="group" aria-label="tool">
        {TOOLS.map(([name, text, help]) => (
          <button
            data-tool={name}
            aria-pressed={s.tool.value === name}
            title={help}
            onClick={() => (s.tool.value = name)}
          >
            {text}
          </button>
        ))}
      </span>
      <label class="box">
        colour by
        <Menu
          label="colour by"
          titles={menus.colour}
          value={s.look.colour.value}
          onChange={(value) => set(map, "colour", value as Colouring)}
        />
      </label>
      {BOXES.map(([name, text, help]) => (
        <label class="box" title={help} hidden={name === "names" && !labelled}>
          <input
            type="checkbox"
            checked={s.look[name].value}
            onChange={(e) => set(map, name, e.currentTarget.checked)}
          />
          {text}
        </label>
      ))}
      <label class="box">
        size
        <input
          type="range"
          min={28}
          max={200}
          step={4}
          aria-label="size of the images"
          value={useComputed(() => String(s.look.size.value))}
          onInput={(e) => set(map, "size", Number(e.currentTarget.value))}
        />
      </label>
      <label class="box">
        order
        <Menu
          label="order of the images"
          titles={menus.sort}
          value={s.look.sort.value}
          onChange={(value) => set(map, "sort", value as Look["sort"])}
        />
      </label>
      <Selected />
      <button class="all" hidden={!filtered(s.filters.value)} onClick={() => clearFilters(map)}>
        Clear filters
      </button>
      <span class="take">
        <Keeping />
        <PresentButtons app={map} />
        <button title="The map as shown, at twice the resolution" onClick={() => savePng(map)}>
          PNG
        </button>
        <a
          class="button"
          download=""
          title="Position and attributes of every point"
          href={`${points}map.csv`}
        >
          CSV
        </a>
      </span>
    </div>
  );
}

// Number of the selected points.
function Selected() {
  const { count } = useMap().s,
    text = useComputed(() => (count.value ? `${numberText(count.value)} selected` : ""));
  return (
    <output class="count" aria-label="selected" data-count={count}>
      {text}
    </output>
  );
}

// Menu whose metadata columns form a group.
function Menu({
  label,
  titles,
  value,
  onChange,
}: {
  label: string;
  titles: Record<string, string>;
  value: string;
  onChange(value: string): void;
}) {
  const option = ([name, title]: [string, string]) => (
      <option key={name} value={name}>
        {title}
      </option>
    ),
    entries = Object.entries(titles),
    columns = entries.filter(([name]) => isMetadata(name));
  return (
    <select
      aria-label={label}
      title={label}
      value={value}
      onChange={(e) => onChange(e.currentTarget.value)}
    >
      {entries.filter(([name]) => !isMetadata(name)).map(option)}
      {columns.length > 0 && <optgroup label="metadata">{columns.map(option)}</optgroup>}
    </select>
  );
}
