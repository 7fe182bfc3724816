"""Potential fields: every point attracts its class and repels the others, with forces that decay with distance."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.geometry import Triplet
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss, batch_loss
from dmlcore.losses.engine.formula import triplet_loss
from dmlcore.losses.proxy_pairs import PerClass, ProxyPairs

Decay = Annotated[float, Slider(0.5, 6, r"\alpha", "Decay: a potential is 1/d^α", step=0.05, above=0)]
Radius = Annotated[
    float,
    Slider(0.05, 1, r"\delta", "Core radius: points of one class attract beyond it, others repel within it", above=0),
]
NEAREST = 0.1  # distance, in core radii, below which the repulsion continues as a parabola


def attraction(squared: Tensor, alpha: float) -> Tensor:
    """Compute the potential of a point of the same class from squared distances in core radii, (d / delta)^2."""
    depth: Tensor = squared.clamp(min=1.0).pow(-alpha / 2)
    return -depth


def repulsion(squared: Tensor, alpha: float) -> Tensor:
    """Compute the potential of a point of another class from squared distances in core radii, (d / delta)^2."""
    q, least = alpha / 2, NEAREST**2
    height: Tensor = squared.clamp(least, 1.0).pow(-q) + q * least ** (-q - 1) * (least - squared).relu()
    return height


@triplet_loss(
    title="Potential (PFML)",
    latex=r"-\max(d_{ap}/\delta,1)^{-\alpha}+\min(d_{an}/\delta,1)^{-\alpha}",
    source="Bhatnagar & Ahuja 2025, Eq. 1, 2",
    sentence="A pull that decays with distance and stops at the core radius, and a push that acts within it only.",
)
def potential(t: Triplet, *, alpha: Decay = 2.0, delta: Radius = 0.4) -> Tensor:
    return attraction((t.d_ap / delta) ** 2, alpha) + repulsion((t.d_an / delta) ** 2, alpha)


@batch_loss(
    "potential_pairs",
    title="Potential field, samples only",
    latex=r"\tfrac1B\sum_i\Bigl(-\sum_{P_i}\max\bigl(\tfrac{d_{ij}}\delta,1\bigr)^{-\alpha}"
    r"+\sum_{N_i}\min\bigl(\tfrac{d_{ik}}\delta,1\bigr)^{-\alpha}\Bigr)",
    source="Bhatnagar & Ahuja 2025, Eq. 1-3",
    sentence="Samples of one class attract each other beyond a core radius, others repel each other within it. The "
    "farther the pair, the weaker the pull.",
)
class PotentialPairs(PairLoss):
    """Mean potential of a sample in the field of the others, for distances d between unit vectors.

    A sample of the same class contributes -1/max(d, delta)^alpha, one of another class 1/min(d, delta)^alpha. So the
    pull alpha/d^(alpha+1) acts beyond the core radius delta and decays, and the push acts within delta. Potentials are
    given in units of 1/delta^alpha, which is 10^6 for delta = 0.1 and alpha = 6; this scales all forces alike.

    The paper does not state how the repulsion is bounded where points of two classes coincide. Here it continues as a
    parabola below NEAREST core radii, so that its force falls to 0 at distance 0.

    Reference:
        Bhatnagar & Ahuja, Potential Field Based Deep Metric Learning, CVPR 2025, Eq. 1-3, without proxies.
    """

    unbounded = True

    def __init__(self, alpha: Decay = 4.0, delta: Radius = 0.2) -> None:
        super().__init__()
        self.alpha, self.delta = alpha, delta

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        squared = 2 * pairs.distances("cosine") / self.delta**2  # (d / delta)^2
        with torch.no_grad():
            force = (pairs.positive & (squared > 1)) | (pairs.negative & (squared < 1))
        self.record_counts(force, pairs.positive | pairs.negative)
        pull = attraction(squared, self.alpha).masked_fill(~pairs.positive, 0.0)
        push = repulsion(squared, self.alpha).masked_fill(~pairs.negative, 0.0)
        total: Tensor = (pull + push).sum() / len(pairs.rows)
        return total


@batch_loss(
    "potential_field",
    title="Potential field (PFML)",
    latex=r"\tfrac1{|Z|}\sum_{z\in Z}\Bigl(-\sum_{+}\max\bigl(\tfrac{d(z,z')}\delta,1\bigr)^{-\alpha}"
    r"+\sum_{-}\min\bigl(\tfrac{d(z,z')}\delta,1\bigr)^{-\alpha}\Bigr),\quad Z=X\cup W",
    source="Bhatnagar & Ahuja 2025, Eq. 1-6",
    sentence="Samples and several learned proxies per class attract their class and repel the others. Far pairs hardly "
    "pull, so outliers and wrong labels weigh little.",
)
class PotentialField(ProxyPairs):
    """Mean potential of a point in the field of all others, where the points are the samples and all proxies.

    The energy is that of `PotentialPairs` over samples and proxies together: sum of the class potential at each sample
    and at each proxy. Proxies thus move, too, also under other proxies. Memory grows with the square of the number of
    proxies. The constant potential of a point at its own place is left out.

    The paper selects alpha from 0..6 and delta from 0.1..0.3, takes 15 proxies per class on CUB and Cars and 2 on SOP,
    and trains proxies with 100 times the learning rate (`loss.learning_rate` of a run). It states no other defaults;
    those here lie inside its ranges.

    Reference:
        Bhatnagar & Ahuja, Potential Field Based Deep Metric Learning, CVPR 2025, Eq. 1-6, divided by the number of
        points.
    """

    unbounded = True

    def __init__(
        self,
        alpha: Decay = 4.0,
        delta: Radius = 0.2,
        per_class: PerClass = 8,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(PotentialPairs(alpha, delta), per_class, classes, embedding_dim)

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        proxies, own = self.trained_proxies(proxies)
        value: Tensor = self.loss(torch.cat([embeddings, proxies]), torch.cat([labels, own]))
        return value
