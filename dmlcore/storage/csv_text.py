"""CSV that a spreadsheet displays and never runs; the only writer of CSV in this project."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

# A cell that begins with one of these signs is a formula to a spreadsheet (OWASP, "CSV injection"; the wide signs are
# those of East Asia). A spreadsheet that separates at ";", tab or "|" begins a cell within our quotes, so each such
# place counts as a beginning too, and so does each line; quotes and blanks before the sign do not protect it.
_FORMULA = re.compile(r"""(^|[;|\t\n])([" ]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\n])""")


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV: text in quotes, numbers without, None as an empty cell; each line ends in one newline.

    Text that a spreadsheet would run gets an apostrophe before the sign that makes it a formula. Numbers given as
    text are left unchanged.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([cell(value) for value in row] for row in rows)
    return file.getvalue()


def cell(value: Any) -> Any:
    """Return the value of one cell, made harmless."""
    if not isinstance(value, str):
        return value
    if _is_number(value):
        return _Number(value)
    lines = value.replace("\r\n", "\n").replace("\r", "\n")  # a lone carriage return would end the row
    return _FORMULA.sub(r"\1\2'", lines)


class _Number(float):
    """A number given as text, which is written as it was given, without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[-1:].isalnum()  # float takes "-1\n" too
