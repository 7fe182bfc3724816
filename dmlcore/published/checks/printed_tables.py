"""Access to single cells of the published tables, for checks that recompute claims about these tables."""

from __future__ import annotations

from dmlcore.published.collection import table
from dmlcore.published.rows import PublishedRow, PublishedTable


def printed(key: str) -> PublishedTable:
    """Return the table with the given key.

    Raises:
        LookupError: If the table does not exist.
    """
    published = table(key)
    if published is None:
        raise LookupError(f"no table {key}")
    return published


def rows(key: str, method: str, **where: str) -> list[PublishedRow]:
    """Return the rows of a method in a table with the given dataset, network, size or setting."""
    return [
        row
        for row in printed(key).rows
        if row.method == method and all(getattr(row, name) == wanted for name, wanted in where.items())
    ]


def cell(key: str, method: str, column: str, **where: str) -> float:
    """Return the number in a column of the only row of a table that matches the method and the given attributes.

    Raises:
        LookupError: If there is not exactly one matching row, or the cell holds no number.
    """
    matches = rows(key, method, **where)
    value = matches[0].values.get(column) if len(matches) == 1 else None
    if not isinstance(value, (int, float)):
        raise LookupError(f"{key}: {len(matches)} rows of {method} {where}, {column} of the first is {value!r}")
    return float(value)
