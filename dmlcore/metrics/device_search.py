"""Exact nearest-neighbour search on an accelerator, by the method of `nearest_neighbours`.

The float32 distances are computed by a matrix product. The error bound holds for any order of summation, as long as
nothing is rounded to TF32. Candidates that the bound does not separate are ranked by their exact distance d in float64
on the device. There d is computed from differences too, but summed in another order than on the CPU. Points whose d
differ only in the last digit may therefore swap places between two machines; points with equal coordinates never do.
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
)
from dmlcore.typing import Ints, Reals, Singles

NUMBERS = 2**26  # maximum number of elements in a temporary tensor, which then takes 512 MB in float64


class DeviceSearch(NeighbourSearch):
    """Exact search for queries (Q, D) in a gallery (N, D), both on the device.

    All candidates are ranked exactly; the argument `mark` of `ranked`, which permits a partial ranking, is ignored.
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

    def _list(self, near: Singles) -> None:
        alone = self._queries32 is near
        self._near = torch.from_numpy(near).to(self.device)
        self._near_queries = self._near if alone else torch.from_numpy(self._queries32).to(self.device)
        self._squares, self._query_squares = (x.square().sum(1) for x in (self._near, self._near_queries))
        self._points = self._there(self.gallery)
        self._query_points = self._points if alone else self._there(self.queries)

    def _there(self, side: Reals) -> Tensor:
        return torch.from_numpy(side).to(self.device)

    @torch.inference_mode()
    def ranked(self, rows: Ints, k: int, mark: Mark | None = None) -> Ints:
        """Return gallery indices (n, k) of the items nearest to the queries at `rows` (n,).

        The indices are sorted by (distance, index).
        """
        listed = min(k + SPARE + k // CROWD, self.available)
        step = max(1, NUMBERS // max(len(self.gallery), listed * self.gallery.shape[1]))
        with _whole_products():
            parts = [self._part(rows[at : at + step], k, listed) for at in range(0, len(rows), step)]
        return np.concatenate([part.cpu().numpy() for part in parts]) if parts else np.empty((0, k), np.int64)

    def _part(self, rows: Ints, k: int, listed: int) -> Tensor:
        at = torch.from_numpy(rows).to(self.device)
        table = torch.addmm(self._squares[None], self._near_queries[at], self._near.T, alpha=-2)
        table += self._query_squares[at, None]
        if self.exclude_self:
            table.scatter_(1, at[:, None], torch.inf)
        squares, indices = table.topk(listed, largest=False)
        del table
        last = squares[:, -1].clamp(min=0).cpu().numpy()
        bound = error_bound(self._norms[rows], last, self._longest, self.gallery.shape[1])
        gaps = squares.diff(dim=1)[:, k - 1 :]
        proven = (gaps > torch.from_numpy(above(2 * bound)).to(self.device)[:, None]).any(1)
        indices = self._by_distance(at, indices.sort(1).values)[:, :k]
        if listed < self.available and len(open_ := (~proven).nonzero()[:, 0]):
            for few in open_.split(max(1, NUMBERS // (4 * len(self.gallery)))):
                indices[few] = self._by_definition(at[few], k)
        return indices

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
        half = -self.exponent // 2  # the power of two is applied as two factors, because the power itself may overflow
        return points.double().mul_(2.0**half).mul_(2.0 ** (-self.exponent - half))


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
