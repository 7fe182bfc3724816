"""Run-to-run noise of published scores, where the sources show it, and the rows that are best within that noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dmlcore.published import collection, karaman
from dmlcore.published.collection import PublishedRow, PublishedTable

# largest difference, in percentage points, that counts as noise; see WHY
KARAMAN = {"R@1": 0.9, "MAP@R": 0.2}
WHY = (
    "The evidence: the one setting that Tables 4.10 and 4.11 both hold differs by up to 0.38 R@1 and 0.16 MAP@R; pairs "
    "of settings that are equal up to a factor without the clamp (ranking and (0, 0) with ρ = 1/2, FaceNet and "
    "(1, -1) with ρ = 1/2, angular at 0.79 and (1, -1) with ρ = 1) differ by up to 0.86 R@1 and 0.22 MAP@R."
)


def band(table: PublishedTable) -> Mapping[str, float]:
    """Return, by column, the largest score difference in percentage points that counts as run-to-run noise.

    The result is empty if the source gives no evidence of its noise; a lead may then be due to chance.
    """
    return KARAMAN if table.source == "K" and table.number != "4.1" else {}


def words(table: PublishedTable) -> str:
    """Return a plain-language statement of the known noise of a table."""
    if table.source == "K" and table.number == "4.1":
        return "The source ran each experiment once, so the noise of its scores is unknown."
    if table.source == "K":
        return karaman.NOISE
    if any(row.spread for row in table.rows):
        return "± is the standard deviation that the source prints: rows whose intervals meet are equal within it."
    if table.source == "P" and table.scores:
        low, high = spreads("P-12", "R@1")
        return (
            "The source repeats none of these runs. Its only measure of spread is Table 12: over ten folds, test R@1 "
            f"has a standard deviation of {low:.2f} to {high:.2f}."
        )
    if table.source == "G" and table.scores:
        return (
            "No spread is printed here. Table 5.1 of the same source, over 81 collections of four models, prints "
            "standard deviations of {:.2f} to {:.2f} P@1 and of {:.2f} to {:.2f} MAP@R.".format(
                *spreads("G-5.1", "P@1"), *spreads("G-5.1", "MAP@R")
            )
        )
    return "The source states no spread: how far chance moves these numbers is not known." if table.scores else ""


def spreads(key: str, column: str) -> tuple[float, float]:
    """Return the smallest and the largest standard deviation that a table prints in a column."""
    published = collection.table(key)
    assert published is not None, key
    printed = [row.spread[column] for row in published.rows if row.spread and column in row.spread]
    return min(printed), max(printed)


def best(rows: Sequence[PublishedRow], column: str, width: float = 0.0) -> list[bool]:
    """Return, for each row, True if its score in a column is within the noise of the best score.

    Rows are compared only with rows of the same data set, network and embedding size. A row that is alone in its group
    is False.

    Args:
        rows: The rows.
        column: Name of the score.
        width: Noise band in percentage points. If standard deviations are printed, a row is also best if its interval
            of one deviation overlaps that of the highest row.
    """
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in rows:
        if (value := _value(row, column)) is not None:
            groups.setdefault(row.alike, []).append(value)
    marked = []
    for row in rows:
        value, group = _value(row, column), groups.get(row.alike, [])
        if value is None or len(group) < 2:
            marked.append(False)
            continue
        top, top_spread = max(group)
        marked.append(top - value[0] <= max(width, top_spread + value[1]) + 1e-9)
    return marked


def _value(row: PublishedRow, column: str) -> tuple[float, float] | None:
    value = row.values.get(column)
    if not isinstance(value, (int, float)) or math.isnan(value):
        return None
    return float(value), (row.spread or {}).get(column, 0.0)
