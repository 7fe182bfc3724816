"""Generator of docs/errata.md, the table of all errata: `python -m docs.make_errata`."""

from __future__ import annotations

from pathlib import Path

from dmlcore.published.errata import METHODS, Erratum, errata
from dmlcore.published.table_reader import sources

PAGE = Path(__file__).resolve().parent / "errata.md"
HEAD = """# Errata

Errors in the printed formulas, numbers and texts of the sources, with the correction and how it was checked. The Errata
page of the app shows most of them with a counter-example that you can vary. Written by `python -m docs.make_errata`; do
not edit.
"""


def markdown() -> str:
    """Return the text of docs/errata.md: one table per source, then the methods of checking."""
    lines = [HEAD]
    for letter, source in sources().items():
        if entries := [e for e in errata() if e.source == letter]:
            lines += [f"## {source.citation}", "", "| | where | printed | correct | checked by |"]
            lines.append("|--:|---|---|---|---|")
            lines += [*map(_row, entries), ""]
    lines += ["## How errata were checked", "", "| | method |", "|---|---|"]
    lines += [f"| {key} | {method} |" for key, method in METHODS.items()]
    return "\n".join(lines) + "\n"


def _row(e: Erratum) -> str:
    cells = (str(e.number), e.where, e.printed, e.true, ", ".join(e.checked))
    return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(markdown(), "utf-8")
