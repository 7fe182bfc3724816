"""Conversion of rows to CSV text in which spreadsheets find no formulas; all CSV output of this project uses it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

# A spreadsheet evaluates a cell that starts with one of these signs as a formula (OWASP, "CSV injection"; the
# full-width signs are East Asian). A spreadsheet that separates cells at ";", "|" or tab finds such starts within our
# quotes too, so the positions after these characters and at line starts count as well. Quotes and blanks before the
# sign do not protect the cell.
_FORMULA = re.compile(r"""(^|[;|\t\n])([" ]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\n])""")


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV: text quoted, numbers unquoted, None as an empty cell; each row ends with one newline.

    Text that a spreadsheet would evaluate gets an apostrophe before the sign that makes it a formula. Strings that are
    numbers, such as "-1.50", are written unquoted and unmodified.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([cell(value) for value in row] for row in rows)
    return file.getvalue()


def cell(value: Any) -> Any:
    """Return the value to write into a cell: text with an apostrophe before each formula, other values unchanged."""
    if not isinstance(value, str):
        return value
    if _is_number(value):
        return _Number(value)
    lines = value.replace("\r\n", "\n").replace("\r", "\n")  # a lone carriage return would end the row
    return _FORMULA.sub(r"\1\2'", lines)


class _Number(float):
    """Number given as a string, written unquoted and in its original form."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[-1:].isalnum()  # float() also accepts trailing white space, as in "-1\n"
