"""Checks of the errata of Psomas 2020 about losses, evaluated with the losses of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from dmlcore.losses.pairs import MarginLoss
from dmlcore.published.checks.number import Check, Decision, Outcome

MARGIN, BOUNDARY = 0.5, 1.2  # hyper-parameters of the margin loss from Psomas 2020, Table 4
AUTOGRAD = "automatic differentiation"


def _at(angles: list[float]) -> Tensor:
    """Return unit vectors (N, 2) at the given angles in radians, attached to the autograd graph of the angles."""
    at = torch.tensor(angles, dtype=torch.float64, requires_grad=True)
    return torch.stack([at.cos(), at.sin()], 1)


def _indicator() -> Iterable[Outcome]:
    """Compare the gradient of [λ + I (β - S)]+ for a negative pair with I = 0, as printed, and with I = -1.

    The pair has similarity S = 0.4, and β = 0.2.
    """
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
