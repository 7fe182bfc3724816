"""Nearly the nearest neighbours among millions: indices of faiss that look at a part of the points, recall measured.

An exact search of all n points by all n compares n² pairs; from some hundred thousand points on that is hours. What an
index misses is not guessed: `recall` compares it with the exact search for queries drawn by a seed, and every score
of its neighbours comes with what it may be off by.
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
from dmlcore.metrics.nearest_neighbours import matrix
from dmlcore.typing import Array, Bools, Ints, Singles

IndexKind = Literal["exact", "ivf", "hnsw", "ivf_pq"]
TITLES: dict[IndexKind, str] = {
    "exact": "Exact",
    "ivf": "Inverted lists",
    "hnsw": "Navigable graph (HNSW)",
    "ivf_pq": "Inverted lists of product codes",
}
BREADTH: dict[IndexKind, int] = {"exact": 1, "ivf": 16, "hnsw": 64, "ivf_pq": 32}  # lists or candidates looked at
LINKS = 32  # of a point in the graph (M), twice as many on the ground floor
EFFORT = 80  # candidates from which the links of a new point are chosen (efConstruction)
BITS = 8  # of each code
PER_LIST = 64  # training points per list: faiss warns below 39 and draws from more than 256
LEAST = 40 * 2**8  # training points, for the codes
PART = 2**16  # points added at once
QUERIES = 1000  # with which recall is measured
CONFIDENCE = 0.95
PROBE = 10_000  # points of the small index from which the times of a large one are foreseen
ROUNDS = 25  # of k-means in faiss, for the centres of lists and of codes
MOST_CODED = 2**16  # training points of the codes: 256 for each of 256
ALONE = 5.0  # how much longer one comparison takes where the points of a list meet one query, not many


@dataclass(frozen=True)
class Recall:
    """Of the exact k nearest of some queries, the share that an index finds.

    share: their mean in 0..1. whole: the share of queries of which it finds all k. least_whole: of all queries of this
    kind at least so many, with CONFIDENCE (Clopper and Pearson 1934, one-sided).
    """

    k: int
    queries: int
    share: float
    whole: float
    least_whole: float

    @property
    def off(self) -> float:
        """How far a mean over queries of something in 0..1 that depends on the k nearest alone may be off, at most."""
        return 1 - self.least_whole


@dataclass(frozen=True)
class IndexCost:
    """What an index of n points would need: bytes held, seconds to build it, seconds for 1,000 queries."""

    kind: IndexKind
    bytes: int
    build: float
    thousand: float


class ApproximateSearch:
    """Points (n, d) in an index. Points may be memory-mapped: they are read part by part; all but ivf_pq hold a copy.

    breadth: how many lists (ivf, ivf_pq) or candidates (hnsw) a query looks at: more finds more and takes longer.
    tell: how many points are in it. Equal points, kind and seed give an equal index on one thread; a graph built by
    several may differ in a few links.
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
        """Lists or candidates a query looks at."""
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
        """Distances (Q, k), ascending, and points (Q, k) near to each query (Q, d).

        -1 and inf where the lists looked at hold fewer than k. A query that is one of the points finds itself.
        """
        if not 1 <= k <= self.count:
            raise ValueError(f"k must be in 1..{self.count} (points), got {k}")
        squares, near = self.index.search(_single(matrix("queries", queries)), k)
        return np.sqrt(np.maximum(np.where(near < 0, np.inf, squares), 0)), near

    def others(self, points: Array, rows: Ints, k: int) -> tuple[Singles, Ints]:
        """As `nearest` for some of the points themselves, which do not find themselves."""
        distances, near = self.nearest(points[rows], min(k + 1, self.count))
        own = near == rows[:, None]
        own[~own.any(axis=1), -1] = True  # not among its own nearest: the last one goes
        return distances[~own].reshape(len(rows), -1), near[~own].reshape(len(rows), -1)


def recall(search: ApproximateSearch, points: Array, k: int, *, queries: int = QUERIES, seed: int = 0) -> Recall:
    """Compare an index of these points with the exact search, for some of the points drawn by the seed.

    A near point counts when it is no further than the exact k-th, so that ties in distance are no misses.
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
    return of_hits(hits)


def of_hits(hits: Bools) -> Recall:
    """The recall of some queries from what was found of the exact nearest of each, (Q, k)."""
    queries, whole = len(hits), int(hits.all(axis=1).sum())
    least = float(betaincinv(whole, queries - whole + 1, 1 - CONFIDENCE)) if whole else 0.0
    return Recall(hits.shape[1], queries, float(hits.mean()), whole / queries, least)


def costs(n: int, d: int, *, seed: int = 0) -> list[IndexCost]:
    """What each kind would need for n points of d dimensions on this machine.

    Bytes are those of the format. Times follow from two things measured once with PROBE points: comparisons of d
    numbers a second, and the links of a graph. At a million points they were off by up to 3.5 times (a build of lists
    too long, a query of codes too short).
    """
    speed, built, asked = _measured(d, seed)
    floors = np.log(n) / np.log(PROBE)  # steps in a graph grow with the logarithm

    lists = _lists(n)
    train = ROUNDS * min(PER_LIST * lists, n) * lists / speed
    looked = {kind: BREADTH[kind] * n / lists for kind in ("ivf", "ivf_pq")}  # points of the lists a query looks at
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
    return [IndexCost(kind, size(kind, n, d), build, query * 1000) for kind, (build, query) in work.items()]


@lru_cache(maxsize=16)
def _measured(d: int, seed: int) -> tuple[float, float, float]:
    """Comparisons a second of many queries with many points; seconds in which PROBE are linked, and QUERIES asked."""
    points = np.random.default_rng(seed).standard_normal((PROBE, d), dtype=np.float32)
    begin = time.perf_counter()
    ApproximateSearch(points, "exact").nearest(points[:QUERIES], 100)
    compared = time.perf_counter()
    graph = ApproximateSearch(points, "hnsw")
    built = time.perf_counter()
    graph.nearest(points[:QUERIES], 100)
    return PROBE * QUERIES / (compared - begin), built - compared, time.perf_counter() - built


def size(kind: IndexKind, n: int, d: int) -> int:
    """Bytes of an index of n points of d dimensions."""
    centres = _lists(n) * d * 4
    sizes: dict[IndexKind, int] = {
        "exact": n * d * 4,
        "ivf": n * (d * 4 + 8) + centres,
        "hnsw": n * (d * 4 + (2 * LINKS + 2) * 4),  # links of the ground floor; the floors above add one or two
        "ivf_pq": n * (_codes(d) + 8) + centres + (d * 4 << BITS),
    }
    return sizes[kind]


def _empty(kind: IndexKind, n: int, d: int) -> Any:
    """The index that faiss makes of these words; np: codes are not ordered for comparisons of bits, which is slow."""
    words = {
        "exact": "Flat",
        "ivf": f"IVF{_lists(n)},Flat",
        "hnsw": f"HNSW{LINKS},Flat",
        "ivf_pq": f"IVF{_lists(n)},PQ{_codes(d)}x{BITS}np",
    }
    return faiss.index_factory(d, words[kind])


def _lists(n: int) -> int:
    """Of inverted lists: about 4 √n, as faiss recommends, but no more than there are points to train them with."""
    return max(1, min(round(4 * math.sqrt(n)), n // PER_LIST))


def _codes(d: int) -> int:
    """Bytes of a product code: one for about two dimensions."""
    return max(m for m in range(1, d // 2 + 1 or 2) if d % m == 0)


def _sample(points: Array, most: int, seed: int) -> Singles:
    if len(points) <= most:
        return _single(points)
    return _single(points[np.sort(np.random.default_rng(seed).choice(len(points), most, replace=False))])


def _single(points: Array) -> Singles:
    return np.ascontiguousarray(points, np.float32)
