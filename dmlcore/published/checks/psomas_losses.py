"""Checks of the errata of Psomas 2020 about losses, evaluated with the losses of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from dmlcore.losses.pairs import MarginLoss
from dmlcore.published.checks.number import Check, Decision, Outcome

MARGIN, BOUNDARY = 0.5, 1.2  # hyper-parameters of the margin loss, Table 4
AUTOGRAD = "automatic differentiation"


def _at(angles: list[float]) -> Tensor:
    """Return unit vectors in the plane at these angles, shape (N, 2), differentiable with respect to the angles."""
    at = torch.tensor(angles, dtype=torch.float64, requires_grad=True)
    return torch.stack([at.cos(), at.sin()], 1)


def _indicator() -> Iterable[Outcome]:
    """Compare I = 0 (printed) with I = -1 in [λ + I (β - S)]+, for a negative pair at S = 0.4 with β = 0.2."""
    angle = torch.tensor(math.acos(0.4), dtype=torch.float64, requires_grad=True)
    x = torch.stack(
        [torch.stack([torch.ones_like(angle), torch.zeros_like(angle)]), torch.stack([angle.cos(), angle.sin()])]
    )
    loss = MarginLoss(MARGIN, 1 - 0.2, "cosine", boundary="fixed", classes=2).double()(x, torch.tensor([0, 1]))
    (slope,) = torch.autograd.grad(loss, angle)
    dS = -math.sin(math.acos(0.4))
    yield Decision(
        "derivative with respect to the angle, pair of two classes", 0.0 * dS, 1.0 * dS, float(slope), AUTOGRAD
    )


CHECKS: Mapping[int, Check] = {
    95: _indicator,
}
