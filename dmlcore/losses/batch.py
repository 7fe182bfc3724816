"""Losses of a whole batch that are no sum over triplets: pairs, proxies, classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.losses.triplet_loss import check_batch
from dmlcore.params import Slider


@dataclass(frozen=True)
class BatchFormula:
    """What a form and a page need of a batch loss; `proxies` tells whether it learns one vector per class."""

    name: str
    title: str
    latex: str
    source: str
    sentence: str
    parameters: Mapping[str, Slider]
    defaults: Mapping[str, float]
    proxies: bool
    build: Callable[..., nn.Module]

    @property
    def energy_latex(self) -> str:
        """The formula, under the name that triplet losses use."""
        return self.latex

    @property
    def sliders(self) -> Mapping[str, Slider]:
        """The parameters a panel offers: all of them."""
        return self.parameters

    def resolve(self, hyper: Mapping[str, Any]) -> dict[str, float]:
        """Defaults overlaid with checked `hyper`; TypeError names an unknown one, ValueError an invalid one."""
        if unknown := set(hyper) - set(self.parameters):
            known = ", ".join(self.parameters) or "none"
            raise TypeError(f"{self.name} has no hyper-parameter {', '.join(sorted(unknown))}; it has: {known}")
        return {**self.defaults, **{k: self.parameters[k].check(f"{self.name}: {k}", v) for k, v in hyper.items()}}


def _mean_of_positive(losses: Tensor) -> Tensor:
    """Mean over the terms above 0; 0 without any."""
    return losses.sum() / (losses > 0).sum().clamp(min=1)


class Contrastive(nn.Module):
    """Mean of [d - m_pos]+ over pairs of one class plus mean of [m_neg - d]+ over pairs of two, Euclidean d.

    Each mean is over its terms above 0. forward(embeddings (B, D), labels (B,)) -> scalar. Source: Hadsell, Chopra &
    LeCun 2006; with a positive margin ("C2") Gurbuz 2022, Sec. 3.3.
    """

    def __init__(self, m_pos: float, m_neg: float) -> None:
        super().__init__()
        self.m_pos, self.m_neg = m_pos, m_neg

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        check_batch(embeddings, labels)
        first, second = torch.triu_indices(len(labels), len(labels), 1, device=labels.device)
        d = torch.linalg.vector_norm(embeddings[first] - embeddings[second], dim=1)
        same = labels[first] == labels[second]
        return _mean_of_positive((d[same] - self.m_pos).relu()) + _mean_of_positive((self.m_neg - d[~same]).relu())


class _WithProxies(nn.Module):
    """One learned vector per class."""

    def __init__(self, classes: int, embedding_dim: int) -> None:
        super().__init__()
        self.proxies = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes, embedding_dim)))

    def check(self, embeddings: Tensor, labels: Tensor) -> None:
        """Raise ValueError unless the batch fits the proxies."""
        check_batch(embeddings, labels)
        classes, dimension = self.proxies.shape
        if embeddings.shape[1] != dimension:
            raise ValueError(f"embeddings must have {dimension} columns like the proxies, got {embeddings.shape[1]}")
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise ValueError(f"labels must be in 0..{classes - 1}, one proxy each, got {labels.unique().tolist()}")


class ProxyNCA(_WithProxies):
    """Cross-entropy of cosine similarities to the proxies divided by a temperature (ProxyNCA++).

    The own proxy stands in the denominator, unlike in Eq. 2.27 of Psomas 2020. Source: Teh, DeVries & Taylor 2020;
    Movshovitz-Attias et al. 2017.
    """

    def __init__(self, temperature: float, *, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim)
        self.temperature = temperature

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        self.check(embeddings, labels)
        cosine = F.normalize(embeddings, dim=1) @ F.normalize(self.proxies, dim=1).mT
        return F.cross_entropy(cosine / self.temperature, labels)


class CrossEntropy(_WithProxies):
    """Cross-entropy of the inner products with one weight vector per class over a temperature, nothing normalised.

    Temperature 1 is soft-max classification without a bias, Psomas 2020, Eq. 2.26.
    """

    def __init__(self, temperature: float, *, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim)
        self.temperature = temperature

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        self.check(embeddings, labels)
        return F.cross_entropy(embeddings @ self.proxies.mT / self.temperature, labels)


_TEMPERATURE = "Temperature: a lower one makes the choice between classes harder"

FORMULAS: dict[str, BatchFormula] = {
    f.name: f
    for f in (
        BatchFormula(
            "contrastive",
            "Contrastive",
            r"\operatorname{mean}_{+}\,[d_{ij} - m_+]_+ \;+\; \operatorname{mean}_{-}\,[m_- - d_{ij}]_+",
            "Hadsell, Chopra & LeCun 2006; with a positive margin Gürbüz 2022, Sec. 3.3 (C2)",
            "Pairs of one class are pulled until they are closer than the positive margin, pairs of two classes "
            "pushed until they are farther apart than the negative one.",
            {
                "m_pos": Slider(0, 2, "m_+", "Distance under which pairs of one class are left alone", above=-1e-9),
                "m_neg": Slider(0.01, 2, "m_-", "Distance beyond which pairs of two classes are left alone", above=0),
            },
            {"m_pos": 0.0, "m_neg": 0.3841},
            False,
            Contrastive,
        ),
        BatchFormula(
            "proxy_nca",
            "ProxyNCA++",
            r"-\log \frac{e^{\cos(x, w_y)/\tau}}{\sum_c e^{\cos(x, w_c)/\tau}}",
            "Movshovitz-Attias et al. 2017; Teh, DeVries & Taylor 2020",
            "Each class has a learned proxy; a sample is drawn to its own and pushed from all others.",
            {"temperature": Slider(0.02, 1, r"\tau", _TEMPERATURE, above=0)},
            {"temperature": 0.11},
            True,
            ProxyNCA,
        ),
        BatchFormula(
            "cross_entropy",
            "Cross-entropy",
            r"-\log \frac{e^{w_y^\top x/\tau}}{\sum_c e^{w_c^\top x/\tau}}",
            "Psomas 2020, Eq. 2.26",
            "Plain classification with a linear layer, as backbones are pretrained.",
            {"temperature": Slider(0.02, 2, r"\tau", _TEMPERATURE, above=0)},
            {"temperature": 1.0},
            True,
            CrossEntropy,
        ),
    )
}
