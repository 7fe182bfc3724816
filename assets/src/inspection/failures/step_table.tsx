// Effect of one step of each loss on the ranks of the query: a sortable table with the best value
// of each column marked, below a sentence that names the best loss. Python judges.
import type { FailureNumbers, Sorting, SortKey, Step } from "./types.ts";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { show } from "../../kit/dom.ts";

// fresh: losses of the last answer
export type Shown = FailureNumbers & { fresh: Set<string> };

export const count = (x: number) => x.toLocaleString("en");
export const percent = (x: number) => (100 * x).toFixed(1);
const COLUMNS: [key: SortKey, text: string, help: string, first: Sorting["way"]][] = [
  ["loss", "loss", "name", 1],
  ["force", "force", "length of the largest force", -1],
  ["right", "rank of P", "rank of the right neighbour: lower is better", 1],
  ["wrong", "rank of N", "rank of the wrong neighbour: higher is better", -1],
  ["ap", "AP@R, %", "average precision of this query: higher is better", -1],
];
const BEST = " ★";

// Return loss names sorted by a column: numerically, infinite forces as largest, missing ones as
// smallest; ties keep their order.
export function sortLosses(
  losses: [name: string, title: string][],
  steps: Record<string, Step>,
  by: Sorting | null,
) {
  if (!by) return losses.map(([name]) => name);
  const value = (name: string) => {
    const step = steps[name];
    if (!step) return by.way * Infinity; // unknown yet: last in both directions
    if (by.key === "force") return step.active ? (step.force ?? Infinity) : 0;
    return step[by.key as "right" | "wrong" | "ap"];
  };
  return losses
    .toSorted(([a, one], [b, other]) => {
      if (by.key === "loss") return by.way * one.localeCompare(other);
      const [x, y] = [value(a), value(b)];
      return x === y ? 0 : by.way * (x < y ? -1 : 1);
    })
    .map(([name]) => name);
}

export interface StepTableProps {
  losses: [name: string, title: string][];
  shown: Shown | undefined;
  drawn: string; // loss of the plane
  busy: boolean; // during a gesture: rows keep their positions
  onDraw(loss: string): void;
}

export function StepTable({ losses, shown, drawn, busy, onDraw }: StepTableProps) {
  const [by, setBy] = useState<Sorting | null>(null),
    kept = useRef({ by, order: sortLosses(losses, {}, by) });
  if (!busy || kept.current.by !== by)
    kept.current = { by, order: sortLosses(losses, shown?.steps ?? {}, by) };
  const { order } = kept.current,
    table = useKeptFocus(order.join()),
    titles = Object.fromEntries(losses);
  return (
    <table class="numbers steps" ref={table}>
      <thead>
        <tr>
          {COLUMNS.map(([key, text, help]) => (
            <th
              key={key}
              scope="col"
              data-sort={key}
              aria-sort={by?.key === key ? (by.way > 0 ? "ascending" : "descending") : undefined}
            >
              <button title={`Sort by ${help}`} onClick={() => setBy(nextSorting(by, key))}>
                {text}
              </button>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {order.map((name) => (
          <tr key={name} data-loss={name} class={rowClass(shown, name, drawn)}>
            <th scope="row">
              <button title={`Draw ${titles[name]}`} onClick={() => onDraw(name)}>
                {titles[name]}
              </button>
            </th>
            <Cells shown={shown} name={name} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// Return the sorting after a press on a header: best first, then reversed, then the original order.
function nextSorting(by: Sorting | null, key: SortKey): Sorting | null {
  const first = COLUMNS.find(([other]) => other === key)?.[3] ?? 1;
  if (by?.key !== key) return { key, way: first };
  return by.way === first ? { key, way: -first as 1 | -1 } : null;
}

// Return a ref for a table whose rows move whenever `order` changes; a moved row keeps the focus.
function useKeptFocus(order: string) {
  const table = useRef<HTMLTableElement>(null),
    root = table.current?.getRootNode() as Document | ShadowRoot | undefined,
    focused = root?.activeElement as HTMLElement | null | undefined;
  useLayoutEffect(() => {
    if (focused && table.current?.contains(focused)) focused.focus({ preventScroll: true });
  }, [order]);
  return table;
}

function rowClass(shown: Shown | undefined, name: string, drawn: string) {
  const step = shown?.steps[name],
    classes = [
      step && name === drawn && "drawn",
      step && !shown.fresh.has(name) && "stale",
      step && !step.active && "idle",
    ];
  return classes.filter(Boolean).join(" ");
}

function Cells({ shown, name }: { shown: Shown | undefined; name: string }) {
  const step = shown?.steps[name];
  return (
    <>
      <td data-cell="force">
        {step && (step.active ? show(step.force) : step.satisfied ? "satisfied" : "clamped")}
      </td>
      <RankCell shown={shown} name={name} column="right" better={-1} text={count} />
      <RankCell shown={shown} name={name} column="wrong" better={1} text={count} />
      <RankCell shown={shown} name={name} column="ap" better={1} text={percent} />
    </>
  );
}

interface RankCellProps {
  shown: Shown | undefined;
  name: string;
  column: "right" | "wrong" | "ap";
  better: 1 | -1;
  text(value: number): string;
}

function RankCell({ shown, name, column, better, text }: RankCellProps) {
  const step = shown?.steps[name];
  if (!step) return <td data-cell={column} />;
  const change = step[column] - shown.now[column],
    good = better * change > 0,
    leads = shown.best?.leaders[column].includes(name) ?? false,
    kind = change ? (good ? "good" : "bad") : "",
    mark = change ? ` ${good ? "✓" : "✗"}${leads ? BEST : ""}` : "";
  return (
    <td
      data-cell={column}
      class={[kind, leads ? "best" : ""].join(" ").trim()}
      title={leads ? "Best in its column" : ""}
    >
      {text(step[column]) + mark}
    </td>
  );
}
