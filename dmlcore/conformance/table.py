"""The table of docs/conformance.md: one section a library, written from the rows of a run."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from itertools import groupby
from pathlib import Path

from dmlcore.conformance.case import EXACT, Library, Outcome, Row
from dmlcore.storage.atomic_files import replace

HEAD = """# Libraries beside the formulas

What libraries of metric learning compute, beside the formulas of the papers and beside dmlcore. Nobody wrote a verdict:
each formula is written out sample by sample as its source prints it (`dmlcore/conformance/printed/`), computed in
float64 and differentiated by autograd; value and gradients of library and dmlcore are held against it.

- **off by**: the largest deviation of the value or of any entry of a gradient (or of a mask of chosen tuples), relative
  to the largest number printed, or to 1.
- **not as printed** need not be wrong for you. Where a library follows another reading that we know, the verdict names
  it, and that is a comparison of numbers too.
- **batches**: *balanced*, four classes of three; *uneven*, six classes, of which one has a single sample and one none;
  none of them is normalised.

To run it: `python -m dmlcore conformance LIBRARY`; with `--write` it writes the library's section of this page.
"""
DIFFERING = ("case", "source", "batch", "printed", "library", "off by", "dmlcore off by", "verdict")
AGREEING = ("case", "source", "batches", "off by", "dmlcore off by")
SUMMARY = {
    "agrees": "as printed",
    "agrees, to float32": "as printed, to float32",
    "dmlcore is right": "where dmlcore is right and the library is not",
    "the library is right, dmlcore is not": "where the library is right and dmlcore is not",
    "neither is as printed": "where neither is as printed",
    "not as printed": "not as printed, where dmlcore has none",
}


def section(library: Library, rows: Sequence[Row]) -> str:
    """The section of a library: versions, how many verdicts of which kind, what differs, what agrees."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "numpy"))
    lines = [f"## {library.name} {library.version}", "", summary(rows), ""]
    lines += [f"With {versions}, Python {platform.python_version()}.", "", "### What differs", ""]
    lines += [*_rule(DIFFERING), *(_line(differing(row)) for row in rows if not row.as_printed), ""]
    lines += ["### What is as printed", "", *_rule(AGREEING), *map(_line, agreeing(rows)), ""]
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """How many rows are as printed, and what became of the others."""
    kinds = Counter(_kind(row) for row in rows)
    return f"{len(rows)} comparisons: " + "; ".join(f"{count} {kind}" for kind, count in kinds.most_common()) + "."


def _kind(row: Row) -> str:
    verdict = row.verdict.replace("**", "").split(";")[0]
    if verdict.startswith("not run"):
        return "not run"
    return SUMMARY.get(verdict, "where the library raises an error")


def differing(row: Row) -> tuple[str, ...]:
    """A row of what differs, as `DIFFERING`."""
    numbers = number(row.printed), number(row.theirs), deviation(row.theirs_off), deviation(row.ours_off)
    return row.case.title, row.case.source, row.vector, *numbers, row.verdict


def agreeing(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """What is as printed, as `AGREEING`: a row a case, with the largest deviations of its batches."""
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
    """A value in six digits; a dash where there is none."""
    return "–" if isinstance(outcome, str) else f"{outcome.value + 0.0:.6g}"


def deviation(off: float | None) -> str:
    """A deviation in one digit, rounding as such, a dash where there is none."""
    if off is None or not off < float("inf"):
        return "–"
    return "< 1e-9" if off <= EXACT else f"{off:.0e}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _rule(columns: Sequence[str]) -> list[str]:
    texts = {"case", "source", "batch", "batches", "verdict"}
    return [_line(columns), _line(["---" if column in texts else "--:" for column in columns])]


def marks(name: str) -> tuple[str, str]:
    """The lines around the section of a library."""
    return f"<!-- {name}: python -m dmlcore conformance {name} --write -->\n", f"\n<!-- /{name} -->\n"


def write(path: Path, library: Library, rows: Sequence[Row]) -> None:
    """Put the section of a library into the page, in place of the one that is there; the other sections stay."""
    text = path.read_text() if path.exists() else ""
    parts = [HEAD]
    for name in sorted({library.name, *_sections(text)}):
        begin, end = marks(name)
        body = section(library, rows) if name == library.name else text.split(begin, 1)[1].split(end, 1)[0]
        parts.append(begin + body + end)
    replace(path, lambda file: file.write("\n".join(parts).encode()))


def _sections(text: str) -> list[str]:
    """The names of the libraries whose sections a page has, whole."""
    names = [
        line.removeprefix("<!-- /").removesuffix(" -->") for line in text.splitlines() if line.startswith("<!-- /")
    ]
    return [name for name in names if all(mark in text for mark in marks(name))]


def as_text(rows: Sequence[Row]) -> str:
    """The rows for a terminal: what differs with its numbers, and what is as printed by name."""
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
