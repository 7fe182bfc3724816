"""Counter-examples over one variable, for the loss of a pair, of a tuplet, or of a sample and its proxies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore.losses.pairs import Contrastive, MarginLoss
from dmlcore.losses.proxies import ProxyAnchor, ProxyNCA, SoftTriple
from dmlcore.losses.tuplets import centre_losses
from dmlcore.published.checks.curve import Curve

BATCH, AUTOGRAD, TORCH = "the batch loss", "automatic differentiation", "cross-entropy of torch"
ONE_CLASS, TWO_CLASSES = torch.tensor([0, 0]), torch.tensor([0, 1])


def _at_cosine(s: float) -> Tensor:
    """Return two unit vectors as rows: (1, 0) and one with cosine similarity s to it."""
    return torch.tensor([[1.0, 0.0], [s, math.sqrt(max(0.0, 1 - s * s))]], dtype=torch.float64)


def _slope_in_cosine(loss: Callable[[Tensor], Tensor], s: float) -> float:
    """Return dL/ds for a loss of the unit vector with cosine s to the first axis, by autograd through its angle."""
    angle = torch.tensor(math.acos(s), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(torch.stack([angle.cos(), angle.sin()])), angle)
    return float(slope) / -math.sin(math.acos(s))


# ---- pairs


def _contrastive(d: float) -> float:
    points = torch.tensor([[0.0], [d]], dtype=torch.float64)
    # halve the loss, because the batch loss counts the pair in both orders
    return float(Contrastive(0.0, 1.0, divisor="one")(points, ONE_CLASS)) / 2


LAMBDA, COSINE_BOUNDARY, DISTANCE_BOUNDARY = 0.5, 0.2, 1.2


def _margin_of_two(s: float) -> float:
    loss = MarginLoss(LAMBDA, 1 - COSINE_BOUNDARY, "cosine", boundary="fixed", classes=2).double()
    return float(loss(_at_cosine(s), TWO_CLASSES))


def _margin_of_one(d: float) -> float:
    loss = MarginLoss(LAMBDA, DISTANCE_BOUNDARY, "euclidean", boundary="fixed", classes=1).double()
    return float(loss(_at_cosine(1 - d * d / 2), ONE_CLASS))


# ---- soft-max


def _gap(gap: float) -> tuple[float, float]:
    """Return the printed and the true loss for two classes if the logit of the wrong class is `gap` above the other.

    The printed sum includes the true class, the corrected one does not.
    """
    return math.log1p(math.exp(gap) + 1), math.log1p(math.exp(gap))


def _entropy(p: float) -> float:
    return -sum(share * math.log(share) for share in (p, 1 - p))


def _soft_entropy(p: float) -> float:
    shares = torch.tensor([[p, 1 - p]], dtype=torch.float64)
    return float(F.cross_entropy(shares.log(), shares))


def _three(first: float) -> Tensor:
    return torch.tensor([[first, 0.0, -1.0]], dtype=torch.float64)


def _label(first: float) -> tuple[float, float]:
    """Return the cross-entropy of the logits (first, 0, -1) with target 1 for every class, and for the first alone."""
    log_p = _three(first)[0].log_softmax(0)
    return float(-log_p.sum()), float(-log_p[0])


def _centre(spread: float) -> tuple[float, float]:
    """Return the tuplet loss in the forms "pairs" and "ratio" for two positives and a negative.

    The positives have similarities 1 ± spread to the anchor, the negative has similarity 0.
    """
    D, positive = (
        torch.tensor([[1 + spread, 1 - spread, 0.0]], dtype=torch.float64),
        torch.tensor([[True, True, False]]),
    )
    pairs, ratio = (float(centre_losses(D, positive, ~positive, form)) for form in ("pairs", "ratio"))
    return pairs, ratio


def _mean_share(spread: float) -> float:
    """Return -log of the mean softmax probability of the positives, the right side of Can 2018, Eq. 3.2.

    The positives are at similarities 1 ± spread, the negative at 0.
    """
    exponentials = [math.exp(x) for x in (1 + spread, 1 - spread, 0.0)]
    return -math.log(sum(exponentials[:2]) / sum(exponentials) / 2)


# ---- proxies


def _one_proxy(scale: float) -> tuple[tuple[float, float], float]:
    """Return ((Proxy-NCA, ProxyNCA++), SoftTriple) with one proxy per class, on four samples of three classes."""
    x = torch.tensor([[0.9, 0.3], [-0.2, 1.1], [0.4, -0.8], [1.0, 0.9]], dtype=torch.float64)
    labels, sizes = torch.tensor([0, 1, 2, 0]), {"classes": 3, "embedding_dim": 2}
    losses = [
        ProxyNCA(1 / scale, "others", **sizes),
        ProxyNCA(1 / scale, "all", **sizes),
        SoftTriple(1, scale, 0.1, 0.0, 0.0, **sizes),
    ]
    for loss in losses:
        loss.double().proxies.data = torch.tensor([[1.0, 0.2], [-0.5, 1.0], [0.1, -1.0]], dtype=torch.float64)
    others, every, triple = (float(loss(x, labels).detach()) for loss in losses)
    return (others, every), triple


ALPHA, DELTA = 32.0, 0.1


def _anchor(s: float) -> tuple[float, float]:
    """Return dL/ds of ProxyAnchor with one positive at similarity s: Psomas 2020, Eq. 2.32, and the correction."""
    e = math.exp(-ALPHA * (s - DELTA))
    return -ALPHA * (s - DELTA) / (1 + e), -ALPHA * e / (1 + e)


def _anchor_slope(s: float) -> float:
    loss = ProxyAnchor(ALPHA, DELTA, classes=1, embedding_dim=2).double()
    loss.proxies.data = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    return _slope_in_cosine(lambda x: loss(x[None], torch.tensor([0])), s)


def _nca_slope(s: float) -> float:
    """Return the derivative of Proxy-NCA with respect to the similarity s between a sample and its own proxy.

    The own proxy is on the first axis and the other proxy on the third axis, which is equally far from every sample,
    because samples lie in the plane of the first two axes.
    """
    loss = ProxyNCA(1.0, "others", classes=2, embedding_dim=3).double()
    loss.proxies.data = torch.eye(3, dtype=torch.float64)[[0, 2]]
    return _slope_in_cosine(lambda x: loss(F.pad(x, (0, 1))[None], torch.tensor([0])), s)


def _nearer(gamma: float) -> tuple[float, float]:
    """Return the softmax weight of the nearer of two centres if similarities are divided and multiplied by gamma."""
    divided, multiplied = (1 / (1 + math.exp(-0.2 * factor)) for factor in (1 / gamma, gamma))
    return divided, multiplied


def _soft_maximum(gamma: float) -> float:
    return float((gamma * torch.tensor([0.8, 0.6], dtype=torch.float64)).softmax(0)[0])


CURVES: Mapping[int, Curve] = {
    47: Curve(
        "loss of a pair of one class, ε = 1",
        "distance d",
        0,
        3,
        2,
        lambda d: (d + max(0, d - 1), d),
        _contrastive,
        BATCH,
    ),
    64: Curve(
        "loss of two classes", "lead of the other logit", -4, 4, 0, _gap, lambda x: _cross_entropy([0, x]), TORCH
    ),
    73: Curve(
        "Proxy-NCA, which SoftTriple should equal with one proxy per class",
        "scale 1/τ",
        1,
        20,
        10,
        lambda scale: _one_proxy(scale)[0],
        lambda scale: _one_proxy(scale)[1],
        "SoftTriple, K = 1, δ = 0",
    ),
    76: Curve(
        "cross-entropy of two classes with themselves",
        "share of the first",
        0.01,
        0.99,
        0.5,
        lambda p: (-_entropy(p), _entropy(p)),
        _soft_entropy,
        TORCH,
    ),
    77: Curve(
        "loss at logits x, 0, -1, the first is correct",
        "logit x",
        -4,
        4,
        2,
        _label,
        lambda x: _cross_entropy([x, 0, -1]),
        TORCH,
    ),
    78: Curve(
        "right side of (3.2), positives 1 + x and 1 - x, negative 0",
        "spread x",
        0,
        3,
        0,
        _centre,
        _mean_share,
        "shares of a soft-max",
    ),
    95: Curve(
        "loss of a pair of two classes, λ = 0.5, β = 0.2",
        "cosine S",
        -1,
        1,
        0.4,
        lambda s: (LAMBDA, max(0.0, LAMBDA + s - COSINE_BOUNDARY)),
        _margin_of_two,
        BATCH,
    ),
    96: Curve(
        "loss of a pair of one class, λ = 0.5, β = 1.2",
        "distance d",
        0,
        2,
        0,
        lambda d: (max(0.0, LAMBDA + DISTANCE_BOUNDARY - (1 - d * d / 2)), max(0.0, d - DISTANCE_BOUNDARY + LAMBDA)),
        _margin_of_one,
        BATCH,
    ),
    98: Curve(
        "derivative of ProxyAnchor with respect to the similarity",
        "similarity s",
        -0.4,
        0.6,
        0.3,
        _anchor,
        _anchor_slope,
        AUTOGRAD,
    ),
    99: Curve(
        "pull of Proxy-NCA on a positive",
        "similarity s",
        -0.4,
        0.6,
        0.3,
        lambda s: (_anchor(s)[1], -1.0),
        _nca_slope,
        AUTOGRAD,
    ),
    110: Curve(
        "weight of the nearer of two centres, S = 0.8 and 0.6",
        "γ",
        1,
        100,
        58,
        _nearer,
        _soft_maximum,
        "the implementation's soft-max",
    ),
}


def _cross_entropy(logits: list[float]) -> float:
    return float(F.cross_entropy(torch.tensor([logits], dtype=torch.float64), torch.tensor([0])))
