"""Checks of the errata of Gürbüz 2022 about losses, scores and Lipschitz constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore import metrics
from dmlcore.losses.pairs import Contrastive
from dmlcore.pooling.costs import clip_to_unit_ball
from dmlcore.published.checks.number import Check, Decision, Outcome


def _contrastive() -> Iterable[Outcome]:
    """Compare the printed and the true pull of the contrastive loss on a positive pair at distance 2, with margin 1.

    The batch loss counts the pair in both orders, and is halved.
    """
    points = torch.tensor([[0.0], [2.0]], dtype=torch.float64, requires_grad=True)
    total = Contrastive(0.0, 1.0, divisor="one")(points, torch.zeros(2, dtype=torch.long)) / 2
    (slope,) = torch.autograd.grad(total, points)

    def by_the_text(d: Tensor) -> Tensor:
        return d.relu() + (d - 1).relu()  # y = 1, margin 1

    d = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (printed,) = torch.autograd.grad(by_the_text(d), d)
    yield Decision("pull on the pair", float(printed), 1.0, float(slope[1, 0]), "automatic differentiation")


def _average_precision() -> Iterable[Outcome]:
    """Evaluate MAP@R for a query with three relevant items if its first three neighbours are hit, miss, hit."""
    hits = np.array([1.0, 0.0, 1.0])
    precision = hits.cumsum() / np.arange(1, 4)
    referee = metrics.retrieval(
        [[0.0]], [0], gallery=[[1.0], [2.0], [3.0], [4.0]], gallery_labels=[0, 1, 0, 0]
    ).map_at_r
    yield Decision(
        "MAP@R of hits 1, 0, 1 with R = 3",
        float((hits.mean() * hits).mean()),
        float((precision * hits).mean()),
        math.nan if referee is None else referee,
        "metrics.retrieval",
    )


def _proximal() -> Iterable[Outcome]:
    strength, kept = 0.5, 0.0
    theta = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(strength / 2 * (theta - kept).square(), theta)
    at = float(theta.detach())
    step = {sign: abs(at - 0.1 * sign * strength * (kept - at) - kept) for sign in (1, -1)}
    after = abs(float((theta - 0.1 * slope).detach()) - kept)
    yield Decision(
        "distance from θ* after a descent step of 0.1", step[1], step[-1], after, "a step of gradient descent"
    )


def _operator_norms() -> Iterable[Outcome]:
    x = torch.zeros(1, 1, 5, dtype=torch.float64)
    moved = x.clone()
    moved[0, 0, 2] = 1.0
    ratio = (F.max_pool1d(moved, 2, 1) - F.max_pool1d(x, 2, 1)).norm() / (moved - x).norm()
    yield Decision(
        "Lipschitz constant of max-pooling, overlapping windows of 2",
        1.0,
        math.sqrt(2),
        float(ratio),
        "one moved entry",
        bound=True,
    )


def _projection() -> Iterable[Outcome]:
    generator = torch.Generator().manual_seed(0)
    x, y = 2 * torch.randn(2, 20_000, 3, dtype=torch.float64, generator=generator)
    ratios = (clip_to_unit_ball(x) - clip_to_unit_ball(y)).norm(dim=-1) / (x - y).norm(dim=-1)
    yield Decision("smallest Lipschitz constant of lip", 2.0, 1.0, float(ratios.max()), "20,000 random pairs")


CHECKS: Mapping[int, Check] = {
    47: _contrastive,
    48: _average_precision,
    49: _proximal,
    50: _operator_norms,
    51: _projection,
}
