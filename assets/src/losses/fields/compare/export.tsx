// Exports: a figure, the arrays, a script, the link.
import type { Compare } from "./compare.tsx";
import type { FigureFormat } from "../../../kit/figure/file.ts";
import { useSignal, useSignalEffect } from "@preact/signals";
import { save } from "../../../kit/dom.ts";
import { fileOf } from "../../../kit/figure/file.ts";
import { sheetOf } from "../../../kit/figure/sheet.ts";
import { FigureButtons, ShareCard, hyperText } from "../../../kit/panel/panel.tsx";
import { verdictOf } from "./judgement.tsx";

export function Exports({ app }: { app: Compare }) {
  const said = useSignal(""),
    { settled, session } = app,
    { query = "", snippet = "" } = settled.value ?? {},
    base = `${session.data.base}api/compare`;
  useSignalEffect(() => {
    said.value = settled.value ? "" : said.peek();
  });
  const copy = (text: string, name: string) =>
    navigator.clipboard.writeText(text).then(
      () => (said.value = `${name} copied`),
      () => (said.value = "Copying is blocked. Use the address bar or the text below"),
    );
  return (
    <div>
      <div class="pills">
        <ShareCard app={session} image={() => plain(app)} />
        <FigureButtons save={(format) => saveFigure(app, format)} />
        <a
          class="button"
          download="comparison.npz"
          title="All fields of this comparison as float64 arrays"
          href={`${base}.npz?${query}`}
        >
          arrays (npz)
        </a>
        <button onClick={() => copy(location.href, "link")}>copy link</button>
        <button onClick={() => copy(snippet, "script")}>copy Python</button>
        <span role="status">{said}</span>
      </div>
      <details style="margin-top:8px">
        <summary>Python code</summary>
        <pre tabIndex={0} aria-label="Python script">
          {snippet}
        </pre>
      </details>
    </div>
  );
}

// Return all planes in a row, the difference last.
const plain = ({ all, session }: Compare) =>
  fileOf(
    sheetOf(
      all.map(({ figure }) => [figure, ""] as const),
      640,
      session.theme.value,
    ),
    "png",
  );

// Save all planes in a row with their titles, the difference last.
async function saveFigure(app: Compare, format: FigureFormat) {
  const answer = app.answer.value,
    { state, session, planes, difference } = app,
    [i, j] = state.pair.map((k) => k + 1);
  if (!answer) return;
  const losses = state.panels.map(
    ({ loss, hyper }, k) =>
      [
        planes[k].figure,
        `${k + 1}  ${session.schema.losses[loss].title}`,
        hyperText(hyper),
      ] as const,
  );
  const largest = `largest ${answer.largest?.toPrecision(3) ?? "∞"}, colours ±${answer.span.toPrecision(3)}`,
    range = `0 to ${Number(answer.scale.toPrecision(3))}${answer.signed ? " either side of zero" : ""}`;
  const sheet = sheetOf(
    [...losses, [difference.figure, `${i} − ${j}`, largest]],
    Math.max(...app.all.map(({ figure }) => figure.canvas.width)),
    session.theme.value,
    { text: `All planes: ${range}. ${verdictOf(app)}` },
  );
  save(`comparison.${format}`, await fileOf(sheet, format));
}
