"""Tables of conformance results in docs/conformance.md, with one section per library."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from itertools import groupby
from pathlib import Path

from dmlcore.conformance.case import EXACT, Library, Outcome, Row
from dmlcore.storage.atomic_files import replace

HEAD = """# Libraries compared with the formulas

Values and gradients of metric learning libraries and of dmlcore, compared with the formulas of the papers. All verdicts
are computed: each formula is implemented sample by sample as its source prints it (`dmlcore/conformance/printed/`),
evaluated in float64 and differentiated by autograd; values and gradients of the library and of dmlcore are compared
with the result.

- **off by**: largest deviation of the value or of any entry of a gradient (or of a mask of selected tuples), relative
  to the largest number of the formula, or to 1.
- **not as printed** need not be wrong for you. If the library follows another known reading of the formula, the verdict
  names it; this is computed as well.
- **batches**: *balanced*: four classes of three samples; *uneven*: six classes, one with a single sample and one with
  none. Embeddings are not normalised.

To repeat a comparison, run `python -m dmlcore conformance LIBRARY`; `--write` updates the library's section.
"""
DIFFERING = ("case", "source", "batch", "printed", "library", "off by", "dmlcore off by", "verdict")
AGREEING = ("case", "source", "batches", "off by", "dmlcore off by")
SUMMARY = {
    "agrees": "as printed",
    "agrees, to float32": "as printed, to float32",
    "dmlcore is right": "where dmlcore is right and the library is not",
    "the library is right, dmlcore is not": "where the library is right and dmlcore is not",
    "neither is as printed": "where neither is as printed",
    "not as printed": "not as printed, where dmlcore has no counterpart",
}


def section(library: Library, rows: Sequence[Row]) -> str:
    """Return the Markdown section of a library, with versions, a summary, and tables of differences and agreements."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "numpy"))
    lines = [f"## {library.name} {library.version}", "", summary(rows), ""]
    lines += [f"With {versions}, Python {platform.python_version()}.", "", "### What differs", ""]
    lines += [*_rule(DIFFERING), *(_line(differing(row)) for row in rows if not row.as_printed), ""]
    lines += ["### What is as printed", "", *_rule(AGREEING), *map(_line, agreeing(rows)), ""]
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """Return a sentence with the number of comparisons, in total and by kind of verdict."""
    kinds = Counter(_kind(row) for row in rows)
    return f"{len(rows)} comparisons: " + "; ".join(f"{count} {kind}" for kind, count in kinds.most_common()) + "."


def _kind(row: Row) -> str:
    verdict = row.verdict.replace("**", "").split(";")[0]
    if verdict.startswith("not run"):
        return "not run"
    return SUMMARY.get(verdict, "where the library raises an error")


def differing(row: Row) -> tuple[str, ...]:
    """Return one table row of a result that differs from the printed formula, with the columns `DIFFERING`."""
    numbers = number(row.printed), number(row.theirs), deviation(row.theirs_off), deviation(row.ours_off)
    return row.case.title, row.case.source, row.vector, *numbers, row.verdict


def agreeing(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the table rows of the results that agree with the printed formula, with the columns `AGREEING`.

    There is one row per case. It holds the largest deviations over the batches of the case.
    """
    result: list[tuple[str, ...]] = []
    for _, group in groupby((row for row in rows if row.as_printed), key=lambda row: row.case.name):
        of_case = list(group)
        case = of_case[0].case
        ours = [row.ours_off for row in of_case if row.ours_off is not None]
        result.append(
            (
                case.title,
                case.source,
                "; ".join(row.vector for row in of_case),
                deviation(max(row.theirs_off for row in of_case)),
                deviation(max(ours, default=None)),
            )
        )
    return result


def number(outcome: Outcome | str) -> str:
    """Format the value of an outcome with six significant digits; return a dash if `outcome` is a reason instead."""
    return "–" if isinstance(outcome, str) else f"{outcome.value + 0.0:.6g}"


def deviation(off: float | None) -> str:
    """Format a deviation with one digit, as "< 1e-9" for mere rounding, or as a dash if it is missing or infinite."""
    if off is None or not off < float("inf"):
        return "–"
    return "< 1e-9" if off <= EXACT else f"{off:.0e}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _rule(columns: Sequence[str]) -> list[str]:
    texts = {"case", "source", "batch", "batches", "verdict"}
    return [_line(columns), _line(["---" if column in texts else "--:" for column in columns])]


def marks(name: str) -> tuple[str, str]:
    """Return the lines of the page that mark the start and the end of a library's section."""
    return f"<!-- {name}: python -m dmlcore conformance {name} --write -->\n", f"\n<!-- /{name} -->\n"


def write(path: Path, library: Library, rows: Sequence[Row]) -> None:
    """Rewrite the section of a library in the page at `path`, keeping the other sections."""
    text = path.read_text() if path.exists() else ""
    parts = [HEAD]
    for name in sorted({library.name, *_sections(text)}):
        begin, end = marks(name)
        body = section(library, rows) if name == library.name else text.split(begin, 1)[1].split(end, 1)[0]
        parts.append(begin + body + end)
    replace(path, lambda file: file.write("\n".join(parts).encode()))


def _sections(text: str) -> list[str]:
    """Return the names of the libraries that have a complete section in the page `text`."""
    names = [
        line.removeprefix("<!-- /").removesuffix(" -->") for line in text.splitlines() if line.startswith("<!-- /")
    ]
    return [name for name in names if all(mark in text for mark in marks(name))]


def as_text(rows: Sequence[Row]) -> str:
    """Format the rows for a terminal: differences with their numbers, agreements by name only."""
    lines = []
    for row in rows:
        if not row.as_printed:
            title, _, batch, printed, theirs, off, ours, verdict = differing(row)
            lines.append(
                f"{title}, {batch}: printed {printed}, library {theirs}, off by {off}, dmlcore off by {ours}\n"
                f"    {verdict.replace('**', '')}"
            )
    names = "; ".join(cells[0] for cells in agreeing(rows))
    return "\n".join([*lines, "", f"As printed: {names}.", "", summary(rows)])
