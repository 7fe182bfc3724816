"""Tables as CSV that a spreadsheet shows and does not run: the one way in which anything here becomes CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

# A cell that begins so is a formula to a spreadsheet (OWASP, "CSV injection"; the wide signs are those of East Asia).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV, None as an empty cell; a text that a spreadsheet would run gets an apostrophe before it.

    Numbers stay as they are, also those that come as text, and so do lines: each ends in a single newline.
    """
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return file.getvalue()


def cell(value: Any) -> Any:
    """The value of one cell, made harmless."""
    if not isinstance(value, str) or _is_number(value):
        return value
    text = f"'{value}" if value.startswith(_FORMULA) else value
    return text.replace("\r\n", "\n").replace("\r", "\n")  # which csv would not quote, so that a row would break there


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[-1:].isalnum()  # float takes "-1\n" too
