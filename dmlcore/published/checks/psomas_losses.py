"""Checks of the errata of Psomas 2020 about losses, evaluated with the losses of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from dmlcore.losses.hinges import TripletHinge
from dmlcore.losses.pairs import MarginLoss
from dmlcore.losses.structured import NPair
from dmlcore.published.checks.number import Check, Decision, Number, Outcome

MARGIN, BOUNDARY = 0.5, 1.2  # hyper-parameters of the margin loss from Psomas 2020, Table 4
AUTOGRAD = "automatic differentiation"
TRIPLET = tuple(torch.tensor([index]) for index in (0, 1, 2))  # anchor, positive and negative


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


def _equal_weights() -> Iterable[Outcome]:
    """Compare the weight dL/dS_an of one triplet that fulfils S_ap > S_an + λ and of one that violates it, λ = 0.1."""
    for what, negative, printed, true in (("fulfils", 0.2, 1.0, 0.0), ("violates", 0.75, 0.0, 1.0)):
        angle = torch.tensor(math.acos(negative), dtype=torch.float64, requires_grad=True)
        fixed = _at([0.0, math.acos(0.8)]).detach()
        x = torch.cat([fixed, torch.stack([angle.cos(), -angle.sin()])[None]])
        loss = TripletHinge(0.1, "cosine")(x, torch.tensor([0, 0, 1]), TRIPLET)
        (slope,) = torch.autograd.grad(loss, angle)
        weight = float(slope) / -math.sin(math.acos(negative))
        yield Decision(f"weight of a triplet that {what} constraint 2.16", printed, true, weight, AUTOGRAD)


def _relative_distances() -> Iterable[Outcome]:
    i, j, k = 0.0, 1.0, -0.5
    x = torch.tensor([[i], [j], [k]], dtype=torch.float64)
    loss = TripletHinge(0.0, "euclidean")(x, torch.tensor([0, 0, 1]), TRIPLET)
    yield Decision(
        "x_i = 0, x_j = 1, x_k = -0.5 fulfil the constraint (1) or not (0)",
        float(abs(i - j) < abs(j - k)),
        float(abs(i - j) < abs(i - k)),
        float(loss == 0),
        "the triplet loss without margin",
    )


def _weight_of_n_pair() -> Iterable[Outcome]:
    """Differentiate the weight dL/dS_an of N-pair (Eq. 2.22) for one positive and one negative with respect to S_ap."""
    similarities = (0.8, 0.4)
    angles = [torch.tensor(math.acos(s), dtype=torch.float64, requires_grad=True) for s in similarities]
    (p, n), zero = angles, torch.zeros((), dtype=torch.float64)
    others = torch.stack([torch.stack([p.cos(), p.sin(), zero]), torch.stack([n.cos(), zero, n.sin()])])
    anchor, labels = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64), torch.tensor([0])
    loss = NPair()(anchor, labels, ref_emb=others, ref_labels=torch.tensor([0, 1]))
    (by_negative,) = torch.autograd.grad(loss, n, create_graph=True)
    weight = by_negative / -n.sin()  # dS/dangle = -sin(angle)
    (by_positive,) = torch.autograd.grad(weight, p)
    closed_form = 1 / (1 + math.exp(similarities[0] - similarities[1]))
    yield Number("weight of the negative pair", "0.401", float(weight.detach()))
    yield Decision(
        "derivative of this weight with respect to the similarity of the positive",
        0.0,
        -closed_form * (1 - closed_form),
        float(by_positive) / -math.sin(math.acos(similarities[0])),
        AUTOGRAD,
    )


CHECKS: Mapping[int, Check] = {
    95: _indicator,
    119: _equal_weights,
    120: _relative_distances,
    121: _weight_of_n_pair,
}
