"""Approximate nearest neighbours among millions of points, with faiss indices and measured recall.

An exact search of n points by n queries compares n² pairs, which takes hours from some hundred thousand points on. An
index searches only a part of the points. `recall` measures how many neighbours it misses, by comparison with the exact
search for random queries, and each score that is based on an index comes with a bound of its error.
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
from dmlcore.metrics.nearest_neighbours import as_matrix
from dmlcore.typing import Array, Bools, Ints, Singles

IndexKind = Literal["exact", "ivf", "hnsw", "ivf_pq"]
TITLES: dict[IndexKind, str] = {
    "exact": "Exact",
    "ivf": "Inverted lists",
    "hnsw": "Navigable graph (HNSW)",
    "ivf_pq": "Inverted lists of product codes",
}
# lists or candidates that a query searches
BREADTH: dict[IndexKind, int] = {"exact": 1, "ivf": 16, "hnsw": 64, "ivf_pq": 32}
LINKS = 32  # links of a point in the graph (M), doubled on the lowest layer
EFFORT = 80  # candidates from which the links of a new point are chosen (efConstruction)
BITS = 8  # bits per code
PER_LIST = 64  # training points per list; faiss warns below 39 and subsamples above 256
LEAST = 40 * 2**8  # minimum number of training points for the codes
PART = 2**16  # points added at a time
QUERIES = 1000  # queries with which recall is measured
CONFIDENCE = 0.95
PROBE = 10_000  # points of the small index from which the times of a large one are extrapolated
ROUNDS = 25  # k-means iterations of faiss for the centres of lists and codes
MOST_CODED = 2**16  # maximum number of training points of the codes: 256 for each of 256
ALONE = 5.0  # slowdown of one comparison if the points of a list are compared with one query instead of many


@dataclass(frozen=True)
class Recall:
    """Share of the exact k nearest neighbours that an index finds, over some queries.

    Attributes:
        share: Mean share over the queries, in 0..1.
        whole: Share of queries with all k found.
        least_whole: Lower bound, with CONFIDENCE, of the share over all queries of this kind (Clopper and Pearson 1934,
            one-sided).
    """

    k: int
    queries: int
    share: float
    whole: float
    least_whole: float

    @property
    def off(self) -> float:
        """Largest possible error of a mean over queries of a value in 0..1 that depends only on the neighbours."""
        return 1 - self.least_whole


@dataclass(frozen=True)
class IndexCost:
    """Estimated cost of an index of n points: bytes in memory, seconds to build it, seconds for 1,000 queries."""

    kind: IndexKind
    bytes: int
    build: float
    thousand: float


class ApproximateSearch:
    """Index of points (n, d), which may be memory-mapped; all kinds but ivf_pq hold a copy of the points.

    On one thread, equal points, kind and seed give an equal index. A graph built by several threads may differ in a few
    links.

    Args:
        points: Shape (n, d).
        kind: Kind of index.
        breadth: Number of lists (ivf, ivf_pq) or candidates (hnsw) that a query searches. A larger number finds more
            neighbours and takes longer.
        seed: Seed of the training of the index.
        tell: Callback that receives the number of points added so far.
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
            self.index.add(_single(points[start : start + PART]))
            tell(self.index.ntotal)
        self.breadth = BREADTH[kind] if breadth is None else breadth

    @property
    def breadth(self) -> int:
        """Number of lists or candidates that a query searches."""
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
        """Return the distances (Q, k), ascending, and the indices (Q, k) of points near the queries (Q, d).

        Distances are inf and indices -1 if the searched lists hold fewer than k points. A query that is one of the
        points finds itself.
        """
        if not 1 <= k <= self.count:
            raise ValueError(f"k must be in 1..{self.count} (points), got {k}")
        squares, near = self.index.search(_single(as_matrix("queries", queries)), k)
        return np.sqrt(np.maximum(np.where(near < 0, np.inf, squares), 0)), near

    def others(self, points: Array, rows: Ints, k: int) -> tuple[Singles, Ints]:
        """Return the neighbours as `nearest` does for some of the points, excluding each point itself."""
        distances, near = self.nearest(points[rows], min(k + 1, self.count))
        own = near == rows[:, None]
        own[~own.any(axis=1), -1] = True  # a point that is not among its own nearest: drop the last neighbour
        return distances[~own].reshape(len(rows), -1), near[~own].reshape(len(rows), -1)


def recall(search: ApproximateSearch, points: Array, k: int, *, queries: int = QUERIES, seed: int = 0) -> Recall:
    """Compare an index with the exact search for random points.

    A neighbour counts as found if it is no farther than the exact k-th, so that ties in distance are not misses.

    Args:
        search: Index of the points.
        points: Shape (n, d).
        k: Number of neighbours.
        queries: Number of points to draw.
        seed: Seed of the draw.
    """
    rows = np.sort(np.random.default_rng(seed).choice(len(points), min(queries, len(points)), replace=False))
    _, near = search.others(points, rows, k)
    asked = _single(points[rows])
    exact = nearest_others(points, rows, k)[0][:, -1]
    hits = np.zeros(near.shape, bool)
    for row in range(len(rows)):
        there = near[row] >= 0
        differences = _single(points[near[row][there]]).astype(np.float64) - asked[row]
        hits[row, there] = np.sqrt((differences**2).sum(axis=1)) <= exact[row] * (1 + 1e-6)
    return recall_from_hits(hits)


def recall_from_hits(hits: Bools) -> Recall:
    """Compute the recall from a mask (Q, k) of the exact nearest neighbours that were found."""
    queries, whole = len(hits), int(hits.all(axis=1).sum())
    least = float(betaincinv(whole, queries - whole + 1, 1 - CONFIDENCE)) if whole else 0.0
    return Recall(hits.shape[1], queries, float(hits.mean()), whole / queries, least)


def estimate_costs(n: int, d: int, *, seed: int = 0) -> list[IndexCost]:
    """Estimate the cost of each kind of index for n points of d dimensions on this machine.

    Bytes follow from the format. Times are extrapolated from two measurements with PROBE points: comparisons of d
    numbers per second, and links of a graph per second. At a million points they were off by up to a factor of 3.5 (a
    build of lists was overestimated, a query of codes underestimated).
    """
    speed, built, asked = _measured(d, seed)
    floors = np.log(n) / np.log(PROBE)  # the number of steps in a graph grows with the logarithm of n

    lists = _lists(n)
    train = ROUNDS * min(PER_LIST * lists, n) * lists / speed
    # points of the lists that a query searches
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
def _measured(d: int, seed: int) -> tuple[float, float, float]:
    """Measure comparisons per second, seconds to link PROBE points, and seconds for QUERIES queries."""
    points = np.random.default_rng(seed).standard_normal((PROBE, d), dtype=np.float32)
    begin = time.perf_counter()
    ApproximateSearch(points, "exact").nearest(points[:QUERIES], 100)
    compared = time.perf_counter()
    graph = ApproximateSearch(points, "hnsw")
    built = time.perf_counter()
    graph.nearest(points[:QUERIES], 100)
    return PROBE * QUERIES / (compared - begin), built - compared, time.perf_counter() - built


def index_bytes(kind: IndexKind, n: int, d: int) -> int:
    """Return the bytes of an index of n points of d dimensions."""
    centres = _lists(n) * d * 4
    sizes: dict[IndexKind, int] = {
        "exact": n * d * 4,
        "ivf": n * (d * 4 + 8) + centres,
        "hnsw": n * (d * 4 + (2 * LINKS + 2) * 4),  # links of the lowest layer; the layers above add one or two
        "ivf_pq": n * (_codes(d) + 8) + centres + (d * 4 << BITS),
    }
    return sizes[kind]


def _empty(kind: IndexKind, n: int, d: int) -> Any:
    """Create an empty faiss index. "np" skips the polysemous training of codes, which is slow."""
    words = {
        "exact": "Flat",
        "ivf": f"IVF{_lists(n)},Flat",
        "hnsw": f"HNSW{LINKS},Flat",
        "ivf_pq": f"IVF{_lists(n)},PQ{_codes(d)}x{BITS}np",
    }
    return faiss.index_factory(d, words[kind])


def _lists(n: int) -> int:
    """Return the number of inverted lists: about 4 √n, as faiss recommends, limited by the training points."""
    return max(1, min(round(4 * math.sqrt(n)), n // PER_LIST))


def _codes(d: int) -> int:
    """Return the bytes of a product code: one for about two dimensions."""
    return max(m for m in range(1, d // 2 + 1 or 2) if d % m == 0)


def _sample(points: Array, most: int, seed: int) -> Singles:
    if len(points) <= most:
        return _single(points)
    return _single(points[np.sort(np.random.default_rng(seed).choice(len(points), most, replace=False))])


def _single(points: Array) -> Singles:
    return np.ascontiguousarray(points, np.float32)
