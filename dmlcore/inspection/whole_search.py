"""The neighbours of all queries where these are many: foreseen, then searched in a job, exactly or by an index.

What an index misses is measured: the sample of queries that gives the first scores (`neighbour_lists.drawn`) is asked
both ways. Distances of an approximate list are exact, who stands in it and at which place is not.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import get_args

import numpy as np

from dmlcore.inspection import neighbour_lists, neighbours
from dmlcore.inspection.approximation import Approximation
from dmlcore.inspection.neighbour_lists import MOST_NEIGHBOURS, Search
from dmlcore.metrics.approximate import TITLES, ApproximateSearch, IndexKind, estimate_costs, recall_from_hits
from dmlcore.metrics.mapped import distances_to, first, nearest_others
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import ProgressCallback
from dmlcore.typing import Array, Bools, Floats, Ints, Singles

TOLERANCE = 1e-6  # relative: a distance no further than the exact one is no miss
BUILDING = 0.3  # share of the progress while an index is built
PER_SAMPLE = (MOST_NEIGHBOURS * 3 + 40) * 8  # bytes: its lists twice while they are put together, and its own numbers


@dataclass(frozen=True)
class WholeSearch:
    """How all queries are searched: kind of `metrics.approximate.TITLES`; seed of the index."""

    kind: IndexKind = "hnsw"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(IndexKind):
            raise ValueError(f"kind must be one of {', '.join(TITLES)}, got {self.kind!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be 0 to 2^31 - 1, got {self.seed!r}")

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WholeSearch:
        """The choice of a job; raises ValueError or TypeError for another text."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class WholeCost:
    """What the search of all would need here: seconds, and bytes beside the embeddings."""

    kind: IndexKind
    seconds: float
    bytes: int


def forecast(queries: int, searched: int, dimensions: int) -> list[WholeCost]:
    """What each way of searching all queries would need, from a small search that is timed now (some seconds).

    Times are off by as much as those of `metrics.approximate.costs`. Raises ValueError for less than one of each.
    """
    known = {cost.kind: cost for cost in estimate_costs(searched, dimensions)}
    check = min(queries, neighbour_lists.SAMPLE) * known["exact"].thousand / 1000
    held = queries * PER_SAMPLE
    ways = []
    for kind, cost in known.items():
        seconds = cost.build + queries * cost.thousand / 1000
        approximate = kind != "exact"
        ways.append(WholeCost(kind, seconds + check * approximate, held + cost.bytes * approximate))
    return ways


def make(
    run: Run, choice: WholeSearch, tell: ProgressCallback = lambda words, done, total: None
) -> Approximation | None:
    """Search for the neighbours of all queries of the newest embeddings and keep them; None where they are exact.

    Raises RunError before an evaluation, Unreadable, MemoryError.
    """
    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has no embeddings yet; evaluate it first")
    names = ("embeddings", "labels", "is_gallery")
    table = arrays.read(source, EMBEDDINGS, *names, remedy=neighbours.AGAIN)
    embeddings, labels = table["embeddings"], table["labels"]
    is_gallery = table.get("is_gallery", np.zeros(len(labels), bool))
    lists, approximation = searched(embeddings, labels, is_gallery, choice, tell)
    more = {} if approximation is None else {"facts": np.array(approximation.to_json())}
    neighbours.write(source, lists | more)
    return approximation


def searched(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    choice: WholeSearch,
    tell: ProgressCallback = lambda words, done, total: None,
) -> tuple[dict[str, Array], Approximation | None]:
    """What is kept of all rows, as `neighbour_lists.ask` gives it, and how far it may be off."""
    rows = np.arange(len(labels))
    exact = neighbour_lists.exact(embeddings, is_gallery)

    def say(done: int) -> None:
        tell(f"searching: {done:,} of {len(rows):,} queries", begin + (1 - begin) * done / len(rows), 1.0)

    if choice.kind == "exact":
        begin = 0.0
        say(0)
        return neighbour_lists.ask(embeddings, labels, is_gallery, rows, exact, tell=say), None
    begin = BUILDING
    pool = np.flatnonzero(is_gallery) if is_gallery.any() else None
    points = embeddings if pool is None else embeddings[pool]
    tell("building the index", 0.0, 1.0)
    index = ApproximateSearch(
        points,
        choice.kind,
        seed=choice.seed,
        tell=lambda done: tell(f"building the index: {done:,} of {len(points):,}", begin * done / len(points), 1.0),
    )
    lists = neighbour_lists.ask(
        embeddings, labels, is_gallery, rows, by_index(embeddings, index, pool), deep=False, tell=say
    )
    tell("comparing a sample with the exact search", 1.0, 1.0)
    sample = neighbour_lists.drawn(is_gallery)
    truth = neighbour_lists.ask(embeddings, labels, is_gallery, sample, exact, deep=False)
    return lists, _compared(choice.kind, index.breadth, {name: each[sample] for name, each in lists.items()}, truth)


def by_index(embeddings: Singles, index: ApproximateSearch, pool: Ints | None) -> Search:
    """The search of an index of the embeddings, or of those in the pool; what it finds is ordered by exact distance."""

    def search(rows: Ints, k: int) -> tuple[Floats, Ints]:
        _, near = index.nearest(embeddings[rows], min(k + 1, index.count))
        members = np.maximum(near, 0) if pool is None else pool[np.maximum(near, 0)]
        distances = distances_to(embeddings, rows, members)
        distances[(near < 0) | (members == rows[:, None])] = np.inf
        distances, members = first(distances, members, k)
        short = np.flatnonzero(np.isinf(distances[:, -1]))  # the lists looked at held fewer
        if len(short):
            distances[short], members[short] = nearest_others(embeddings, rows[short], k, pool)
        return distances, members

    return search


def _compared(kind: IndexKind, breadth: int, lists: dict[str, Array], truth: dict[str, Array]) -> Approximation:
    hits = lists["distances"] <= truth["distances"][:, -1:] * (1 + TOLERANCE)
    nearest = lists["distances"][:, :1] <= truth["distances"][:, :1] * (1 + TOLERANCE)
    gain = truth["average_precision"] - lists["average_precision"]
    gain = gain[~np.isnan(gain)]
    mean, spread = (float(gain.mean()), float(gain.std())) if len(gain) else (0.0, 0.0)
    return Approximation(
        kind,
        breadth,
        recall_from_hits(nearest),
        recall_from_hits(hits),
        mean,
        1.96 * spread / math.sqrt(max(1, len(gain))),
    )
