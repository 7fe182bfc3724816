"""Exact Euclidean nearest neighbours at the speed of a float32 search.

Guarantee: the neighbours of a query q are the first items g of the gallery sorted by (d, index), where d = |q - g| is
computed in float64 from differences, as sqrt(sum (q - g)^2). Ties in d go to the lower index, also at the k-th place.
Results do not depend on float32 rounding, on the offset of the data or on the number of threads.

Method: faiss lists slightly more than k candidates in float32 by the expanded form |q|^2 + |g|^2 - 2 q.g. The rounding
error has a proven bound (`error_bound`). Candidates that differ by more than twice the bound are in their true order;
closer ones are ranked again by d. If the last candidate is not farther than the k-th by twice the bound, an unlisted
point could belong to the result, and the whole gallery is listed in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import faiss
import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.typing import Array, Bools, Floats, Ints, Reals, Singles

Mark = Callable[[Ints, Ints], Array]

SPARE = 4  # extra candidates, nearly always enough to reach farther than the k-th by the error bound
CROWD = 32  # one extra candidate per 32 neighbours, because the gaps between distances are narrow far down a list
# smallest k for which faiss collects candidates and sorts them at the end instead of keeping a heap (its default: 100)
RESERVOIR = 40
QUERIES = 1024  # queries per tile of the distance table of faiss, which then fits the cache (default of faiss: 4096)
# number of steps in which the candidates of one chunk are ranked, which limits the memory for exact distances
PARTS = 8
MOST_NEAR = 1 / 16  # share of a gallery up to which single exact distances take less time than a table of all
CHUNK = 2**21  # maximum number of elements of a temporary array; with half of it faiss would be a third slower


def nearest(
    queries: ArrayLike | torch.Tensor,
    gallery: ArrayLike | torch.Tensor | None = None,
    k: int = 8,
    *,
    exclude_self: bool | None = None,
) -> tuple[Floats, Ints]:
    """Return the distances and gallery indices of the `k` exact nearest gallery items of each query.

    Args:
        queries: Shape (Q, D).
        gallery: Shape (N, D); by default the queries.
        k: Number of neighbours.
        exclude_self: True to drop item i from the list of query i, by index and not by distance, so that copies of a
            query remain. By default True only without a gallery.

    Returns:
        Distances (Q, k), float64 and ascending, and indices (Q, k). Ties go to the lower index.

    Raises:
        TypeError, ValueError: If an argument is invalid; the message names it.

    Example:
        >>> from dmlcore import metrics
        >>> distances, indices = metrics.nearest([[0.0], [1.0], [1.5], [5.0]], k=2)
        >>> indices
        array([[1, 2],
               [2, 0],
               [1, 0],
               [2, 1]])
        >>> distances[3]
        array([3.5, 4. ])
    """
    exclude_self = gallery is None if exclude_self is None else exclude_self
    search = NeighbourSearch(queries, gallery, exclude_self=exclude_self)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= search.available:
        raise ValueError(f"k must be an integer in 1..{search.available} (items that can be neighbours), got {k!r}")
    rows = np.arange(len(search.queries))
    indices = np.concatenate([search.ranked(part, int(k)) for part in split_rows(rows, int(k) + SPARE)])
    return np.ldexp(search.distances(rows, indices), search.exponent), indices


def as_matrix(name: str, value: ArrayLike | torch.Tensor) -> Reals:
    """Return `value` as a finite array (N, D); float32 is kept, every other type becomes float64.

    Raises:
        TypeError, ValueError: If `value` is not a finite numeric array of this shape; the message starts with `name`.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value if value.dtype == torch.float32 else value.double()).numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must have shape (items, dimensions), both at least 1, got {array.shape}")
    points: Reals = np.ascontiguousarray(array) if array.dtype == np.float32 else np.ascontiguousarray(array, float)
    for rows in split_rows(np.arange(len(points)), points.shape[1]):
        finite = np.isfinite(points[rows[0] : rows[-1] + 1]).all(axis=1)
        if not finite.all():
            raise ValueError(f"{name} must be finite, but row {rows[~finite][0]} holds NaN or Inf")
    return points


def split_rows(rows: Ints, width: int) -> Iterator[Ints]:
    """Split `rows` into chunks of at most CHUNK / `width` rows, but at least one row."""
    step = max(1, CHUNK // max(1, width))
    return (rows[start : start + step] for start in range(0, len(rows), step))


class NeighbourSearch:
    """Exact search for queries (Q, D) in a gallery (N, D), prepared once for several calls of `ranked`."""

    def __init__(
        self, queries: ArrayLike | torch.Tensor, gallery: ArrayLike | torch.Tensor | None = None, *, exclude_self: bool
    ) -> None:
        self.queries = as_matrix("queries", queries)
        self.gallery = self.queries if gallery is None else as_matrix("gallery", gallery)
        if self.gallery.shape[1] != self.queries.shape[1]:
            raise ValueError(
                f"gallery must have the {self.queries.shape[1]} dimensions of queries, got {self.gallery.shape[1]}"
            )
        if exclude_self and len(self.gallery) != len(self.queries):
            raise ValueError(
                f"exclude_self needs query i to be gallery item i, got {len(self.queries)} queries and "
                f"{len(self.gallery)} gallery items"
            )
        self.exclude_self = exclude_self
        self.available = len(self.gallery) - exclude_self
        self._prepare(alone=gallery is None)

    def _prepare(self, alone: bool) -> None:
        """Prepare the candidate search on float32 copies of queries and gallery, which are scaled and centred.

        Scaling by a power of two is exact and prevents overflow. The data are processed in chunks, so that no second
        copy in double precision is ever held. `alone` is True if the queries are the gallery.
        """
        sides = (self.gallery,) if alone else (self.gallery, self.queries)
        self.exponent = max(exponent_of(side) for side in sides)
        centre = sum(part.sum(axis=0) for _, part in self._parts(self.gallery)) / len(self.gallery)
        self._centre = centre
        self._shrink = -max(exponent_of(part - centre) for side in sides for _, part in self._parts(side))
        near, norms = self._rounded(self.gallery, centre)
        self._longest = float(norms.max())
        self._queries32, self._norms = (near, norms) if alone else self._rounded(self.queries, centre)
        self._index = faiss.IndexFlatL2(near.shape[1])
        self._index.add(near)

    def _parts(self, side: Reals) -> Iterator[tuple[Ints, Floats]]:
        """Yield the queries or the gallery in chunks: row indices, and points divided by 2**exponent."""
        for rows in split_rows(np.arange(len(side)), side.shape[1]):
            yield rows, self._units(side, rows)

    def _units(self, side: Reals, rows: Ints) -> Floats:
        return _scaled(side[rows], -self.exponent)

    def _rounded(self, side: Reals, centre: Floats) -> tuple[Singles, Floats]:
        """Return centred and scaled points in float32, and their norms computed before rounding."""
        near, norms = np.empty(side.shape, np.float32), np.empty(len(side))
        for rows, part in self._parts(side):
            part = _scaled(part - centre, self._shrink)
            near[rows], norms[rows] = part, np.linalg.norm(part, axis=1)
        return near, norms

    def ranked(self, rows: Ints, k: int, mark: Mark | None = None) -> Ints:
        """Return gallery indices (n, k) of the items nearest to the queries at `rows`.

        They are in the order that the docstring of this module guarantees.

        Args:
            rows: Row indices of the queries, shape (n,).
            k: Number of neighbours.
            mark: Function that maps query rows (n,) and gallery indices (n, m) to marks (n, m), such as class labels.
                If given, only the marks of the result are in the guaranteed order: candidates with equal marks that the
                error bound does not separate are not ranked again, which saves most of the exact distances.
        """
        listed = min(k + SPARE + k // CROWD + self.exclude_self, len(self.gallery))
        squares, indices = self._candidates(rows, listed)
        # faiss is efficient with many queries at a time; the steps after it need several times the memory of its
        # result.
        for part in split_rows(np.arange(len(rows)), PARTS * listed):
            chosen = slice(part[0], part[-1] + 1)
            indices[chosen, :k] = self._proven(rows[chosen], squares[chosen], indices[chosen], k, mark)
        return indices[:, :k]

    def _proven(self, rows: Ints, squares: Singles, indices: Ints, k: int, mark: Mark | None) -> Ints:
        """Return the exact neighbours (n, k) of the queries at `rows` (n,), given float32 candidates (n, listed)."""
        listed = indices.shape[1]
        if self.exclude_self:
            squares, indices = _without(rows, squares, indices)
        margin = above(2 * error_bound(self._norms[rows], squares[:, -1], self._longest, self.queries.shape[1]))
        proven: Bools = squares[:, -1] - squares[:, k - 1] > margin
        if listed == len(self.gallery):
            proven[:] = True
        apart: Bools = np.diff(squares, axis=1) > margin[:, None]
        apart[:, k:] |= squares[:, k:-1] - squares[:, [k - 1]] > margin[:, None]  # items that cannot precede the k-th
        self._rank_close(rows, indices, apart | ~proven[:, None], mark)
        for part in split_rows(np.flatnonzero(~proven), len(self.gallery)):
            indices[part, :k] = self._ranked_in_double(rows[part], k)
        return indices[:, :k]

    def _candidates(self, rows: Ints, listed: int) -> tuple[Singles, Ints]:
        """Return the float32 squared distances, ascending, and the gallery indices of candidates, both (n, listed)."""
        with tuned_faiss():
            squares, indices = self._index.search(self._queries32[rows], listed)
        return squares, indices

    def _rank_close(self, rows: Ints, indices: Ints, apart: Bools, mark: Mark | None) -> None:
        """Sort in place by (d, index) the candidates that the error bound does not separate and whose marks differ."""
        matters = ~apart
        if mark is not None:
            marks = mark(rows, indices)
            matters &= marks[:, 1:] != marks[:, :-1]
        starts = np.ones(indices.shape, bool)
        starts[:, 1:] = apart
        run = np.cumsum(starts, dtype=np.int32).reshape(indices.shape)
        chosen = np.zeros(run[-1, -1] + 1, bool)
        chosen[run[:, 1:][matters]] = True
        row, place = np.nonzero(chosen[run])
        index = indices[row, place]
        order = np.lexsort((index, self.distances(rows[row], index[:, None])[:, 0], run[row, place]))
        indices[row, place] = index[order]

    def _ranked_in_double(self, rows: Ints, k: int) -> Ints:
        """Return the neighbours (n, k) of the queries at `rows` (n,), from a table of distances to the whole gallery.

        The expanded form in float64 leaves few candidates, which are sorted by their exact distances; with many ties,
        all exact distances are sorted. The margin of twice the error bound is doubled for the rounding of the exact
        distances.
        """
        asking = torch.from_numpy(_scaled(self._units(self.queries, rows) - self._centre, self._shrink))
        lengths = asking.square().sum(1)
        tables = []
        for _, part in self._parts(self.gallery):
            points = torch.from_numpy(_scaled(part - self._centre, self._shrink))
            tables.append(torch.addmm(lengths[:, None] + points.square().sum(1), asking, points.mT, alpha=-2))
        table = torch.cat(tables, 1)
        if self.exclude_self:
            table[torch.arange(len(rows)), torch.from_numpy(rows)] = torch.inf
        last = table.kthvalue(k, 1).values.clamp(min=0)
        bound = error_bound(self._norms[rows], last.numpy(), self._longest, self.queries.shape[1], 2.0**-53)
        near = (table <= (last + torch.from_numpy(4 * bound))[:, None]).numpy()
        if near.mean() > MOST_NEAR:
            return self._ranked_directly(rows, k)
        query, index = np.nonzero(near)
        order = np.lexsort((index, self.distances(rows[query], index[:, None])[:, 0], query))
        starts = np.searchsorted(query, np.arange(len(rows)))
        indices: Ints = index[order][starts[:, None] + np.arange(k)]
        return indices

    def _ranked_directly(self, rows: Ints, k: int) -> Ints:
        """Return the neighbours (n, k) of the queries at `rows` (n,) by a stable sort of all exact distances."""
        queries = torch.from_numpy(self._units(self.queries, rows))
        parts = [direct_distances(queries, torch.from_numpy(points)) for _, points in self._parts(self.gallery)]
        distances = torch.cat(parts, dim=1)
        if self.exclude_self:
            distances[torch.arange(len(rows)), torch.from_numpy(rows)] = torch.inf
        indices: Ints = torch.sort(distances, dim=1, stable=True).indices[:, :k].numpy()
        return indices

    def distances(self, rows: Ints, indices: Ints) -> Floats:
        """Compute distances (n, k) from queries `rows` (n,) to gallery `indices` (n, k), in units of 2**exponent."""
        out = np.empty(indices.shape)
        for part in split_rows(np.arange(len(rows)), indices.shape[1] * self.gallery.shape[1]):
            pairs = torch.from_numpy(self._units(self.gallery, indices[part]))
            queries = torch.from_numpy(self._units(self.queries, rows[part]))
            out[part] = direct_distances(queries[:, None], pairs)[:, 0].numpy()
        return out


@contextmanager
def tuned_faiss() -> Iterator[None]:
    """Set faiss options that change the speed of a search but not its results.

    A search for 66 queries among 5,924 points takes 163 instead of 208 ms. The options are global. Concurrent threads
    may reset each other's options, which only costs time.
    """
    settings = faiss.cvar
    before = settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs
    settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs = RESERVOIR, QUERIES
    try:
        yield
    finally:
        settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs = before


def direct_distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute Euclidean distances d (..., n, m) between x (..., n, D) and y (..., m, D) from differences.

    The expanded form |x|^2 + |y|^2 - 2 x.y would suffer from cancellation far from the origin.
    """
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def error_bound(norms: Floats, last: Reals, longest: float, dimensions: int, unit: float = 2.0**-24) -> Floats:
    """Return a bound (n,) on the error |computed - true| of the squared distances of each query, by default in float32.

    The bound holds for every listed item, and for every unlisted item that could be nearer than a listed one.

    With u = 2**-24 for float32, a sum of D products in any order errs by at most about D u times the sum of magnitudes
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), here (|q| + |g|)^2; rounding the inputs to
    float32 costs 2 u of it and the final additions 3 u. So |error| <= c (|q| + |g|)^2 with c = (D + 16) u. No |g|
    exceeds `longest`. An item whose computed square is at most r^2, the last one listed, has |g| <= |q| + d and d <= r
    + sqrt(c) (2 |q| + d), whence |q| + |g| <= (2 |q| + r) / (1 - sqrt(c)). An unlisted item has a computed square of at
    least r^2, so its true square is at least r^2 less the bound. The constant term covers underflow.

    Args:
        norms: Lengths |q| of the queries, shape (n,).
        last: Computed squared distance r^2 of the last item listed for each query, shape (n,).
        longest: Largest length |g| of a gallery item.
        dimensions: Number of dimensions D.
        unit: Unit roundoff u of the computation.
    """
    c = (dimensions + 16) * unit
    reach: Floats = np.minimum(norms + longest, (2 * norms + np.sqrt(last.astype(np.float64))) / (1 - np.sqrt(c)))
    return c * reach**2 + dimensions * 2.0**-120


def above(values: Floats) -> Singles:
    """Round values up to float32, by enough to cover the rounding of a float32 difference as well."""
    return np.nextafter((values * (1 + 2.0**-22)).astype(np.float32), np.float32(np.inf))


def _scaled(points: Reals, exponent: int) -> Floats:
    """Return points times 2**exponent in float64. Multiplication rounds as np.ldexp does, and is faster."""
    if abs(exponent) > 1000:  # the power of two itself may overflow
        scaled: Floats = np.ldexp(points.astype(np.float64), exponent)
        return scaled
    return np.multiply(points, 2.0**exponent, dtype=np.float64)


def as_single(points: Array) -> Singles:
    """Return points as a contiguous float32 array, without a copy if they are one."""
    return np.ascontiguousarray(points, np.float32)


def exponent_of(points: Reals) -> int:
    """Return the exponent of the smallest power of two that exceeds the magnitudes of all coordinates."""
    return int(np.frexp(max(float(points.max()), -float(points.min())))[1])


def _without(rows: Ints, squares: Singles, indices: Ints) -> tuple[Singles, Ints]:
    """Drop each query's own index from its candidates, or the last candidate if its own index is not listed.

    If a query is not among its own candidates, they are all within the error bound of distance 0. No gap is then found,
    and the exact search follows.
    """
    own = indices == rows[:, None]
    if own[:, 0].all():
        return squares[:, 1:], indices[:, 1:]
    own[~own.any(axis=1), -1] = True
    shape = (len(rows), indices.shape[1] - 1)
    return squares[~own].reshape(shape), indices[~own].reshape(shape)
