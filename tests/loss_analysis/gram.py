"""Pair weights of any energy of three unit vectors, solved from its gradient; a reference for `triplet_weights`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dmlcore.geometry.sphere import tangent
from dmlcore.loss_analysis.pair_weights import PairWeights, Similarities, unit_triplet


def gram_weights(energy: Callable[[Tensor], Tensor], s: Similarities) -> PairWeights:
    """Return the weights with which the gradient along the sphere is a combination of the three vectors.

    `energy` maps the vectors a, p, n, shape (3, 3), to a scalar.
    """
    points = unit_triplet(s)
    solved = [_solve(energy, x) for x in points.reshape(-1, 3, 3)]
    ap, an, pn, loss = (torch.stack(column).reshape(points.shape[:-2]) for column in zip(*solved, strict=True))
    return PairWeights(ap, an, pn, loss, loss)


def _solve(energy: Callable[[Tensor], Tensor], points: Tensor) -> tuple[Tensor, ...]:
    x = points.detach().clone().requires_grad_()
    loss = energy(x)
    (gradient,) = torch.autograd.grad(loss, x, allow_unused=True, materialize_grads=True)
    gradient = tangent(gradient, points).flatten()
    a, p, n = points
    none = torch.zeros_like(a)
    columns = [torch.stack(rows) for rows in ((p, a, none), (n, none, a), (none, n, p))]
    matrix = torch.stack([tangent(column, points).flatten() for column in columns], dim=-1)
    weights = torch.linalg.lstsq(matrix, gradient).solution
    torch.testing.assert_close(matrix @ weights, gradient, rtol=1e-6, atol=1e-6)
    return (*weights, loss.detach())
