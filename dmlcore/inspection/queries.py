"""Sorting of queries by score, failure or hardest positive, and filtering by class, failure or selection."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Ints

Order = Literal[
    "worst first",
    "best first",
    "failures first",
    "late matches first",
    "far matches first",
    "far positives first",
    "by index",
]
ORDERS: dict[Order, str] = {
    "worst first": "lowest average precision AP@R, the share of correct neighbours weighted by rank",
    "best first": "highest AP@R",
    "failures first": "queries with a wrong nearest neighbour, most confident first: by the distance to the nearest "
    "correct sample over that to the nearest neighbour; then all others",
    "late matches first": "hardest positives by rank: highest rank of the nearest sample of the same class",
    "far matches first": "hardest positives by distance: largest distance to the nearest sample of the same class",
    "far positives first": "largest distance to the farthest sample of the same class: spread-out classes and outliers",
    "by index": "in the order of the data set",
}
assert tuple(ORDERS) == get_args(Order)


def sort_rows(learned: TestNeighbours, order: Order) -> Ints:
    """Return all rows sorted by `order`; rows without another sample of their class come last, by sample index.

    Raises:
        ValueError: The order is unknown; the message lists the known ones.
    """
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    if order == "by index":
        return np.argsort(learned.indices, kind="stable")
    positives, precision = learned.positives, learned.average_precision
    with np.errstate(invalid="ignore", divide="ignore"):
        confidence = np.where(learned.failures, positives.nearest_distance / learned.distances[:, 0], -1.0)
    key = {
        "worst first": precision,
        "best first": -precision,
        "failures first": -confidence,
        "late matches first": -positives.rank,
        "far matches first": -positives.nearest_distance,
        "far positives first": -positives.farthest_distance,
    }[order]
    key = np.where(np.isnan(precision), np.nan, key)
    return np.lexsort((learned.indices, key))  # NaN sorts last


def select(
    learned: TestNeighbours,
    order: Order = "worst first",
    *,
    label: int | None = None,
    failures: bool = False,
    indices: Ints | None = None,
) -> Ints:
    """Return the rows (m,) of the queries that pass all filters, in the given order.

    Samples of a separate gallery are not queries. The order "by index" includes all queries, every other order only
    those that were searched (`TestNeighbours.queries`).

    Args:
        learned: Neighbours of the test split.
        order: One of ORDERS.
        label: Keep only queries of this class.
        failures: Keep only queries with a nearest neighbour of another class.
        indices: Keep only these sample indices of the data set.

    Raises:
        ValueError: The order is unknown.
    """
    rows = sort_rows(learned, order)
    keep = ~learned.is_gallery[rows] if order == "by index" else learned.queries[rows]
    if failures:
        keep &= learned.failures[rows]
    if label is not None:
        keep &= learned.labels[rows] == label
    if indices is not None:
        keep &= np.isin(learned.indices[rows], indices)
    return rows[keep]
