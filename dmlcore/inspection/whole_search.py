"""Search of the neighbours of all queries in a background job, exactly or with an approximate index.

To measure the accuracy of an index, the random sample of queries that was scored first (`neighbour_lists.draw_queries`)
is searched both exactly and with the index. Distances in an approximate list are exact, but its members and their ranks
may differ from those of the exact list.
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

TOLERANCE = 1e-6  # relative tolerance; a distance counts as a hit if it exceeds the exact one by no more than this
BUILDING = 0.3  # share of the progress bar that is reserved for building an index
# bytes per query: two copies of its lists while they are assembled, plus its scores
PER_SAMPLE = (MOST_NEIGHBOURS * 3 + 40) * 8


@dataclass(frozen=True)
class WholeSearch:
    """Search method for all queries.

    Args:
        kind: Key of `metrics.approximate.TITLES`: "exact" or a kind of index.
        seed: Seed of the index, 0 to 2^31 - 1.

    Raises:
        ValueError: An argument is out of range.
    """

    kind: IndexKind = "hnsw"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(IndexKind):
            raise ValueError(f"kind must be one of {', '.join(TITLES)}, got {self.kind!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be 0 to 2^31 - 1, got {self.seed!r}")

    def to_json(self) -> str:
        """Return the JSON text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WholeSearch:
        """Create a WholeSearch from the JSON text that `to_json` returns.

        Raises:
            ValueError: The text is not JSON, or a value is out of range.
            TypeError: An argument is unknown.
        """
        return cls(**json.loads(text))


@dataclass(frozen=True)
class WholeCost:
    """Estimated cost of searching all queries on this machine.

    Args:
        kind: Search method, "exact" or a kind of index.
        seconds: Estimated run time in seconds.
        bytes: Estimated memory in bytes, in addition to the embeddings.
    """

    kind: IndexKind
    seconds: float
    bytes: int


def forecast(queries: int, searched: int, dimensions: int) -> list[WholeCost]:
    """Estimate the cost of each search method on this machine.

    Times a small search, which takes some seconds. See `metrics.approximate.estimate_costs` for the accuracy of the
    estimates.

    Args:
        queries: Number of queries.
        searched: Number of samples to search.
        dimensions: Number of dimensions of an embedding.

    Raises:
        ValueError: An argument is below 1.
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
    """Search the neighbours of all queries of the newest embeddings of a run, and store them.

    Args:
        run: Run to search.
        choice: Search method.
        tell: Callback for progress.

    Returns:
        Measured accuracy of the lists; None for an exact search.

    Raises:
        RunError: The run has not been evaluated.
        Unreadable: The embeddings file is damaged.
        MemoryError: The search needs too much memory.
    """
    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has no embeddings yet; evaluate it first")
    names = ("embeddings", "labels", "is_gallery")
    table = arrays.read(source, EMBEDDINGS, *names, remedy=neighbours.AGAIN)
    embeddings, labels = table["embeddings"], table["labels"]
    is_gallery = table.get("is_gallery", np.zeros(len(labels), bool))
    lists, approximation = search_all(embeddings, labels, is_gallery, choice, tell)
    more = {} if approximation is None else {"facts": np.array(approximation.to_json())}
    neighbours.write(source, lists | more)
    return approximation


def search_all(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    choice: WholeSearch,
    tell: ProgressCallback = lambda words, done, total: None,
) -> tuple[dict[str, Array], Approximation | None]:
    """Search the neighbours of all rows.

    Args:
        embeddings: Array (n, D), may be memory-mapped.
        labels: Integers (n,).
        is_gallery: Boolean mask (n,) of the rows to search; if none is set, all rows are searched.
        choice: Search method.
        tell: Callback for progress.

    Returns:
        Arrays for all rows as `neighbour_lists.search_rows` returns them, and the accuracy of the lists (None for an
        exact search).
    """
    rows = np.arange(len(labels))
    exact = neighbour_lists.exact_search(embeddings, is_gallery)

    def say(done: int) -> None:
        tell(f"searching: {done:,} of {len(rows):,} queries", begin + (1 - begin) * done / len(rows), 1.0)

    if choice.kind == "exact":
        begin = 0.0
        say(0)
        return neighbour_lists.search_rows(embeddings, labels, is_gallery, rows, exact, tell=say), None
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
    lists = neighbour_lists.search_rows(
        embeddings, labels, is_gallery, rows, index_search(embeddings, index, pool), deep=False, tell=say
    )
    tell("comparing a sample with the exact search", 1.0, 1.0)
    sample = neighbour_lists.draw_queries(is_gallery)
    truth = neighbour_lists.search_rows(embeddings, labels, is_gallery, sample, exact, deep=False)
    return lists, _measure_accuracy(
        choice.kind, index.breadth, {name: each[sample] for name, each in lists.items()}, truth
    )


def index_search(embeddings: Singles, index: ApproximateSearch, pool: Ints | None) -> Search:
    """Return a function (rows, k) -> (distances, rows) that finds the k nearest other rows of each row with an index.

    Results are ordered by exact distance. Rows for which the index finds fewer than k others are searched exactly.

    Args:
        embeddings: Array (n, D), may be memory-mapped.
        index: Index of all embeddings, or of those in `pool`.
        pool: Rows (g,) that are in the index; None for all.
    """

    def search(rows: Ints, k: int) -> tuple[Floats, Ints]:
        _, near = index.nearest(embeddings[rows], min(k + 1, index.count))
        members = np.maximum(near, 0) if pool is None else pool[np.maximum(near, 0)]
        distances = distances_to(embeddings, rows, members)
        distances[(near < 0) | (members == rows[:, None])] = np.inf
        distances, members = first(distances, members, k)
        # the index returned fewer than k samples: search these rows exactly
        short = np.flatnonzero(np.isinf(distances[:, -1]))
        if len(short):
            distances[short], members[short] = nearest_others(embeddings, rows[short], k, pool)
        return distances, members

    return search


def _measure_accuracy(kind: IndexKind, breadth: int, lists: dict[str, Array], truth: dict[str, Array]) -> Approximation:
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
