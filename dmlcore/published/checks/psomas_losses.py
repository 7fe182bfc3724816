"""Errata of Psomas 2020 about losses, evaluated beside the losses of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from dmlcore.losses.pairs import MarginLoss
from dmlcore.losses.proxies import ProxyAnchor, ProxyNCA, ProxyPush, SoftTriple
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
    value = float(loss.detach())
    yield Decision("loss of that pair, λ = 0.5", MARGIN, MARGIN + 0.4 - 0.2, value, "the batch loss", tolerance=1e-6)


def _boundary() -> Iterable[Outcome]:
    """What a pair of a class costs that could not be closer."""
    same = torch.tensor([[0.6, 0.8]] * 2, dtype=torch.float64)
    loss = MarginLoss(MARGIN, BOUNDARY, "euclidean", boundary="fixed", classes=1).double()
    cosine = max(0.0, MARGIN + BOUNDARY - 1.0)
    euclidean = max(0.0, MARGIN - BOUNDARY + 0.0)
    referee = float(loss(same, torch.zeros(2, dtype=torch.long)))
    yield Decision("pull on two samples of a class in one place", cosine, euclidean, referee, "the batch loss")


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


def _anchor_weight(s: float) -> tuple[float, float]:
    """The slope of ProxyAnchor in the similarity of the only positive: by Eq. 2.32, and corrected."""
    e = math.exp(-ALPHA * (s - DELTA))
    return -ALPHA * (s - DELTA) / (1 + e), -ALPHA * e / (1 + e)


def _anchor_slope() -> Iterable[Outcome]:
    for s in (0.3, 0.0):
        angle = torch.tensor(math.acos(s), dtype=torch.float64, requires_grad=True)
        loss = ProxyAnchor(ALPHA, DELTA, classes=1, embedding_dim=2).double()
        loss.proxies.data = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
        (slope,) = torch.autograd.grad(loss(torch.stack([angle.cos(), angle.sin()])[None], torch.tensor([0])), angle)
        printed, true = _anchor_weight(s)
        referee = float(slope) / -math.sin(math.acos(s))
        yield Decision(
            f"slope of ProxyAnchor in the similarity of one positive, s = {s:g}", printed, true, referee, AUTOGRAD
        )


def _constant_pull() -> Iterable[Outcome]:
    """The own proxy on the first axis, the other on the third: the sample moves in the plane of the first two."""
    loss = ProxyNCA(1.0, "others", classes=2, embedding_dim=3).double()
    loss.proxies.data = torch.eye(3, dtype=torch.float64)[[0, 2]]
    pulls = []
    for s in (-0.5, 0.0, 0.3, 0.9):
        angle = torch.tensor(math.acos(s), dtype=torch.float64, requires_grad=True)
        x = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)])
        (slope,) = torch.autograd.grad(loss(x[None], torch.tensor([0])), angle)
        pulls.append(float(slope) / -math.sin(math.acos(s)))
    anchored = [_anchor_weight(s)[1] for s in (-0.5, 0.0, 0.3, 0.9)]
    spread = max(anchored) - min(anchored)
    yield Decision("how far the pull of Proxy-NCA varies with s", spread, 0.0, max(pulls) - min(pulls), AUTOGRAD)


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


def _gamma() -> Iterable[Outcome]:
    similarities = np.array([0.8, 0.6])
    divided, multiplied = (1 / (1 + math.exp(-0.2 * factor)) for factor in (1 / 58, 58))
    referee = float(softmax(58 * similarities)[0])
    yield Decision(
        "weight of the nearer of two centres, S = 0.8 and 0.6",
        divided,
        multiplied,
        referee,
        "the implementation's soft-max",
    )


CHECKS: Mapping[int, Check] = {
    95: _indicator,
    96: _boundary,
    97: _centres,
    98: _anchor_slope,
    99: _constant_pull,
    100: _other_proxies,
    110: _gamma,
}
