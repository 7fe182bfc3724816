"""Single cells of the published result tables, for checks that recompute what a text says of them."""

from __future__ import annotations

from dmlcore.published.collection import table
from dmlcore.published.rows import PublishedRow, PublishedTable


def printed(key: str) -> PublishedTable:
    """The table of a key, which must exist; raises LookupError."""
    published = table(key)
    if published is None:
        raise LookupError(f"no table {key}")
    return published


def rows(key: str, method: str, **where: str) -> list[PublishedRow]:
    """Rows of a method whose dataset, network, size or setting are those given."""
    return [
        row
        for row in printed(key).rows
        if row.method == method and all(getattr(row, name) == wanted for name, wanted in where.items())
    ]


def cell(key: str, method: str, column: str, **where: str) -> float:
    """The number of the only such row; raises LookupError if there is none or more, or no number in it."""
    matches = rows(key, method, **where)
    value = matches[0].values.get(column) if len(matches) == 1 else None
    if not isinstance(value, (int, float)):
        raise LookupError(f"{key}: {len(matches)} rows of {method} {where}, {column} of the first is {value!r}")
    return float(value)
