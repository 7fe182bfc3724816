"""Exact Euclidean nearest neighbours at the speed of a float32 search.

Guarantee: every returned row is the start of the gallery sorted by (d, index), where d = |q - g| is the direct form
sqrt(sum (q - g)^2) evaluated in float64 on the numbers as given. Ties in d go to the lower index, also at the k-th
place. No answer depends on float32 rounding, on the offset of the data or on the number of threads.

How: a few more candidates than asked for are listed, among many points by faiss, in float32 and by the expanded form
|q|^2 + |g|^2 - 2 q.g. Its rounding error has a proven bound (`error_bound`). Candidates further apart than twice the
bound are in their true order; closer ones are ranked again by d. If no such gap lies between the k-th and the last
candidate, then an unlisted point could belong to the answer, and the query is compared with the whole gallery by d.
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

SPARE = 4  # candidates beyond k: nearly always enough for one provable gap
CROWD = 32  # one more for each so many of k: gaps are narrow far down a list
FEW = 2048  # points of a gallery up to which a table of all distances takes a third to two thirds of faiss's time
TABLE = 2**18  # its numbers at once, which stay in the cache
RESERVOIR = 40  # neighbours from which faiss gathers candidates and sorts late, in place of a heap (its own: 100)
QUERIES = 1024  # in a tile of its table of distances, which then stays in the cache (its own: 4096)
PARTS = 8  # of a chunk, in which its candidates are ranked
CHUNK = 2**21  # numbers held at once by one temporary array; half as many rows would be a third as fast in faiss


def nearest(
    queries: ArrayLike | torch.Tensor,
    gallery: ArrayLike | torch.Tensor | None = None,
    k: int = 8,
    *,
    exclude_self: bool | None = None,
) -> tuple[Floats, Ints]:
    """Return the distances and gallery indices of the `k` nearest gallery items of each query, exactly.

    Without a gallery the queries are their own gallery. `exclude_self` (default: only without a gallery) drops item i
    from the list of query i, by index and not by distance, so copies of a query stay.

    Shapes: queries (Q, D), gallery (N, D) -> two (Q, k), distances float64 ascending, ties by index.
    Raises: ValueError or TypeError naming the input.

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
    indices = np.concatenate([search.ranked(part, int(k)) for part in chunks(rows, int(k) + SPARE)])
    return np.ldexp(search.distances(rows, indices), search.exponent), indices


def matrix(name: str, value: ArrayLike | torch.Tensor) -> Reals:
    """Return `value` as a finite (N, D) array, float32 where it has no more digits, else float64.

    Raises ValueError or TypeError naming it.
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
    for rows in chunks(np.arange(len(points)), points.shape[1]):
        finite = np.isfinite(points[rows[0] : rows[-1] + 1]).all(axis=1)
        if not finite.all():
            raise ValueError(f"{name} must be finite, but row {rows[~finite][0]} holds NaN or Inf")
    return points


def chunks(rows: Ints, width: int) -> Iterator[Ints]:
    """Cut `rows` into parts so that (rows of a part) x `width` numbers stay within CHUNK."""
    step = max(1, CHUNK // max(1, width))
    return (rows[start : start + step] for start in range(0, len(rows), step))


class NeighbourSearch:
    """Queries (Q, D) against a gallery (N, D), prepared once; `ranked` answers for some of the queries."""

    def __init__(
        self, queries: ArrayLike | torch.Tensor, gallery: ArrayLike | torch.Tensor | None = None, *, exclude_self: bool
    ) -> None:
        self.queries = matrix("queries", queries)
        self.gallery = self.queries if gallery is None else matrix("gallery", gallery)
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
        """Scale by a power of two, which is exact and rules out overflow; centre and round to float32 for faiss.

        Part by part, so that no second copy in double precision is ever held.
        """
        sides = (self.gallery,) if alone else (self.gallery, self.queries)
        self.exponent = max(_exponent(side) for side in sides)
        centre = sum(part.sum(axis=0) for _, part in self._parts(self.gallery)) / len(self.gallery)
        self._shrink = -max(_exponent(part - centre) for side in sides for _, part in self._parts(side))
        near, norms = self._rounded(self.gallery, centre)
        self._longest = float(norms.max())
        self._queries32, self._norms = (near, norms) if alone else self._rounded(self.queries, centre)
        self._list(near)

    def _list(self, near: Singles) -> None:
        """Prepare what lists candidates, of the gallery as it was rounded."""
        self._few = near if len(near) <= FEW else None
        if self._few is None:
            self._index = faiss.IndexFlatL2(near.shape[1])
            self._index.add(near)

    def _parts(self, side: Reals) -> Iterator[tuple[Ints, Floats]]:
        """Rows and their points in units of 2**exponent."""
        for rows in chunks(np.arange(len(side)), side.shape[1]):
            yield rows, self._units(side, rows)

    def _units(self, side: Reals, rows: Ints) -> Floats:
        return _scaled(side[rows], -self.exponent)

    def _rounded(self, side: Reals, centre: Floats) -> tuple[Singles, Floats]:
        """Centred and shrunk points for faiss, and their lengths before the rounding."""
        near, norms = np.empty(side.shape, np.float32), np.empty(len(side))
        for rows, part in self._parts(side):
            part = _scaled(part - centre, self._shrink)
            near[rows], norms[rows] = part, np.linalg.norm(part, axis=1)
        return near, norms

    def ranked(self, rows: Ints, k: int, mark: Mark | None = None) -> Ints:
        """Return the (len(rows), k) indices of the nearest items of the queries `rows`, in the guaranteed order.

        With `mark`, a function of rows (n,) and indices (n, m) -> (n, m), only the marks of the answer are guaranteed:
        items of one mark that the bound cannot tell apart stay as they come, which spares most of the second ranking.
        """
        listed = min(k + SPARE + k // CROWD + self.exclude_self, len(self.gallery))
        squares, indices = self._candidates(rows, listed)
        # faiss wants many queries at once, what follows needs a few times the memory of its answer.
        for part in chunks(np.arange(len(rows)), PARTS * listed):
            chosen = slice(part[0], part[-1] + 1)
            indices[chosen, :k] = self._proven(rows[chosen], squares[chosen], indices[chosen], k, mark)
        return indices[:, :k]

    def _proven(self, rows: Ints, squares: Singles, indices: Ints, k: int, mark: Mark | None) -> Ints:
        """The guaranteed (n, k) from the candidates (n, listed) of some queries."""
        everything = indices.shape[1] == len(self.gallery)
        if self.exclude_self:
            squares, indices = _without(rows, squares, indices)
        bound = error_bound(self._norms[rows], squares[:, -1], self._longest, self.queries.shape[1])
        apart: Bools = np.diff(squares, axis=1) > above(2 * bound)[:, None]
        proven: Bools = np.count_nonzero(apart[:, k - 1 :], axis=1) > 0
        if everything:
            proven[:] = True
        self._rank_close(rows, indices, apart | ~proven[:, None], mark)
        unproven = np.flatnonzero(~proven)
        for part in chunks(unproven, len(self.gallery)):
            indices[part, :k] = self._ranked_directly(rows[part], k)
        return indices[:, :k]

    def _candidates(self, rows: Ints, listed: int) -> tuple[Singles, Ints]:
        """Squares of distances and indices (n, listed) of what is nearest in float32, ascending."""
        if self._few is not None:
            return _nearest_of_few(self._queries32, self._few, rows, listed)
        with faiss_at_its_best():
            squares, indices = self._index.search(self._queries32[rows], listed)
        return squares, indices

    def _rank_close(self, rows: Ints, indices: Ints, apart: Bools, mark: Mark | None) -> None:
        """Sort in place, by (d, index), the runs of candidates that the bound cannot tell apart (and marks can)."""
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

    def _ranked_directly(self, rows: Ints, k: int) -> Ints:
        """The guaranteed order by its definition: all distances, a stable sort."""
        queries = torch.from_numpy(self._units(self.queries, rows))
        parts = [direct_distances(queries, torch.from_numpy(points)) for _, points in self._parts(self.gallery)]
        distances = torch.cat(parts, dim=1)
        if self.exclude_self:
            distances[torch.arange(len(rows)), torch.from_numpy(rows)] = torch.inf
        indices: Ints = torch.sort(distances, dim=1, stable=True).indices[:, :k].numpy()
        return indices

    def distances(self, rows: Ints, indices: Ints) -> Floats:
        """The d of queries `rows` (n,) and gallery `indices` (n, k) -> (n, k), in units of 2**exponent."""
        out = np.empty(indices.shape)
        for part in chunks(np.arange(len(rows)), indices.shape[1] * self.gallery.shape[1]):
            pairs = torch.from_numpy(self._units(self.gallery, indices[part]))
            queries = torch.from_numpy(self._units(self.queries, rows[part]))
            out[part] = direct_distances(queries[:, None], pairs)[:, 0].numpy()
        return out


def _nearest_of_few(queries: Singles, gallery: Singles, rows: Ints, listed: int) -> tuple[Singles, Ints]:
    """The candidates of a table of all distances, some rows at a time."""
    squares, indices = np.empty((len(rows), listed), np.float32), np.empty((len(rows), listed), np.int64)
    lengths = np.square(gallery).sum(axis=1)
    step = max(1, TABLE // len(gallery))
    for part in (slice(start, start + step) for start in range(0, len(rows), step)):
        asking = queries[rows[part]]
        table = asking @ gallery.T
        table *= -2
        table += lengths
        table += np.square(asking).sum(axis=1)[:, None]
        chosen = np.argpartition(table, listed - 1, axis=1)[:, :listed]
        near = np.maximum(np.take_along_axis(table, chosen, axis=1), 0)  # rounding may leave less than no distance
        order = np.argsort(near, axis=1)
        squares[part] = np.take_along_axis(near, order, axis=1)
        indices[part] = np.take_along_axis(chosen, order, axis=1)
    return squares, indices


@contextmanager
def faiss_at_its_best() -> Iterator[None]:
    """Settings of faiss that change no answer: a search of 66 among 5,924 takes 163 instead of 208 ms.

    They are the process's; threads that search at once may put back each other's, which costs time alone.
    """
    settings = faiss.cvar
    before = settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs
    settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs = RESERVOIR, QUERIES
    try:
        yield
    finally:
        settings.distance_compute_min_k_reservoir, settings.distance_compute_blas_query_bs = before


def direct_distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """d between all x (..., n, D) and y (..., m, D) without the expanded form, which cancels far from the origin."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def error_bound(norms: Floats, last: Singles, longest: float, dimensions: int) -> Floats:
    """Bound |computed - true| squared distance for every listed item, and for every unlisted item that matters.

    With u = 2**-24, a sum of D products in any order errs by at most about D u times the sum of magnitudes (Higham,
    Accuracy and Stability of Numerical Algorithms, section 3.1), here (|q| + |g|)^2; rounding the inputs to float32
    costs 2 u of it and the final additions 3 u. So |error| <= c (|q| + |g|)^2 with c = (D + 16) u. No |g| exceeds the
    `longest`; and an item whose computed square is at most r^2, the last one listed, has |g| <= |q| + d and
    d <= r + sqrt(c) (2 |q| + d), whence |q| + |g| <= (2 |q| + r) / (1 - sqrt(c)). An unlisted item has a computed
    square of at least r^2, so its true square is at least r^2 less the bound. The constant covers underflow.
    """
    c = (dimensions + 16) * 2.0**-24
    reach: Floats = np.minimum(norms + longest, (2 * norms + np.sqrt(last.astype(np.float64))) / (1 - np.sqrt(c)))
    return c * reach**2 + dimensions * 2.0**-120


def above(values: Floats) -> Singles:
    """Float32 numbers above these, by enough for the rounding of a float32 difference that is compared with them."""
    return np.nextafter((values * (1 + 2.0**-22)).astype(np.float32), np.float32(np.inf))


def _scaled(points: Reals, exponent: int) -> Floats:
    """Points times 2**exponent, float64: a product with a power of two rounds as np.ldexp does, and is faster."""
    if abs(exponent) > 1000:  # the power itself may overflow
        scaled: Floats = np.ldexp(points.astype(np.float64), exponent)
        return scaled
    return np.multiply(points, 2.0**exponent, dtype=np.float64)


def _exponent(points: Reals) -> int:
    """The power of two just above every magnitude."""
    return int(np.frexp(max(float(points.max()), -float(points.min())))[1])


def _without(rows: Ints, squares: Singles, indices: Ints) -> tuple[Singles, Ints]:
    """Drop each query's own index, or the last candidate where it is not listed.

    An unlisted self needs no mark: its true square is 0, so all that is listed lies within one bound and no gap shows.
    """
    own = indices == rows[:, None]
    if own[:, 0].all():
        return squares[:, 1:], indices[:, 1:]
    own[~own.any(axis=1), -1] = True
    shape = (len(rows), indices.shape[1] - 1)
    return squares[~own].reshape(shape), indices[~own].reshape(shape)
