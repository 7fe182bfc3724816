"""Every published result table as the same kind of rows, and a search over all of them."""

from __future__ import annotations

import re
from functools import cache

from dmlcore.published.reading import karaman, others
from dmlcore.published.rows import SAME, SHORT, Entry, Table, loss_title

__all__ = ["SAME", "SHORT", "Entry", "Table", "collection", "loss_title", "search", "table"]


@cache
def collection() -> tuple[Table, ...]:
    """All tables, source by source, in the order of their numbers."""
    found = [*karaman(), *others()]
    order = list(SHORT)
    return tuple(sorted(found, key=lambda t: (order.index(t.source), *_place(t.number))))


def _place(number: str) -> tuple[list[int], str]:
    """For sorting: 4.10 comes after 4.9, 3.2b after 3.2a."""
    return [int(part) for part in re.findall(r"\d+", number)], number


def table(key: str) -> Table | None:
    """The table of a key as links have it, or None."""
    return next((t for t in collection() if t.key == key), None)


def search(
    text: str = "", *, source: str = "", dataset: str = "", protocol: str = "", loss: str = ""
) -> list[tuple[Table, Entry]]:
    """Rows that hold every word of `text` (case ignored) and what else is asked for; all of them if nothing is."""
    words = text.casefold().split()
    return [
        (found, row)
        for found in collection()
        if source in ("", found.source) and protocol in ("", found.protocol)
        for row in found.rows
        if dataset in ("", row.dataset)
        and loss in ("", row.loss)
        and (not words or all(word in text for text in [_text(found, row)] for word in words))
    ]


def _text(found: Table, row: Entry) -> str:
    about = (found.title, found.citation, found.caption, found.protocol, row.method, loss_title(row.loss), row.loss)
    return " ".join((*about, row.dataset, row.network, row.size, row.setting)).casefold()
