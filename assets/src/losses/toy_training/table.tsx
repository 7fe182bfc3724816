// Scores over all samples of the split, next to the rows of Table 4.1.
import type { Published, Table } from "./types.ts";
import { LETTERS } from "./names.ts";

type Scores = Record<string, number | null>;

export interface ScoreTableProps {
  table: Table;
  names: string[]; // descriptions of A and B
  title(row: Published): string;
  onUse(side: number, row: Published): void; // applies a published setting
}

export function ScoreTable({ table, names, title, onUse }: ScoreTableProps) {
  const { columns, ours, published, step, samples } = table,
    hasPublished = published.length > 0;
  const cells = (scores: Scores | null | undefined) =>
    columns.map((name) => <td key={name}>{scores?.[name]?.toFixed(1)}</td>);
  const heads = columns.map((name) => (
    <th key={name} scope="col">
      {name}
    </th>
  ));
  const matches = ours.map(({ label }, i) =>
      published.find((p) => (i < 2 ? p.label === label : p.ours.includes(i - 2))),
    ),
    others = published.filter((p) => !matches.includes(p));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="scores">
      <table>
        <thead>
          <tr>
            <td />
            <th colSpan={columns.length} scope="colgroup">{`ours, step ${step}`}</th>
            {hasPublished && (
              <>
                <th colSpan={columns.length} scope="colgroup">
                  Karaman 2021, Table 4.1
                </th>
                <td />
              </>
            )}
          </tr>
          <tr>
            <th scope="col">{`${samples.toLocaleString("en")} queries, %`}</th>
            {heads}
            {hasPublished && (
              <>
                {heads}
                <td />
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {ours.map(({ label, scores }, i) => (
            <tr key={label} class="ours">
              <th scope="row">
                {i < 2 ? (
                  label
                ) : (
                  <>
                    <b>{label}: </b>
                    {names[i - 2]}
                  </>
                )}
              </th>
              {cells(scores)}
              {hasPublished && cells(matches[i]?.scores)}
              {hasPublished && <td />}
            </tr>
          ))}
          {others.map((row, i) => (
            <tr key={i}>
              <th scope="row">{title(row)}</th>
              {cells(null)}
              {cells(row.scores)}
              <td>
                {row.loss &&
                  names.map((_, side) => (
                    <button
                      key={side}
                      title={`Train ${LETTERS[side]} with this loss from step 0`}
                      aria-label={`Use ${title(row)} for ${LETTERS[side]}`}
                      onClick={() => onUse(side, row)}
                    >
                      {`use as ${LETTERS[side]}`}
                    </button>
                  ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
