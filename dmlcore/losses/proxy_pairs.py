"""Pair and triplet losses with samples as anchors and several learned proxies per class."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.losses.engine.batch_loss import Distance, Divisor, PairLoss, ProxyLoss, batch_loss, mean
from dmlcore.losses.engine.distances import distance_table
from dmlcore.losses.engine.table import Counts
from dmlcore.losses.hinges import TripletHinge
from dmlcore.losses.pairs import Base, Contrastive, MultiSimilarity, Pull, Push

PerClass = Annotated[int, Slider(1, 16, "P", "Proxies per class", step=1, above=0)]


class ProxyPairs(ProxyLoss):
    """Pair loss between each sample and `per_class` learned proxies of every class.

    Vectors with a norm above 1 are projected onto the unit ball if the pair loss uses a "ball" distance or similarity.

    Reference:
        Gurbuz 2022, Ch. 3 (proxies as anchors of chance-constrained programming).
    """

    unbounded = False

    def __init__(self, loss: PairLoss, per_class: int, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim, per_class)
        self.loss = loss

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        proxies, own = self.trained_proxies(proxies)
        value: Tensor = self.loss(embeddings, labels, ref_emb=proxies, ref_labels=own)
        return value

    def trained_proxies(self, proxies: Tensor) -> tuple[Tensor, Tensor]:
        """Return the proxies (P, D) of the classes that take part in the loss, see `trained`, and their labels (P,)."""
        own = torch.arange(self.classes, device=proxies.device).repeat_interleave(self.per_class)
        if self.trained is None:
            return proxies, own
        places = (self.trained[:, None] * self.per_class + torch.arange(self.per_class, device=own.device)).flatten()
        return proxies[places], own[places]

    def between(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the pair loss between the samples of the batch, without proxies."""
        value: Tensor = self.loss(embeddings, labels)
        return value

    @property
    def counts(self) -> Counts:
        """Counts of the terms of the last batch, see `PairLoss`."""
        return self.loss.counts


@batch_loss(
    "contrastive_proxy",
    title="Contrastive with proxies",
    latex=r"\operatorname{mean}_{+}\,[d(x, w) - m_+]_+ \;+\; \operatorname{mean}_{-}\,[m_- - d(x, w)]_+",
    source="Gürbüz 2022, Ch. 3 (C1, C2)",
    sentence="Contrastive loss between samples and several learned proxies per class.",
)
def contrastive_proxy(
    m_pos: Annotated[float, Slider(0, 2, "m_+", "Distance below which the own proxies do not pull", least=0)] = 0.0,
    m_neg: Annotated[
        float, Slider(0.01, 2, "m_-", "Distance beyond which other proxies do not push", above=0, tuned_on="cub")
    ] = 0.3841,
    divisor: Divisor = "nonzero",
    per_class: PerClass = 8,
    distance: Distance = "ball",
    *,
    classes: int,
    embedding_dim: int,
) -> nn.Module:
    """Create the `Contrastive` loss between samples and proxies.

    The defaults give variant C2 of Gurbuz 2022; variant C1 has cosine distance, m_pos = 1e-5, m_neg = 0.5 and divisor
    "anchors".
    """
    return ProxyPairs(Contrastive(m_pos, m_neg, distance, divisor), per_class, classes, embedding_dim)


@batch_loss(
    "triplet_proxy",
    title="Triplet with proxies",
    latex=r"\operatorname{mean}\,[d(x, w_+) - d(x, w_-) + m]_+",
    source="Gürbüz 2022, Ch. 3",
    sentence="Samples are anchors; positives and negatives are learned proxies.",
)
class TripletProxies(ProxyLoss):
    """Mean of [d(x, w+) - d(x, w-) + m]+ over samples x, proxies w+ of the class of x and proxies w- of other classes.

    Samples and proxies are projected onto the unit ball. `divisor` has the same meaning as in `hinges.TripletHinge`.

    Reference:
        Gurbuz 2022, Ch. 3.
    """

    unbounded = False

    def __init__(
        self,
        m: Annotated[
            float,
            Slider(0, 2, "m", "Margin: how much farther than its own proxy another must be", least=0, tuned_on="cub"),
        ] = 0.0961,
        divisor: Divisor = "nonzero",
        per_class: PerClass = 8,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim, per_class)
        self.m, self.divisor = m, divisor
        self.samples = TripletHinge(m, "ball", divisor=divisor)
        self.counts = Counts.none()

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        d = distance_table("ball", embeddings, proxies)
        places = labels[:, None] * self.per_class + torch.arange(self.per_class, device=labels.device)
        others = ~self.own(labels)
        if self.trained is not None:
            others = others & self.own(self.trained).any(0)
        positives, negative = d.gather(1, places), others.repeat_interleave(self.per_class, 1)
        with torch.no_grad():
            costly = (positives[:, :, None] + self.m > d[:, None]) & negative[:, None]
            pull, push, above = costly.sum(2), costly.sum(1), costly.sum()
            valid = negative.sum() * self.per_class
        self.counts = Counts.of(valid, above, above)
        total = (pull * positives).sum() - (push * d).sum() + self.m * above.to(d.dtype)
        if self.divisor in ("nonzero", "pairs"):
            return mean(total, above if self.divisor == "nonzero" else valid)
        return total / max(len(d), 1) if self.divisor == "anchors" else total

    def between(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the triplet loss over the samples of the batch, without proxies."""
        value: Tensor = self.samples(embeddings, labels)
        return value


@batch_loss(
    "multi_similarity_proxy",
    title="Multi-similarity with proxies",
    latex=r"\operatorname{mean}_i\ \tfrac1\alpha \log\bigl(1 + \textstyle\sum_{w_+} e^{-\alpha(s - m)}\bigr)"
    r" + \tfrac1\beta \log\bigl(1 + \textstyle\sum_{w_-} e^{\beta(s - m)}\bigr)",
    source="Gürbüz 2022, Ch. 3",
    sentence="Multi-similarity loss between samples and several learned proxies per class.",
)
def multi_similarity_proxy(
    alpha: Pull = 2.0, beta: Push = 40.0, m: Base = 0.5, per_class: PerClass = 8, *, classes: int, embedding_dim: int
) -> nn.Module:
    """Create `MultiSimilarity` between samples and proxies, with inner products in the unit ball and no mining."""
    return ProxyPairs(MultiSimilarity(alpha, beta, m, torch.inf, "ball"), per_class, classes, embedding_dim)
