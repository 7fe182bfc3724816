"""Generalized max pooling (GeMax)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.pooling.base import Pooling, pooling


def solve_by_cholesky(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve positive definite systems (B, n, n) with right-hand sides (B, n, k); NaN if a matrix is not definite."""
    # unlike cholesky, do not raise: a diverged training run should give NaN
    factor, _ = torch.linalg.cholesky_ex(matrix)
    return torch.cholesky_solve(right, factor)


@pooling(
    "gemax",
    title="Generalized maximum (GeMax)",
    latex=r"g=F\,(F^\top F+\lambda I)^{-1}\mathbf 1",
    source="Murray, Jégou, Perronnin & Zisserman, TPAMI 2017",
)
class GeneralizedMaxPooling(Pooling):
    """Ridge solution g of f_j . g = 1 for all positions j, in which rare features count as much as frequent ones.

    The solution satisfies (F F' + lambda I) g = F 1. Either this C x C system or the equivalent n x n system is
    factorised by Cholesky in float64, whichever is smaller; lambda is at least the rounding error of the Gram matrix.
    `weights` is None, because coefficients may be negative.
    """

    solve: Callable[[Tensor, Tensor], Tensor] = staticmethod(solve_by_cholesky)  # replaced for export

    def __init__(
        self,
        channels: int,
        ridge: Annotated[
            float, Slider(0.01, 100.0, r"\lambda", "ridge: large is a multiple of the sum", log=True, above=0.0)
        ] = 1.0,
    ) -> None:
        super().__init__(channels)
        self.ridge = ridge

    def forward(self, features: Tensor) -> Tensor:
        """Pool features (B, C, H, W) to (B, C)."""
        self.check(features)
        F = features.flatten(2).double()  # (B, C, n)
        if F.shape[2] <= F.shape[1]:
            pooled = F @ self._solve(F.mT @ F, torch.ones_like(F[:, :1]).mT)
        else:
            pooled = self._solve(F @ F.mT, F.sum(-1, keepdim=True))
        return pooled[..., 0].to(features.dtype)

    def _solve(self, gram: Tensor, right: Tensor) -> Tensor:
        trace = gram.detach().diagonal(dim1=-2, dim2=-1).sum(-1)
        ridge = (4 * torch.finfo(gram.dtype).eps * trace).clamp(min=self.ridge)[:, None, None]
        eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        return self.solve(gram + ridge * eye, right)
