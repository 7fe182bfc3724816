"""Counter-examples over one variable, for features, blocks of an embedding, clusters or running means."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn

from dmlcore.losses.engine.ensemble import DiverseEnsemble, Rescaling, diversity
from dmlcore.losses.ensembles import PRIORS
from dmlcore.losses.pairs import Contrastive
from dmlcore.metrics.clustering import nmi
from dmlcore.pooling.analysis import prototype_shares
from dmlcore.pooling.analysis.convergence import sweep_biases
from dmlcore.pooling.transport import transport
from dmlcore.published.checks import small_transport
from dmlcore.published.checks.curve import Curve
from dmlcore.typing import Floats

# ---- features and their transport to prototypes


def _pooled_error(distance: float) -> float:
    """Return the pooled error of one feature at `distance` from the only prototype, which is on the unit circle."""
    read = prototype_shares.read([[[1.0 - distance, 0.0]]], [[1.0, 0.0]])
    return float(read.error[0] * read.scale)


def _factor(mu: float) -> float:
    cost, *_ = small_transport.problem()
    rho, _ = transport(cost, mu, small_transport.EPSILON)
    return float(1 - (1 - mu - small_transport.N * rho @ rho) / mu)


def _observed_factor(mu: float) -> float:
    cost, *_ = small_transport.problem()
    sweeps = math.ceil(math.log(1e-8) / math.log(_factor(mu)))
    steps = sweep_biases((-small_transport.EPSILON * cost).logsumexp(-2), mu, sweeps).diff()
    return float(steps[-1] / steps[-2])


def _slopes(epsilon: float) -> tuple[float, float]:
    printed, true = (float(small_transport.gradient(outside, epsilon)[0, 0]) for outside in (True, False))
    return printed, true


def _k(mu: float) -> tuple[float, float]:
    rho = small_transport.solution(mu)[0]
    printed, true = (float(1 - mu - small_transport.N * square) for square in (rho[0] * rho[0], rho @ rho))
    return printed, true


# ---- distances, clusters


def _mahalanobis(M: float) -> float:
    points = torch.tensor([[0.0], [math.sqrt(M)]], dtype=torch.float64)
    return float(Contrastive(0.0, 9.0, divisor="one")(points, torch.tensor([0, 0]))) / 2


def _perfect(classes: float) -> tuple[float, float]:
    entropy = math.log(classes)
    return 2 * entropy / entropy**2, 2 * entropy / (entropy + entropy)


def _clusters(classes: float) -> float:
    labels = np.arange(int(classes)).repeat(3)
    return nmi(labels, labels)


# ---- ensembles

SHARE = 0.1  # weight of the newest loss in an exponential moving average


def exponential(values: Floats) -> float:
    """Return the exponential moving average of losses, initialised with the first loss."""
    mean = float(values[0])
    for value in values[1:]:
        mean += SHARE * (float(value) - mean)
    return mean


def rescaled(values: Floats) -> float:
    """Return the running mean that `Rescaling` with one ensemble member holds after the losses `values`."""
    rescaling = Rescaling(1).double()
    for value in values:
        rescaling(torch.tensor([value]))
    return float(rescaling.means[0])


def _counted(steps: float) -> Floats:
    return np.arange(1.0, steps + 1)


def _blocks(degrees: float) -> Tensor:
    """Return two unit-length embedding blocks at the given angle to each other, shape (1, 2, 2)."""
    angle = math.radians(degrees)
    return torch.tensor([[[1.0, 0.0], [math.cos(angle), math.sin(angle)]]], dtype=torch.float64)


def _by_angle(degrees: float) -> tuple[float, float]:
    inner = math.cos(math.radians(degrees))
    return 2 - inner, 2 - 2 * inner


def _evaluated(degrees: float) -> float:
    """Return the squared distance between two embeddings whose four blocks all differ by the given angle."""
    ensemble = DiverseEnsemble([nn.Identity()] * 4, PRIORS["source"], 100.0, 1.0).double()
    joined = ensemble.weighted_blocks(_blocks(degrees)[0].repeat(1, 4)).detach()
    return float((joined[0] - joined[1]).square().sum())


def _greatest(blocks: float) -> float:
    """Return the largest diversity of `blocks` embedding blocks, found by optimisation from a random start."""
    M = int(blocks)
    start = np.random.default_rng(0).normal(size=M * (M - 1))

    def lost(flat: Floats) -> tuple[float, Floats]:
        x = torch.tensor(flat.reshape(1, M, M - 1), requires_grad=True)
        value = -diversity(nn.functional.normalize(x, dim=-1))
        (slope,) = torch.autograd.grad(value, x)
        return float(value.detach()), slope.numpy().ravel()

    return -float(minimize(lost, start, jac=True).fun)


CURVES: Mapping[int, Curve] = {
    55: Curve(
        "bound of the error of one feature and one prototype",
        "their distance δ",
        0,
        2,
        2,
        lambda d: (math.sqrt(d), d),
        _pooled_error,
        "the pooled vectors",
        bound=True,
    ),
    57: Curve(
        "factor of the error from sweep to sweep, ε = 3",
        "mass μ",
        0.1,
        0.9,
        0.3,
        lambda mu: (None, _factor(mu)),
        _observed_factor,
        "the last of the sweeps",
        tolerance=1e-4,
    ),
    59: Curve(
        "dL/dc of the first prototype and feature, μ = 0.4",
        "ε",
        0.5,
        12,
        3,
        _slopes,
        lambda epsilon: small_transport.central_difference((0, 0), epsilon),
        "central differences of the exact solution",
    ),
    60: Curve("k, first entry of ρρ", "mass μ", 0.1, 0.9, 0.4, _k, small_transport.scaled_determinant, "det H · nⁿ"),
    74: Curve(
        "distance of two points 1 apart",
        "M",
        0.25,
        5,
        4,
        lambda M: (1 / math.sqrt(M), math.sqrt(M)),
        _mahalanobis,
        "length of L(x - y)",
    ),
    80: Curve("NMI of a perfect clustering", "equal classes", 2, 20, 4, _perfect, _clusters, "metrics.nmi", whole=True),
    86: Curve(
        "mean of 1, 2, …, K with s = 1, and an exponential one with share 0.1",
        "steps K",
        1,
        40,
        10,
        lambda K: (exponential(_counted(K)), float(_counted(K).mean())),
        lambda K: rescaled(_counted(K)),
        "the rescaling of the ensemble",
        whole=True,
    ),
    87: Curve(
        "squared distance of two blocks",
        "angle between them, degrees",
        0,
        180,
        0,
        _by_angle,
        lambda degrees: float(diversity(_blocks(degrees))),
        "diversity of the ensemble",
    ),
    88: Curve(
        "greatest mean over pairs of blocks",
        "blocks M",
        2,
        8,
        4,
        lambda M: (4.0, 2 * M / (M - 1)),
        _greatest,
        "ascent from a random start",
        whole=True,
    ),
    89: Curve(
        "squared distance of two samples",
        "angle of all their blocks, degrees",
        0,
        180,
        0,
        _by_angle,
        _evaluated,
        "the first form of (15)",
    ),
}
