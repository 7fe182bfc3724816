"""Errata of Psomas 2020 about losses, evaluated beside the losses of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from dmlcore.losses.pairs import MarginLoss
from dmlcore.losses.proxies import ProxyPush, SoftTriple
from dmlcore.published.checks.number import Check, Decision, Outcome
from dmlcore.typing import Floats

MARGIN, BOUNDARY = 0.5, 1.2  # of the margin loss, Table 4
AUTOGRAD = "automatic differentiation"


def _at(angles: list[float]) -> Tensor:
    """Unit vectors of the plane at these angles, (N, 2), which know them."""
    at = torch.tensor(angles, dtype=torch.float64, requires_grad=True)
    return torch.stack([at.cos(), at.sin()], 1)


def _indicator() -> Iterable[Outcome]:
    """A pair of two classes at cosine 0.4 with the boundary at 0.2: [λ + I (β - S)]+ with I = -1, or with 0."""
    angle = torch.tensor(math.acos(0.4), dtype=torch.float64, requires_grad=True)
    x = torch.stack(
        [torch.stack([torch.ones_like(angle), torch.zeros_like(angle)]), torch.stack([angle.cos(), angle.sin()])]
    )
    loss = MarginLoss(MARGIN, 1 - 0.2, "cosine", boundary="fixed", classes=2).double()(x, torch.tensor([0, 1]))
    (slope,) = torch.autograd.grad(loss, angle)
    dS = -math.sin(math.acos(0.4))
    yield Decision("slope in the angle of a pair of two classes", 0.0 * dS, 1.0 * dS, float(slope), AUTOGRAD)


SAMPLES = ((0.9, 0.3), (-0.2, 1.1), (0.4, -0.8), (1.0, 0.9))
CENTRES = ((1.0, 0.2), (0.6, 0.8), (-0.5, 1.0), (-1.0, 0.1), (0.1, -1.0), (0.7, -0.7))  # two for each of three classes


def _centres() -> Iterable[Outcome]:
    la, gamma, delta, tau = 20.0, 0.1, 0.1, 0.2
    x, w, labels = np.array(SAMPLES), np.array(CENTRES), np.array([0, 1, 2, 0])
    x, w = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, w))
    s = (x @ w.T).reshape(4, 3, 2)
    apart = np.sqrt(2 + 1e-5 - 2 * (w[::2] * w[1::2]).sum(1))

    def entropy(similarity: Floats) -> float:
        logits = la * (similarity - delta * np.eye(3)[labels])
        return float(-np.log(softmax(logits, axis=1)[np.arange(4), labels]).mean())

    loss = SoftTriple(2, la, gamma, delta, tau, classes=3, embedding_dim=2).double()
    loss.proxies.data = torch.from_numpy(w)
    referee = float(loss(torch.from_numpy(x), torch.from_numpy(labels)).detach())
    true = entropy((softmax(s / gamma, axis=2) * s).sum(2)) + tau * float(apart.sum()) / (3 * 2)
    yield Decision(
        "SoftTriple on four samples, two centres a class", entropy(s[:, :, 0]), true, referee, "the batch loss"
    )


ALPHA, DELTA = 32.0, 0.1


def _other_proxies() -> Iterable[Outcome]:
    """Four classes, samples of two of them, each on its proxy, so that nothing but the push of proxies moves those."""
    classes, present = 4, [0, 1]
    loss = ProxyPush(ALPHA, DELTA, "proxies", classes=classes, embedding_dim=classes).double()
    loss.proxies.data = torch.eye(classes, dtype=torch.float64)
    total = loss(torch.eye(classes, dtype=torch.float64)[present], torch.tensor(present))
    (slope,) = torch.autograd.grad(total, loss.proxies)
    pushing = int((slope[0, 1:].abs() > 1e-9).sum())
    absent = classes - len(present)
    yield Decision(
        "proxies that push the first, samples of two classes of four", absent, classes - 1, pushing, AUTOGRAD
    )


CHECKS: Mapping[int, Check] = {
    95: _indicator,
    97: _centres,
    100: _other_proxies,
}
