"""Attributes by which the points of a map can be coloured and filtered, as columns of one byte per point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dmlcore.inspection import duplicates
from dmlcore.inspection.hubness import hubness
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Array, Bools, Bytes, Ints

NEAREST = 8  # number of neighbours from which purity, density and doubtful labels are computed
COUNTED = 10  # number of neighbours from which hubness is computed
NOWHERE = 255  # value of a point for which the attribute is undefined
RANKS = (1, 2, 5, 17, 65)  # first rank of each bin


class Column(NamedTuple):
    """One byte per point of the map, with the facts that the legend needs.

    Attributes:
        values: Category or quantised value of each point; NOWHERE if undefined.
        facts: "names" of the categories 0, 1, ..., or "title", "low" and "high" of a continuous scale.
        fine: Values (n,) for sorting; None if `values` suffices.
    """

    values: Bytes
    facts: dict[str, Any]
    fine: NDArray[np.uint16] | None = None


def columns(neighbours: TestNeighbours) -> dict[str, Column]:
    """Return all columns that can be computed from the neighbours, keyed by name."""
    no_query = np.isnan(neighbours.average_precision) | ~neighbours.queries
    return {
        "right": _right(neighbours, no_query),
        "rank": _rank(neighbours, no_query),
        "hubness": _hubness(neighbours),
        "doubted": _doubted(neighbours),
        "split": Column(neighbours.is_gallery.astype(np.uint8), {"names": ["queries", "gallery"]}),
        "purity": _purity(neighbours),
        "density": _density(neighbours),
    }


def _right(neighbours: TestNeighbours, no_query: Bools) -> Column:
    right = np.where(no_query, NOWHERE, neighbours.right[:, 0]).astype(np.uint8)
    counts = {
        "right": int((right == 1).sum()),
        "wrong": int((right == 0).sum()),
        "neither": int(no_query.sum()),
    }
    return Column(right, {"names": ["neighbour wrong", "neighbour right"], **counts})


def _rank(neighbours: TestNeighbours, no_query: Bools) -> Column:
    rank = neighbours.positives.rank
    kind = np.searchsorted(RANKS, rank, side="right") - 1
    ends = [f"{low} to {high - 1}" if high - low > 1 else f"{low}" for low, high in pairwise(RANKS)]
    names = [f"first hit at rank {words}" for words in ends] + [f"first hit beyond rank {RANKS[-1] - 1}"]
    return Column(
        np.where(no_query | (rank == 0), NOWHERE, kind).astype(np.uint8),
        {"names": names},
        np.minimum(np.where(no_query, 0, rank), 65535).astype(np.uint16),
    )


def _hubness(neighbours: TestNeighbours) -> Column:
    k = min(COUNTED, neighbours.neighbours.shape[1])
    hubs = hubness(neighbours.labels, neighbours.neighbours, neighbours.is_gallery, k)
    kind, times = np.full(len(neighbours.labels), NOWHERE), np.zeros(len(neighbours.labels))
    if neighbours.is_sample:  # too few queries for hubs
        return Column(kind.astype(np.uint8), {"names": ["known after all queries are searched"]})
    kind[hubs.rows] = 1
    for number, places in ((0, hubs.orphans), (2, hubs.hubs), (3, hubs.bad_hubs)):
        kind[hubs.rows[places]] = number
    times[hubs.rows] = hubs.occurrences
    names = ["never retrieved", "usual", "hub", *(["bad hub"] if neighbours.has_labels else [])]
    return Column(kind.astype(np.uint8), {"names": names}, np.minimum(times, 65535).astype(np.uint16))


def _doubted(neighbours: TestNeighbours) -> Column:
    doubted = np.zeros(len(neighbours.labels))
    doubted[duplicates.find_suspects(neighbours, NEAREST).rows] = 1
    doubted[~neighbours.queries] = NOWHERE
    return Column(doubted.astype(np.uint8), {"names": ["label not doubted", "label doubted"]})


def _purity(neighbours: TestNeighbours) -> Column:
    searched = neighbours.is_gallery if neighbours.is_gallery.any() else np.ones(len(neighbours.labels), bool)
    classes, group = np.unique(neighbours.labels, return_inverse=True)
    # number of other searchable samples in the class of each sample
    others = np.bincount(group[searched], minlength=len(classes))[group] - searched
    k = min(NEAREST, neighbours.right.shape[1])
    looked = np.minimum(others, k)
    alone = (looked == 0) | (neighbours.neighbours[:, 0] < 0)
    hits = np.cumsum(neighbours.right, axis=1)[np.arange(len(looked)), np.maximum(looked, 1) - 1]
    share = np.divide(hits, looked, out=np.zeros(len(looked)), where=~alone)
    return Column(
        np.where(alone, NOWHERE, np.rint(254 * share)).astype(np.uint8),
        {
            "title": f"same class among the {k} nearest (fewer in small classes)",
            "low": "0 %",
            "high": "100 %",
            "neither": int(alone.sum()),
        },
    )


def _density(neighbours: TestNeighbours) -> Column:
    k = min(NEAREST, neighbours.distances.shape[1])
    reach = neighbours.distances[:, k - 1]
    low, high = np.nanquantile(reach, [0.01, 0.99])
    dense = np.where(np.isnan(reach), 0, np.clip((high - reach) / ((high - low) or 1.0), 0, 1))
    facts = {"title": f"distance to neighbour {k}", "low": f"{high:.3g} sparse", "high": f"{low:.3g} dense"}
    return Column(np.rint(254 * dense).astype(np.uint8), facts)


def tagged(tags: Sequence[Ints], indices: Ints) -> Array:
    """Return bit masks (T, ceil(n / 8)): bit j of row t is set if sample `indices[j]` has tag t; lowest bit first."""
    masks = np.stack([np.isin(indices, samples) for samples in tags])
    return np.packbits(masks, axis=1, bitorder="little")
