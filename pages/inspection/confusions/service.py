"""Cached computations shared by the views of Confusions, one result per embeddings file."""

from __future__ import annotations

from pathlib import Path

from dmlcore.inspection import confusions, distance_density, hubness
from dmlcore.inspection.confusions import Confusions
from dmlcore.inspection.distance_density import DistanceDensity
from dmlcore.inspection.hubness import Hubness
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS
from pages.shared.state.cache import cached
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.widgets.test_neighbours import learned

COUNTS = (1, 2, 4, 8, 12, 16, 24)  # numbers of neighbours that may be counted, limited by those stored
R = "R"  # R: the number of other samples in the query's class
# pairs sampled for a checkpoint; fewer than for the tested weights, because many checkpoints are measured in a row
FEWER_PAIRS = 4_000_000


def neighbour_counts(shown: ShownRun) -> list[int]:
    """Return the numbers of neighbours that can be counted."""
    return [k for k in COUNTS if k <= shown.test.neighbours.shape[1]]


@cached(32)
def confused(path: Path, k: int | str) -> Confusions:
    """Return the confusions among the k nearest neighbours, or among the R nearest."""
    neighbours = learned(path)
    if isinstance(k, str):
        return confusions.of_class_size(
            neighbours.embeddings, neighbours.labels, neighbours.is_gallery, neighbours.neighbours, neighbours.queries
        )
    return confusions.of_neighbours(neighbours.labels, neighbours.neighbours, neighbours.queries, k)


@cached(32)
def hubs(path: Path, k: int) -> Hubness:
    """Return how often each sample is among the k nearest neighbours of a query."""
    neighbours = learned(path)
    return hubness.hubness(neighbours.labels, neighbours.neighbours, neighbours.is_gallery, k)


@cached(8)
def measured(path: Path) -> DistanceDensity:
    """Return distances and triplets of the whole split. Raises ValueError if there is no triplet."""
    neighbours = learned(path)
    return distance_density.measure(neighbours.embeddings, neighbours.labels, neighbours.is_gallery)


@cached(64)
def snapshot(path: Path, written: int) -> DistanceDensity:
    """Return the same measurements for a kept checkpoint, computed from fewer pairs.

    Args:
        written: Modification time of the checkpoint's file in ns; part of the cache key.
    """
    again = "Embed the kept checkpoints again"
    stored = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "is_gallery", remedy=again)
    x, labels, is_gallery = stored["embeddings"], stored["labels"], stored.get("is_gallery")
    return distance_density.measure(x, labels, is_gallery, pairs=FEWER_PAIRS, triplets=10_000)
