"""What the views of the Confusions page share: the run they show, what is computed once for each embeddings file."""

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

COUNTS = (1, 2, 4, 8, 12, 16, 24)  # neighbours that may be counted, as far as they are kept
R = "R"  # as many as the class of the query has others
FEWER_PAIRS = 4_000_000  # of a snapshot: many are measured one after another


def neighbour_counts(shown: ShownRun) -> list[int]:
    """The numbers of neighbours that can be counted."""
    return [k for k in COUNTS if k <= shown.test.neighbours.shape[1]]


@cached(32)
def confused(path: Path, k: int | str) -> Confusions:
    """Confusions among the k nearest neighbours, or the R nearest."""
    neighbours = learned(path)
    if isinstance(k, str):
        return confusions.of_class_size(
            neighbours.embeddings, neighbours.labels, neighbours.is_gallery, neighbours.neighbours, neighbours.queries
        )
    return confusions.of_neighbours(neighbours.labels, neighbours.neighbours, neighbours.queries, k)


@cached(32)
def hubs(path: Path, k: int) -> Hubness:
    """How often each sample is among the k nearest neighbours."""
    neighbours = learned(path)
    return hubness.hubness(neighbours.labels, neighbours.neighbours, neighbours.is_gallery, k)


@cached(8)
def measured(path: Path) -> DistanceDensity:
    """Distances and triplets of the whole part; raises ValueError where there is no triplet."""
    neighbours = learned(path)
    return distance_density.measure(neighbours.embeddings, neighbours.labels, neighbours.is_gallery)


@cached(64)
def snapshot(path: Path, written: int) -> DistanceDensity:
    """The same of a kept checkpoint, of fewer pairs; written: when its file was, in ns."""
    again = "Embed the kept checkpoints again"
    stored = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "is_gallery", remedy=again)
    x, labels, is_gallery = stored["embeddings"], stored["labels"], stored.get("is_gallery")
    return distance_density.measure(x, labels, is_gallery, pairs=FEWER_PAIRS, triplets=10_000)
