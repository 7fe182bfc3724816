// Effect of one step of each loss on the ranks of the query: a sortable table with the best value
// of each column marked. Python judges.
import { useMemo } from "preact/hooks";
import type { Best, FailureNumbers, Sorting, SortKey, Standing, Step } from "./types.ts";
import { show } from "../../kit/dom.ts";

// fresh: losses of the last answer
export type Shown = FailureNumbers & { fresh: Set<string> };
export type Names = [name: string, title: string][];

export const count = (x: number) => x.toLocaleString("en");
export const percent = (x: number) => (100 * x).toFixed(1);
const COLUMNS: [key: SortKey, text: string, help: string, first: Sorting["way"]][] = [
  ["loss", "loss", "name", 1],
  ["force", "force", "length of the largest force", -1],
  ["right", "rank of P", "rank of the right neighbour: lower is better", 1],
  ["wrong", "rank of N", "rank of the wrong neighbour: higher is better", -1],
  ["ap", "AP@R, %", "average precision of this query: higher is better", -1],
];
const RANKS = [
  ["right", -1, count],
  ["wrong", 1, count],
  ["ap", 1, percent],
] as const; // key, sign of an improvement, text
const BEST = " ★";

// Return loss names sorted by a column: numerically, infinite forces as largest, missing ones as
// smallest; ties keep their order.
export function sortLosses(losses: Names, steps: Record<string, Step>, by: Sorting | null) {
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

// Return the sorting after a click on a column: best first, then reversed, then none.
export function nextSorting(by: Sorting | null, key: SortKey): Sorting | null {
  const first = COLUMNS.find(([other]) => other === key)?.[3] ?? 1;
  if (by?.key !== key) return { key, way: first };
  return by.way === first ? { key, way: -first as 1 | -1 } : null;
}

interface TableProps {
  losses: Names;
  order: string[]; // names of the rows
  by: Sorting | null;
  shown?: Shown;
  drawn: string; // loss of the plane
  onSort(key: SortKey): void;
  onDraw(loss: string): void;
}

export function StepTable({ losses, order, by, shown, drawn, onSort, onDraw }: TableProps) {
  const titles = Object.fromEntries(losses);
  const sorted = (key: SortKey) =>
    key !== by?.key ? undefined : by.way > 0 ? "ascending" : "descending";
  return (
    <table class="numbers steps">
      <thead>
        <tr>
          {COLUMNS.map(([key, text, help]) => (
            <th key={key} scope="col" data-sort={key} aria-sort={sorted(key)}>
              <button title={`Sort by ${help}`} onClick={() => onSort(key)}>
                {text}
              </button>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {order.map((name) => (
          <LossRow
            key={name}
            name={name}
            title={titles[name]}
            step={shown?.steps[name]}
            now={shown?.now}
            best={shown?.best}
            isFresh={shown?.fresh.has(name) ?? true}
            isDrawn={name === drawn}
            onDraw={onDraw}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps extends Pick<TableProps, "onDraw"> {
  name: string;
  title: string;
  step?: Step;
  now?: Standing;
  best?: Best | null;
  isFresh: boolean;
  isDrawn: boolean;
}

// Row of a loss. During a drag most rows stay as they are, and are not rendered.
const LossRow = ({ name, title, step, now, best, isFresh, isDrawn, onDraw }: RowProps) =>
  useMemo(() => {
    const idle = step && !step.active,
      kind = step && [isDrawn && "drawn", !isFresh && "stale", idle && "idle"];
    return (
      <tr data-loss={name} class={(kind ?? []).filter(Boolean).join(" ")}>
        <th scope="row">
          <button title={`Draw ${title}`} onClick={() => onDraw(name)}>
            {title}
          </button>
        </th>
        <td data-cell="force">
          {step && (step.active ? show(step.force) : step.satisfied ? "satisfied" : "clamped")}
        </td>
        {RANKS.map(([key, better, text]) => {
          if (!step || !now) return <td key={key} data-cell={key} />;
          const gain = better * (step[key] - now[key]),
            leads = best?.leaders[key].includes(name) ?? false,
            look = [gain > 0 ? "good" : gain < 0 ? "bad" : "", leads ? "best" : ""];
          return (
            <td
              key={key}
              data-cell={key}
              class={look.filter(Boolean).join(" ")}
              title={leads ? "Best in its column" : ""}
            >
              {text(step[key])}
              {gain ? ` ${gain > 0 ? "✓" : "✗"}${leads ? BEST : ""}` : ""}
            </td>
          );
        })}
      </tr>
    );
  }, [name, step, now?.right, now?.wrong, now?.ap, best, isFresh, isDrawn]);
