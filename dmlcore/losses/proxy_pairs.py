"""Pair and triplet losses whose anchors meet learned proxies, several of each class, instead of other samples."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.losses.engine.batch_loss import DIVISOR, BatchFormula, PairLoss, ProxyLoss, mean, require_int
from dmlcore.losses.engine.distances import distance_table
from dmlcore.losses.engine.table import Counts
from dmlcore.losses.pairs import SIMILARITY_SLIDERS, Contrastive, MultiSimilarity


class ProxyPairs(ProxyLoss):
    """A pair loss whose columns are proxies, `per_class` of each class: samples are anchors, proxies their partners.

    Samples and proxies longer than 1 are pulled back to the unit ball. Source: Gurbuz 2022, Ch. 3 (proxies as anchors
    of chance-constrained programming).
    """

    unbounded = False

    def __init__(self, loss: PairLoss, per_class: float, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim, require_int("per_class", per_class))
        self.loss = loss

    def of(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a checked batch."""
        own = torch.arange(self.classes, device=labels.device).repeat_interleave(self.per_class)
        value: Tensor = self.loss(embeddings, labels, reference=self.proxies, reference_labels=own)
        return value

    @property
    def counts(self) -> Counts:
        """Terms of the last batch."""
        return self.loss.counts


class TripletProxies(ProxyLoss):
    """[d(x, w+) - d(x, w-) + m]+ over all proxies w+ of the class of x and w- of the others, in the unit ball.

    divisor: as of `hinges.TripletHinge`. Source: Gurbuz 2022, Ch. 3.
    """

    unbounded = False

    def __init__(self, m: float, divisor: str, per_class: float, *, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim, require_int("per_class", per_class))
        self.m, self.divisor = m, divisor
        self.counts = Counts.none()

    def of(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a checked batch."""
        d = distance_table("ball", embeddings, self.proxies)
        places = labels[:, None] * self.per_class + torch.arange(self.per_class, device=labels.device)
        positives, negative = d.gather(1, places), ~self.own(labels).repeat_interleave(self.per_class, 1)
        with torch.no_grad():
            costly = (positives[:, :, None] + self.m > d[:, None]) & negative[:, None]
            pull, push, above = costly.sum(2), costly.sum(1), costly.sum()
            valid = negative.sum() * self.per_class
        self.counts = Counts.of(valid, above, above)
        total = (pull * positives).sum() - (push * d).sum() + self.m * above.to(d.dtype)
        if self.divisor in ("nonzero", "pairs"):
            return mean(total, above if self.divisor == "nonzero" else valid)
        return total / max(len(d), 1) if self.divisor == "anchors" else total


def contrastive_proxy(
    m_pos: float, m_neg: float, divisor: str, per_class: float, *, classes: int, embedding_dim: int
) -> nn.Module:
    """`Contrastive` against proxies."""
    return ProxyPairs(Contrastive(m_pos, m_neg, "ball", divisor), per_class, classes, embedding_dim)


def multi_similarity_proxy(
    alpha: float, beta: float, m: float, per_class: float, *, classes: int, embedding_dim: int
) -> nn.Module:
    """`MultiSimilarity` against proxies, on inner products in the unit ball, without mining."""
    return ProxyPairs(MultiSimilarity(alpha, beta, m, torch.inf, "ball"), per_class, classes, embedding_dim)


_PER_CLASS = Slider(1, 16, "P", "Proxies of each class", step=1, above=0)

ENTRIES = (
    BatchFormula(
        "contrastive_proxy",
        "Contrastive with proxies",
        r"\operatorname{mean}_{+}\,[d(x, w) - m_+]_+ \;+\; \operatorname{mean}_{-}\,[m_- - d(x, w)]_+",
        "Gürbüz 2022, Ch. 3 (C2)",
        "The contrastive loss between samples and learned proxies, several for each class.",
        {
            "m_pos": Slider(0, 2, "m_+", "Distance under which the own proxies leave alone", above=-1e-9),
            "m_neg": Slider(0.01, 2, "m_-", "Distance beyond which other proxies leave alone", above=0),
            "divisor": DIVISOR,
            "per_class": _PER_CLASS,
        },
        {"m_pos": 0.0, "m_neg": 0.3841, "divisor": "nonzero", "per_class": 8.0},
        True,
        contrastive_proxy,
    ),
    BatchFormula(
        "triplet_proxy",
        "Triplet with proxies",
        r"\operatorname{mean}\,[d(x, w_+) - d(x, w_-) + m]_+",
        "Gürbüz 2022, Ch. 3",
        "Samples are anchors; positives and negatives are learned proxies.",
        {
            "m": Slider(0, 2, "m", "How much farther than its own proxy another is to be", above=-1e-9),
            "divisor": DIVISOR,
            "per_class": _PER_CLASS,
        },
        {"m": 0.0961, "divisor": "nonzero", "per_class": 8.0},
        True,
        TripletProxies,
    ),
    BatchFormula(
        "multi_similarity_proxy",
        "Multi-similarity with proxies",
        r"\operatorname{mean}_i\ \tfrac1\alpha \log\bigl(1 + \textstyle\sum_{w_+} e^{-\alpha(s - m)}\bigr)"
        r" + \tfrac1\beta \log\bigl(1 + \textstyle\sum_{w_-} e^{\beta(s - m)}\bigr)",
        "Gürbüz 2022, Ch. 3",
        "The multi-similarity loss between samples and learned proxies, several for each class.",
        {
            **SIMILARITY_SLIDERS,
            "per_class": _PER_CLASS,
        },
        {"alpha": 2.0, "beta": 40.0, "m": 0.5, "per_class": 8.0},
        True,
        multi_similarity_proxy,
    ),
)
