"""Approximate nearest neighbours among millions of points, with faiss indices and measured recall.

An exact search with n queries among n points compares n² pairs, which takes hours beyond a few hundred thousand points.
An index searches only some of the points. `recall` compares its results with those of the exact search for random
queries, and every score computed from an index is reported with a bound on its error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from dmlcore.metrics.mapped import nearest_others
from dmlcore.metrics.nearest_neighbours import as_matrix, as_single
from dmlcore.typing import Array, Bools, Ints, Singles

IndexKind = Literal["exact", "ivf", "hnsw", "ivf_pq"]
TITLES: dict[IndexKind, str] = {
    "exact": "Exact",
    "ivf": "Inverted lists",
    "hnsw": "Navigable graph (HNSW)",
    "ivf_pq": "Inverted lists of product codes",
}
# default number of lists (ivf, ivf_pq) or candidates (hnsw) that a query searches
BREADTH: dict[IndexKind, int] = {"exact": 1, "ivf": 16, "hnsw": 64, "ivf_pq": 32}
LINKS = 32  # links per point in the graph (M), doubled on the lowest layer
EFFORT = 80  # number of candidates from which the links of a new point are chosen (efConstruction)
BITS = 8  # bits per code
PER_LIST = 64  # training points per inverted list; faiss warns below 39 and subsamples above 256
LEAST = 40 * 2**8  # minimum number of training points for product codes
PART = 2**16  # points added at a time
QUERIES = 1000  # default number of queries for measuring recall
CONFIDENCE = 0.95
PROBE = 10_000  # number of points in the small index from which the times of a large one are extrapolated
ROUNDS = 25  # k-means iterations of faiss for the centres of lists and product codes
MOST_CODED = 2**16  # maximum number of training points for product codes: 256 per centroid
ALONE = 5.0  # slowdown factor per distance if the entries of a list are compared with one query instead of many


@dataclass(frozen=True)
class Recall:
    """Recall of an index: the share of the exact k nearest neighbours that it finds for a sample of queries.

    Attributes:
        k: Number of neighbours per query.
        queries: Number of sampled queries.
        share: Share of the k neighbours that were found, averaged over the queries, in 0..1.
        whole: Share of the queries for which all k neighbours were found.
        least_whole: One-sided lower confidence bound on `whole` for all queries, not only the sampled ones, at level
            CONFIDENCE (Clopper and Pearson 1934).
    """

    k: int
    queries: int
    share: float
    whole: float
    least_whole: float

    @property
    def off(self) -> float:
        """Largest possible effect of missed neighbours on a mean over queries of a value in 0..1."""
        return 1 - self.least_whole


@dataclass(frozen=True)
class IndexCost:
    """Estimated cost of an index.

    Attributes:
        kind: Kind of index.
        bytes: Memory in bytes.
        build: Seconds to build the index.
        thousand: Seconds for 1,000 queries.
    """

    kind: IndexKind
    bytes: int
    build: float
    thousand: float


class ApproximateSearch:
    """Approximate nearest-neighbour search with a faiss index of points (n, d), which may be memory-mapped.

    All kinds of index except ivf_pq keep a copy of the points in memory. With one thread, the index depends only on the
    points, the kind and the seed. A graph built by several threads may differ in a few links.

    Args:
        points: Shape (n, d).
        kind: "exact", "ivf", "hnsw" or "ivf_pq".
        breadth: Number of lists (ivf, ivf_pq) or candidates (hnsw) that a query searches. A larger number finds more
            neighbours and takes longer.
        seed: Seed for training the index.
        tell: Callback that receives the number of points added so far while the index is built.
    """

    def __init__(
        self,
        points: Array,
        kind: IndexKind = "hnsw",
        *,
        breadth: int | None = None,
        seed: int = 0,
        tell: Callable[[int], object] = lambda done: None,
    ) -> None:
        if kind not in TITLES:
            raise ValueError(f"kind must be one of {', '.join(TITLES)}, got {kind!r}")
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(f"points must have shape (items, dimensions), both at least 1, got {points.shape}")
        self.kind, self.count, self.seed = kind, len(points), seed
        self.index = _empty(kind, *points.shape)
        if kind == "hnsw":
            self.index.hnsw.efConstruction = EFFORT
        elif kind != "exact":
            self.index.cp.seed = seed
            if kind == "ivf_pq":
                self.index.pq.cp.seed = seed
            self.index.train(_sample(points, max(LEAST, PER_LIST * self.index.nlist), seed))
        for start in range(0, len(points), PART):
            self.index.add(as_single(points[start : start + PART]))
            tell(self.index.ntotal)
        self.breadth = BREADTH[kind] if breadth is None else breadth

    @property
    def breadth(self) -> int:
        """Number of lists (ivf, ivf_pq) or candidates (hnsw) that a query searches."""
        return self._breadth

    @breadth.setter
    def breadth(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"breadth must be a whole number from 1 on, got {value!r}")
        self._breadth = int(value)
        if self.kind == "hnsw":
            self.index.hnsw.efSearch = self._breadth
        elif self.kind != "exact":
            self.index.nprobe = min(self._breadth, self.index.nlist)

    def nearest(self, queries: ArrayLike, k: int) -> tuple[Singles, Ints]:
        """Return ascending distances (Q, k) and indices (Q, k) of the nearest points found for queries (Q, d).

        If the searched lists hold fewer than k points, the remaining distances are inf and the remaining indices -1. A
        query that is itself one of the points finds itself.
        """
        if not 1 <= k <= self.count:
            raise ValueError(f"k must be in 1..{self.count} (points), got {k}")
        squares, near = self.index.search(as_single(as_matrix("queries", queries)), k)
        return np.sqrt(np.maximum(np.where(near < 0, np.inf, squares), 0)), near

    def others(self, points: Array, rows: Ints, k: int) -> tuple[Singles, Ints]:
        """Return distances and indices of the k other points nearest to each of the points at `rows` (m,)."""
        distances, near = self.nearest(points[rows], min(k + 1, self.count))
        own = near == rows[:, None]
        own[~own.any(axis=1), -1] = True  # if a point is not among its own neighbours, drop the last one
        return distances[~own].reshape(len(rows), -1), near[~own].reshape(len(rows), -1)


def recall(search: ApproximateSearch, points: Array, k: int, *, queries: int = QUERIES, seed: int = 0) -> Recall:
    """Measure the recall of an index by comparing it with the exact search for randomly drawn points.

    A returned neighbour counts as found if it is no farther than the exact k-th neighbour, so that ties in distance are
    not misses.

    Args:
        search: Index of the points.
        points: Shape (n, d).
        k: Number of neighbours.
        queries: Number of points to draw as queries.
        seed: Seed for the draw.
    """
    rows = np.sort(np.random.default_rng(seed).choice(len(points), min(queries, len(points)), replace=False))
    _, near = search.others(points, rows, k)
    asked = as_single(points[rows])
    exact = nearest_others(points, rows, k)[0][:, -1]
    hits = np.zeros(near.shape, bool)
    for row in range(len(rows)):
        there = near[row] >= 0
        differences = as_single(points[near[row][there]]).astype(np.float64) - asked[row]
        hits[row, there] = np.sqrt((differences**2).sum(axis=1)) <= exact[row] * (1 + 1e-6)
    return recall_from_hits(hits)


def recall_from_hits(hits: Bools) -> Recall:
    """Compute the recall from a mask (Q, k) that is True for each exact neighbour found by the index."""
    queries, whole = len(hits), int(hits.all(axis=1).sum())
    least = float(betaincinv(whole, queries - whole + 1, 1 - CONFIDENCE)) if whole else 0.0
    return Recall(hits.shape[1], queries, float(hits.mean()), whole / queries, least)


def estimate_costs(n: int, d: int) -> list[IndexCost]:
    """Estimate the cost of each kind of index for n points of d dimensions on this machine.

    The memory follows from the format of the index. Times are extrapolated from two rates measured with PROBE points:
    distances computed per second, and points linked in a graph per second. At a million points the estimated times were
    off by up to a factor of 3.5: too long for building inverted lists, too short for querying product codes.
    """
    speed, built, asked = _measured(d)
    floors = np.log(n) / np.log(PROBE)  # a search in a graph takes a number of steps proportional to log n

    lists = _lists(n)
    train = ROUNDS * min(PER_LIST * lists, n) * lists / speed
    # number of points in the lists that one query searches
    looked = {kind: BREADTH[kind] * n / lists for kind in ("ivf", "ivf_pq")}
    codes = 1 << BITS
    work: dict[IndexKind, tuple[float, float]] = {
        "exact": (0.0, n / speed),
        "ivf": (train + n * lists / speed, (lists + ALONE * looked["ivf"]) / speed),
        "hnsw": (built * n / PROBE * floors, asked / QUERIES * floors),
        "ivf_pq": (
            train + (n * (lists + codes) + ROUNDS * codes * min(n, MOST_CODED)) / speed,
            (lists + BREADTH["ivf_pq"] * codes + ALONE * looked["ivf_pq"] * _codes(d) / d) / speed,
        ),
    }
    return [IndexCost(kind, index_bytes(kind, n, d), build, query * 1000) for kind, (build, query) in work.items()]


@lru_cache(maxsize=16)
def _measured(d: int) -> tuple[float, float, float]:
    """Measure distances per second, seconds to build a graph of PROBE points, and seconds to query it QUERIES times."""
    points = np.random.default_rng(0).standard_normal((PROBE, d), dtype=np.float32)
    begin = time.perf_counter()
    ApproximateSearch(points, "exact").nearest(points[:QUERIES], 100)
    compared = time.perf_counter()
    graph = ApproximateSearch(points, "hnsw")
    built = time.perf_counter()
    graph.nearest(points[:QUERIES], 100)
    return PROBE * QUERIES / (compared - begin), built - compared, time.perf_counter() - built


def index_bytes(kind: IndexKind, n: int, d: int) -> int:
    """Return the memory in bytes that an index of n points of d dimensions takes."""
    centres = _lists(n) * d * 4
    sizes: dict[IndexKind, int] = {
        "exact": n * d * 4,
        "ivf": n * (d * 4 + 8) + centres,
        # counts the links in the lowest layer of the graph; the layers above add one or two links per point
        "hnsw": n * (d * 4 + (2 * LINKS + 2) * 4),
        "ivf_pq": n * (_codes(d) + 8) + centres + (d * 4 << BITS),
    }
    return sizes[kind]


def _empty(kind: IndexKind, n: int, d: int) -> Any:
    """Create an empty faiss index. The suffix "np" skips the slow polysemous training of product codes."""
    words = {
        "exact": "Flat",
        "ivf": f"IVF{_lists(n)},Flat",
        "hnsw": f"HNSW{LINKS},Flat",
        "ivf_pq": f"IVF{_lists(n)},PQ{_codes(d)}x{BITS}np",
    }
    return faiss.index_factory(d, words[kind])


def _lists(n: int) -> int:
    """Return the number of inverted lists: about 4 √n, as faiss recommends, but at most n / PER_LIST."""
    return max(1, min(round(4 * math.sqrt(n)), n // PER_LIST))


def _codes(d: int) -> int:
    """Return the bytes per product code: the largest divisor of d that is at most d / 2, or 1."""
    return max(m for m in range(1, d // 2 + 1 or 2) if d % m == 0)


def _sample(points: Array, most: int, seed: int) -> Singles:
    if len(points) <= most:
        return as_single(points)
    return as_single(points[np.sort(np.random.default_rng(seed).choice(len(points), most, replace=False))])
