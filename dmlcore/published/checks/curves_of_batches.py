"""Counter-examples over one variable, evaluated on a small batch, a ranking or a layer."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor, nn

from dmlcore import metrics
from dmlcore.losses.proxies import ProxyNCA, ProxyPush, SoftTriple
from dmlcore.published.checks import small_transport
from dmlcore.published.checks.curve import Curve
from dmlcore.typing import Floats, Ints

# ---- a ranking with R = 10 relevant items: rank 1 is a hit, and the second hit is at a variable rank

MATCHES = 10


def _hits(place: float) -> Floats:
    hits = np.zeros(MATCHES)
    hits[[0, int(place) - 1]] = 1
    return hits


def _average_precision(place: float) -> tuple[float, float]:
    """Return AP@R as printed, with the precision over all R items, and as corrected, with the precision at each hit."""
    hits = _hits(place)
    precision = hits.cumsum() / np.arange(1, MATCHES + 1)
    return float((hits.mean() * hits).sum() / MATCHES), float((precision * hits).sum() / MATCHES)


def _retrieved(place: float) -> float:
    labels = [0 if hit else 1 for hit in _hits(place)] + [2] * 90 + [0] * (MATCHES - 2)
    gallery = [[float(i + 1)] for i in range(len(labels))]
    return metrics.retrieval([[0.0]], [0], gallery=gallery, gallery_labels=labels).map_at_r or 0.0


# ---- a proximal step, a layer, two sets

STRENGTH = 0.5


def _proximal(theta: float) -> float:
    at = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(STRENGTH / 2 * at.square(), at)
    return float(slope)


def _bounds(weight: float) -> tuple[float, float]:
    """Return the bound on the spectral norm of the layer W = [1 w] as printed and as corrected.

    The printed bound, the largest column sum, is too small; the corrected one is sqrt(column sum x row sum).
    """
    W = np.abs(np.array([[1.0, weight]]))
    columns, rows = W.sum(0).max(), W.sum(1).max()
    return float(columns), math.sqrt(columns * rows)


def _means(shift: float) -> tuple[float, float]:
    """Return E[z²] over {0, 1, 2} minus the same mean (printed), and minus E[z²] over the shifted set (true)."""
    x = np.arange(3.0)
    mean = float(np.square(x).mean())
    return mean - mean, mean - float(np.square(x + shift).mean())


def _joint(shift: float) -> float:
    x = np.arange(3.0)
    support = np.union1d(x, x + shift)
    mass = np.array([np.isclose(x, z).mean() - np.isclose(x + shift, z).mean() for z in support])
    return float((mass * np.square(support)).sum())


# ---- the Lagrange multipliers of the transport problem


def _moved_mass(epsilon: float) -> tuple[float, float]:
    """Return d(transported mass) / d(first cost) with the Lagrange multipliers added and subtracted."""
    A, x = small_transport.constraints(epsilon=epsilon)
    D, first = np.diag(x), small_transport.N
    multipliers = A.T @ np.linalg.solve(A @ D @ A.T, A @ D)
    plus, minus = (float((A[-1] @ (-epsilon * D @ (np.eye(len(x)) + s * multipliers)))[first]) for s in (1, -1))
    return plus, minus


# ---- proxies

THREE = ((1.0, 0.0), (0.0, 1.0), (0.6, -0.8))


def _sample(degrees: float) -> Tensor:
    angle = math.radians(degrees)
    return torch.tensor([[math.cos(angle), math.sin(angle)]], dtype=torch.float64)


def _relabelled(degrees: float) -> tuple[float, float]:
    """Return the change in Proxy-NCA from label 0 to label 1, with the nearest proxy and with the label's proxy."""
    s = (_sample(degrees) @ torch.tensor(THREE, dtype=torch.float64).mT)[0]

    def with_proxy(chosen: int) -> float:
        return float(torch.cat([s[:chosen], s[chosen + 1 :]]).logsumexp(0) - s[chosen])

    nearest = int(s.argmax())
    return with_proxy(nearest) - with_proxy(nearest), with_proxy(1) - with_proxy(0)


def _relabelled_batch(degrees: float) -> float:
    loss = ProxyNCA(1.0, "others", classes=3, embedding_dim=2).double()
    loss.proxies = nn.Parameter(torch.tensor(THREE, dtype=torch.float64))
    zero, one = (float(loss(_sample(degrees), torch.tensor([label])).detach()) for label in (0, 1))
    return one - zero


SAMPLES = ((0.9, 0.3), (-0.2, 1.1), (0.4, -0.8), (1.0, 0.9))
# two centres for each of three classes
CENTRES = ((1.0, 0.2), (0.6, 0.8), (-0.5, 1.0), (-1.0, 0.1), (0.1, -1.0), (0.7, -0.7))
LABELS: Ints = np.array([0, 1, 2, 0])
SCALE, GAMMA, DELTA = 20.0, 0.1, 0.1


def _soft_triple(tau: float) -> tuple[float, float]:
    """Return the SoftTriple loss with one centre per class, and with two centres and the regulariser."""
    x, w = (np.array(v) / np.linalg.norm(v, axis=1, keepdims=True) for v in (SAMPLES, CENTRES))
    s = (x @ w.T).reshape(4, 3, 2)

    def entropy(similarity: Floats) -> float:
        logits = SCALE * (similarity - DELTA * np.eye(3)[LABELS])
        return float(-np.log(softmax(logits, axis=1)[np.arange(4), LABELS]).mean())

    apart = np.sqrt(2 + 1e-5 - 2 * (w[::2] * w[1::2]).sum(1))
    return entropy(s[:, :, 0]), entropy((softmax(s / GAMMA, axis=2) * s).sum(2)) + tau * float(apart.sum()) / (3 * 2)


def _soft_triple_batch(tau: float) -> float:
    loss = SoftTriple(2, SCALE, GAMMA, DELTA, tau, classes=3, embedding_dim=2).double()
    loss.proxies = nn.Parameter(torch.tensor(CENTRES, dtype=torch.float64))
    return float(loss(torch.tensor(SAMPLES, dtype=torch.float64), torch.from_numpy(LABELS)).detach())


CLASSES = 6


def _pushing(present: float) -> float:
    """Return how many proxies push the first of six orthogonal ones, with one sample on each of `present` proxies."""
    loss = ProxyPush(32.0, 0.1, "proxies", classes=CLASSES, embedding_dim=CLASSES).double()
    loss.proxies = nn.Parameter(torch.eye(CLASSES, dtype=torch.float64))
    batch = torch.eye(CLASSES, dtype=torch.float64)[: int(present)]
    (slope,) = torch.autograd.grad(loss(batch, torch.arange(int(present))), loss.proxies)
    return float((slope[0, 1:].abs() > 1e-9).sum())


CURVES: Mapping[int, Curve] = {
    48: Curve(
        "MAP@R of two hits, R = 10",
        "rank of the second hit",
        2,
        10,
        3,
        _average_precision,
        _retrieved,
        "metrics.retrieval",
        whole=True,
    ),
    49: Curve(
        "gradient of λ/2 (θ - θ*)², θ* = 0, λ = 0.5",
        "θ",
        -2,
        2,
        1,
        lambda theta: (STRENGTH * (0 - theta), STRENGTH * (theta - 0)),
        _proximal,
        "automatic differentiation",
    ),
    50: Curve(
        "bound of the layer W = [1 w]",
        "weight w",
        0.1,
        3,
        1,
        _bounds,
        lambda w: float(np.linalg.svd([[1.0, w]], compute_uv=False)[0]),
        "singular values",
        bound=True,
    ),
    53: Curve(
        "difference of the means of z² over two sets",
        "shift of {0, 1, 2}",
        -2,
        2,
        1,
        _means,
        _joint,
        "sum over the joint support",
    ),
    62: Curve(
        "derivative of the transported mass with respect to the first cost",
        "ε",
        0.5,
        12,
        3,
        _moved_mass,
        small_transport.slope_of_mass,
        "central differences of the exact solution",
    ),
    91: Curve(
        "change of the loss when the label goes from 0 to 1",
        "angle of the sample, degrees",
        0,
        360,
        30,
        _relabelled,
        _relabelled_batch,
        "the batch loss",
    ),
    97: Curve(
        "SoftTriple on four samples, two centres per class",
        "τ",
        0,
        1,
        0.2,
        _soft_triple,
        _soft_triple_batch,
        "the batch loss",
    ),
    100: Curve(
        "proxies that push the first of six",
        "classes in the batch",
        1,
        6,
        3,
        lambda present: (CLASSES - present, CLASSES - 1),
        _pushing,
        "automatic differentiation",
        whole=True,
    ),
}
