"""Strict parsing of the text lists of data sets: every error message names the file, the line and a remedy."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from dmlcore.data.dataset import DataError, Description

MAX_LIST_BYTES = 64 * 2**20
NUMBER = r"([1-9]\d{0,8})"  # pattern of a number from 1 to 999,999,999


class ListLine(NamedTuple):
    """Non-blank line of a list: its line number, counted from 1, and its text without surrounding white space."""

    line: int
    text: str


def rows(path: Path, info: Description) -> list[ListLine]:
    """Return the non-blank lines of a text file; raise DataError if it is missing, empty, too large or not UTF-8."""
    if not path.is_file():
        raise DataError(f"{path} is missing; restore it from {info.url}")
    if path.stat().st_size > MAX_LIST_BYTES:
        raise DataError(f"{path} is larger than {MAX_LIST_BYTES:,} bytes, so it is not a list of {info.title}")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8 text; restore the list") from error
    lines = [ListLine(line, row.strip()) for line, row in enumerate(text.split("\n"), start=1) if row.strip()]
    if not lines:
        raise DataError(f"{path} is empty; restore it from {info.url}")
    return lines


def parse(path: Path, lines: Iterable[ListLine], pattern: str, expected: str) -> list[tuple[str, ...]]:
    """Return for each of the `lines` of a file its position "file:line", followed by the groups of `pattern`.

    Raises DataError naming file, line and what is `expected` if the regular expression does not match a whole line.
    """
    match, name, parsed = re.compile(pattern, re.ASCII).fullmatch, str(path), []
    for line, text in lines:
        if (columns := match(text)) is None:
            raise DataError(f"{name}:{line}: expected {expected}, got {text[:80]!r}")
        parsed.append((f"{name}:{line}", *columns.groups()))
    return parsed


@contextlib.contextmanager
def many_rows() -> Iterator[None]:
    """Return a context manager that pauses garbage collection while many objects are created.

    Creating a hundred thousand objects would trigger dozens of slow collections in a large process.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def positive(text: str) -> int:
    """Return `text` as an integer in 1..999999999, or 0 if it is not one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def is_inside(path: str, parts: int | None = None) -> bool:
    """Return True if the listed `path` does not leave its folder and, if `parts` is given, has that many components."""
    names = path.split("/")
    is_plain = not {"", ".", ".."} & set(names) and "\\" not in path and "\0" not in path
    return is_plain and parts in (None, len(names))


def require_distinct(values: Iterable[tuple[str, str]]) -> None:
    """Raise DataError if a value occurs twice in `values`, which are pairs (value, "file:line")."""
    first: dict[str, str] = {}
    for value, place in values:
        if value in first:
            raise DataError(f"{place}: {value} is already listed in {_shorten_place(first[value], place)}")
        first[value] = place


def require_disjoint(train: Iterable[tuple[str, str]], test: Iterable[tuple[str, str]]) -> None:
    """Raise DataError if a class occurs in both `train` and `test`, which are pairs (class, "file:line")."""
    first: dict[str, str] = {}
    for value, place in train:
        first.setdefault(value, place)
    shared = {value: place for value, place in reversed(list(test)) if value in first}
    if shared:
        pairs = [f"{value} ({first[value]} and {place})" for value, place in sorted(shared.items())]
        more = f" and {len(pairs) - 5} more" if len(pairs) > 5 else ""
        raise DataError(f"in both train and test: class {'; class '.join(pairs[:5])}{more}; correct the lists")


def _shorten_place(place: str, other_place: str) -> str:
    """Return "line N" if `place` and `other_place`, both "file:N", are in the same file, else `place` unchanged."""
    (file, _, line), (other, _, _) = place.rpartition(":"), other_place.rpartition(":")
    return f"line {line}" if file == other and line.isdigit() else place
