"""Exact nearest-neighbour search on an accelerator, by the method of `nearest_neighbours`.

Distances are computed by a matrix product, tile by tile, and `topk` keeps the candidates of a tile. The error bound
holds for any order of summation, as long as nothing is rounded to TF32. Products are in float32 at first. Far down a
list, distances are too close for float32 to prove which items belong to it; such queries are listed again in float64,
which leaves almost nothing open. Candidates that the bound does not separate are ranked by their exact distance d in
float64 on the device. There d is computed from differences too, but summed in another order than on the CPU. Points
whose d differ only in the last digit may therefore swap places between two machines; points with equal coordinates
never do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from dmlcore.metrics.nearest_neighbours import (
    CROWD,
    SPARE,
    Mark,
    NeighbourSearch,
    above,
    direct_distances,
    error_bound,
    exponent_of,
)
from dmlcore.typing import Ints, Reals

NUMBERS = 2**26  # maximum number of elements in a temporary tensor, which then takes 512 MB in float64


class DeviceSearch(NeighbourSearch):
    """Exact search for queries (Q, D) in a gallery (N, D), both on the device.

    All results are ranked exactly; the argument `mark` of `ranked`, which permits a partial ranking, is ignored.
    """

    def __init__(
        self,
        queries: ArrayLike | Tensor,
        gallery: ArrayLike | Tensor | None = None,
        *,
        exclude_self: bool,
        device: torch.device,
    ) -> None:
        self.device = device
        super().__init__(queries, gallery, exclude_self=exclude_self)

    def _prepare(self, alone: bool) -> None:
        """Scale, centre and round queries and gallery as on the CPU, but on the device."""
        self._points = self._there(self.gallery)
        self._query_points = self._points if alone else self._there(self.queries)
        sides = (self._points,) if alone else (self._points, self._query_points)
        self.exponent = max(exponent_of(side) for side in (self.gallery, self.queries)[: len(sides)])
        self._middle = sum(part.sum(0) for part in self._units_of(self._points)) / len(self._points)
        farthest = max(float((part - self._middle).abs().max()) for side in sides for part in self._units_of(side))
        self._shrink = -int(np.frexp(farthest)[1])
        near, norms = self._rounded_there(self._points)
        asking, lengths = (near, norms) if alone else self._rounded_there(self._query_points)
        self._longest, self._norms = float(norms.max()), lengths.cpu().numpy()
        self._single = _Sides(near, asking, 2.0**-24)
        self._double: _Sides | None = None  # made when the first tile needs it
        self._double_first = False  # True once float32 has left most queries of a tile open

    def _units_of(self, points: Tensor) -> Iterator[Tensor]:
        """Yield chunks of points divided by 2**exponent, in float64."""
        return (self._scaled(part) for part in points.split(max(1, NUMBERS // points.shape[1])))

    def _rounded_there(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return centred and scaled points in float32, and their norms computed before rounding."""
        near, norms = [], []
        for part in self._units_of(points):
            _times_power_of_two(part.sub_(self._middle), self._shrink)
            near.append(part.float())
            norms.append(torch.linalg.vector_norm(part, dim=1))
        return torch.cat(near), torch.cat(norms)

    def _there(self, side: Reals) -> Tensor:
        return torch.from_numpy(side).to(self.device)

    @torch.inference_mode()
    def ranked(self, rows: Ints, k: int, mark: Mark | None = None) -> Ints:
        """Return gallery indices (n, k) of the items nearest to the queries at `rows` (n,).

        The indices are sorted by (distance, index).
        """
        listed = min(k + SPARE + k // CROWD, self.available)
        step = max(1, NUMBERS // len(self.gallery))
        with _whole_products():
            parts = [self._tile(rows[at : at + step], k, listed) for at in range(0, len(rows), step)]
        return np.concatenate([part.cpu().numpy() for part in parts]) if parts else np.empty((0, k), np.int64)

    def _tile(self, rows: Ints, k: int, listed: int) -> Tensor:
        """Return the neighbours (n, k) of the queries at `rows` (n,): listed in float32, then in float64, then all."""
        ranking = torch.empty(len(rows), k, dtype=torch.int64, device=self.device)
        left = torch.arange(len(rows), device=self.device)
        for double in (True,) if self._double_first else (False, True):
            open_ = self._from_candidates(rows, k, listed, ranking, left, double=double)
            self._double_first |= not double and 2 * len(open_) > len(rows)
            left = left[open_]
            if not len(left):
                return ranking
            rows = rows[open_.cpu().numpy()]
        at = torch.from_numpy(rows).to(self.device)
        for few in torch.arange(len(at), device=self.device).split(max(1, NUMBERS // (4 * len(self.gallery)))):
            ranking[left[few]] = self._by_definition(at[few], k)
        return ranking

    def _from_candidates(
        self, rows: Ints, k: int, listed: int, ranking: Tensor, places: Tensor, *, double: bool
    ) -> Tensor:
        """Write the neighbours that candidates prove to `ranking[places]`; return which rows (m,) remain open.

        Args:
            rows: Rows of the queries, shape (n,).
            k: Number of neighbours.
            listed: Number of candidates.
            ranking: Neighbours (N, k) of all queries of the tile.
            places: Row of `ranking` for each query, shape (n,).
            double: List in float64; otherwise in float32.
        """
        if double and self._double is None:
            alone = self._query_points is self._points
            gallery = self._centred(self._points)
            self._double = _Sides(gallery, gallery if alone else self._centred(self._query_points), 2.0**-53)
        sides = self._double if double and self._double is not None else self._single
        at = torch.from_numpy(rows).to(self.device)
        table = sides.squares(at)
        if self.exclude_self:
            table.scatter_(1, at[:, None], torch.inf)
        squares, indices = table.topk(listed, largest=False)
        del table
        last = squares[:, -1].clamp(min=0).cpu().numpy()
        bound = error_bound(self._norms[rows], last, self._longest, self.gallery.shape[1], sides.unit)
        # In float64 the margin is doubled for the rounding of the exact distances, which float32 bounds exceed by far.
        margin = torch.from_numpy(4 * bound if double else above(2 * bound).astype(np.float64)).to(self.device)
        apart = squares.diff(dim=1) > margin[:, None]
        proven = (squares[:, -1] - squares[:, k - 1] > margin) | (listed == self.available)
        close = proven & ~apart[:, :k].all(1) if double else proven
        ranking[places[proven & ~close]] = indices[proven & ~close, :k]
        for few in close.nonzero()[:, 0].split(max(1, NUMBERS // (listed * self.gallery.shape[1]))):
            ranking[places[few]] = self._by_distance(at[few], indices[few].sort(1).values)[:, :k]
        return (~proven).nonzero()[:, 0]

    def _by_distance(self, at: Tensor, indices: Tensor) -> Tensor:
        """Sort the gallery indices of each query by exact distance.

        Args:
            at: Indices of the queries, shape (n,).
            indices: Gallery indices, shape (n, m), ascending in each row, so that equal distances keep the lower index
                first.
        """
        pairs, queries = self._scaled(self._points[indices]), self._scaled(self._query_points[at])
        d = direct_distances(queries[:, None], pairs)[:, 0]
        return indices.gather(1, d.sort(dim=1, stable=True).indices)

    def _by_definition(self, at: Tensor, k: int) -> Tensor:
        """Return the k nearest gallery indices (n, k) of the queries `at` (n,), by sorting all exact distances."""
        d = direct_distances(self._scaled(self._query_points[at]), self._scaled(self._points))
        if self.exclude_self:
            d.scatter_(1, at[:, None], torch.inf)
        return d.sort(dim=1, stable=True).indices[:, :k]

    def _scaled(self, points: Tensor) -> Tensor:
        return _times_power_of_two(points.to(torch.float64, copy=True), -self.exponent)

    def _centred(self, points: Tensor) -> Tensor:
        """Return points as the float32 copies have them, scaled and centred, but in float64."""
        return _times_power_of_two(self._scaled(points).sub_(self._middle), self._shrink)


class _Sides:
    """Gallery (N, D) and queries (Q, D) in one precision, for squared distances by matrix products.

    `unit` is the unit roundoff of the precision.
    """

    def __init__(self, gallery: Tensor, queries: Tensor, unit: float) -> None:
        self.gallery, self.queries, self.unit = gallery, queries, unit
        self._lengths = gallery.square().sum(1)
        self._query_lengths = self._lengths if queries is gallery else queries.square().sum(1)

    def squares(self, at: Tensor) -> Tensor:
        """Return the squared distances (n, N) of the queries at `at` (n,); rounding can make them negative."""
        table = torch.addmm(self._lengths[None], self.queries[at], self.gallery.T, alpha=-2)
        return table.add_(self._query_lengths[at, None])


def _times_power_of_two(points: Tensor, exponent: int) -> Tensor:
    half = exponent // 2  # the power of two is applied as two factors, because the power itself may overflow
    return points.mul_(2.0**half).mul_(2.0 ** (exponent - half))


def search(
    queries: ArrayLike | Tensor,
    gallery: ArrayLike | Tensor | None = None,
    *,
    exclude_self: bool,
    device: torch.device | None = None,
) -> NeighbourSearch:
    """Create a search for queries (Q, D) in a gallery (N, D) on `device`, or on the CPU if `device` is None."""
    if device is None or device.type == "cpu":
        return NeighbourSearch(queries, gallery, exclude_self=exclude_self)
    return DeviceSearch(queries, gallery, exclude_self=exclude_self, device=device)


@contextmanager
def _whole_products() -> Iterator[None]:
    """Disable TF32 in products of float32 matrices."""
    settings = torch.backends.cuda.matmul
    before, settings.allow_tf32 = settings.allow_tf32, False
    try:
        yield
    finally:
        settings.allow_tf32 = before
