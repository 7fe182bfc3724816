"""All published result tables in one format, and a search over their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from dmlcore import losses
from dmlcore.published import table_reader
from dmlcore.published.rows import SAME, SHORT, PublishedRow, PublishedTable, loss_title

__all__ = ["SAME", "SHORT", "PublishedRow", "PublishedTable", "collection", "loss_title", "search", "table"]


@cache
def collection() -> tuple[PublishedTable, ...]:
    """Return all tables, grouped by source and ordered by number."""
    return tuple(table for letter in SHORT for table in sorted(_of_source(letter), key=lambda t: _place(t.number)))


def _of_source(letter: str) -> Iterator[PublishedTable]:
    source = table_reader.sources()[letter]
    for number, file in table_reader.files(letter).items():
        inferred = ", a number inferred from the scores" if file.queries_inferred else ""
        yield PublishedTable(
            letter,
            number,
            f"{file.caption} ({file.queries:,} queries{inferred})" if file.queries else file.caption,
            source.citation,
            tuple(_entry(file, row) for row in file.rows),
            file.split,
            file.protocol,
            (*file.notes, *source.notes_of(number)),
        )


def _entry(file: table_reader.File, row: table_reader.PrintedRow) -> PublishedRow:
    """Convert a printed row: fill in the defaults of its table and format its hyper-parameters as text."""
    setting = [
        row.setting,
        ", ".join(f"{'ρ' if k == 'rho' else k}={_number(v)}" for k, v in row.numbers.items()),
        "without clamp" if row.unhinged else "",
        f"quoted from Table {row.quoted_from}" if row.quoted_from else "",
    ]
    loss = row.loss if row.loss in losses.LOSSES else ""
    return PublishedRow(
        row.method or loss_title(loss) or row.loss.replace("_", " "),
        {column: None if value == "" else value for column, value in zip(file.columns, row.values, strict=True)},
        row.dataset or file.dataset,
        row.network or file.network,
        row.size or file.size,
        "; ".join(filter(None, setting)),
        loss,
        None if row.hyper is None else row.numbers,
        dict(zip(file.columns, row.spread, strict=True)) if row.spread else None,
        row.damaged,
    )


def _number(value: float) -> str:
    return "12/7" if abs(value - 12 / 7) < 1e-9 else f"{value:g}"


def _place(number: str) -> tuple[list[int], str]:
    """Return a sort key that places table 4.10 after 4.9, and 3.2b after 3.2a."""
    return [int(part) for part in re.findall(r"\d+", number)], number


def table(key: str) -> PublishedTable | None:
    """Return the table with the given key, as used in URLs; None if there is no such table."""
    return next((t for t in collection() if t.key == key), None)


def search(
    text: str = "", *, source: str = "", dataset: str = "", protocol: str = "", loss: str = ""
) -> list[tuple[PublishedTable, PublishedRow]]:
    """Return the matching rows with their tables: those that contain every word of `text`, ignoring case.

    Rows must also match the other criteria. Empty criteria match everything.
    """
    words = text.casefold().split()
    return [
        (each, row)
        for each in collection()
        if source in ("", each.source) and protocol in ("", each.protocol)
        for row in each.rows
        if dataset in ("", row.dataset)
        and loss in ("", row.loss)
        and (not words or all(word in text for text in [_text(each, row)] for word in words))
    ]


def _text(published: PublishedTable, row: PublishedRow) -> str:
    about = (
        published.title,
        published.citation,
        published.caption,
        published.protocol,
        row.method,
        loss_title(row.loss),
        row.loss,
    )
    return " ".join((*about, row.dataset, row.network, row.size, row.setting)).casefold()
