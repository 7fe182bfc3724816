"""Generator of the table of packages in docs/architecture.md.

The table lists the layers of the import contract and the first sentence of each package's docstring. `python -m
docs.layers` rewrites the table between its marks; a test compares it with the packages.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
MARKS = "<!-- layers: python -m docs.layers -->\n", "<!-- /layers -->\n"


def diagram() -> str:
    """Return the Markdown table of packages, highest layer first, with the first sentence of each docstring."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (
        c["layers"] for c in settings["tool"]["importlinter"]["contracts"] if c["name"] == "arrows only point down"
    )
    lines = ["| layer | package | contents |\n", "|--:|---|---|\n"]
    for number, layer in zip(range(len(layers), 0, -1), layers, strict=True):
        for place, package in enumerate(layer.split(" | ")):
            name = package.removeprefix("dmlcore.")
            lines.append(f"| {number if place == 0 else ''} | `{name}` | {_sentence(package)} |\n")
    return "".join(lines)


def _sentence(package: str) -> str:
    """Return the first sentence of the docstring of a package or module."""
    folder = ROOT.joinpath(*package.split("."))
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text()))
    if not text:
        raise SystemExit(f"{file.relative_to(ROOT)} needs a docstring: its first line is its row in {PAGE.name}")
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def filled(page: str) -> str:
    """Return the text `page` in which the table between the marker comments is replaced with the current one."""
    begin, end = map(re.escape, MARKS)
    return re.sub(f"{begin}.*?{end}", lambda _: MARKS[0] + diagram() + MARKS[1], page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
