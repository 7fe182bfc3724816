"""Cached computations for the Confusions page, keyed by embeddings file."""

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

COUNTS = (1, 2, 4, 8, 12, 16, 24)  # numbers of neighbours to offer, limited by the number stored
R = "R"  # R is the number of other samples in the class of the query
# pairs sampled per checkpoint; fewer than for the best weights, because many checkpoints are evaluated in a row
FEWER_PAIRS = 4_000_000


def neighbour_counts(shown: ShownRun) -> list[int]:
    """Return the numbers of neighbours that the user can choose, limited to the number stored per query."""
    return [k for k in COUNTS if k <= shown.test.neighbours.shape[1]]


@cached(32)
def confused(path: Path, k: int | str) -> Confusions:
    """Return the class confusions among the k nearest neighbours; with k = "R", among the R nearest of each query."""
    neighbours = learned(path)
    if isinstance(k, str):
        return confusions.of_class_size(
            neighbours.embeddings, neighbours.labels, neighbours.is_gallery, neighbours.neighbours, neighbours.queries
        )
    return confusions.of_neighbours(neighbours.labels, neighbours.neighbours, neighbours.queries, k)


@cached(32)
def hubs(path: Path, k: int) -> Hubness:
    """Return how often each sample occurs among the k nearest neighbours of all queries."""
    neighbours = learned(path)
    return hubness.hubness(neighbours.labels, neighbours.neighbours, neighbours.is_gallery, k)


@cached(8)
def measured(path: Path) -> DistanceDensity:
    """Return the distances of pairs and triplets in the whole test split. Raises ValueError if there is no triplet."""
    neighbours = learned(path)
    return distance_density.measure(neighbours.embeddings, neighbours.labels, neighbours.is_gallery)


@cached(64)
def snapshot(path: Path, written: int) -> DistanceDensity:
    """Return distances and triplets of a kept checkpoint, computed from fewer pairs than those of `measured`.

    Args:
        written: Modification time of the embeddings file in ns; part of the cache key.
    """
    again = "Embed the kept checkpoints again"
    stored = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "is_gallery", remedy=again)
    x, labels, is_gallery = stored["embeddings"], stored["labels"], stored.get("is_gallery")
    return distance_density.measure(x, labels, is_gallery, pairs=FEWER_PAIRS, triplets=10_000)
