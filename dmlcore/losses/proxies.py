"""Losses of samples against learned proxies."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from dmlcore.losses.batch import BatchFormula, ProxyLoss, masked_lse
from dmlcore.losses.distances import unit
from dmlcore.params import Choice, Slider

TEMPERATURE = "Temperature: a lower one makes the choice between classes harder"


class ProxyNCA(ProxyLoss):
    """Cross-entropy of cosine similarities to the proxies over a temperature; "all" or only the "others" below the bar.

    all: ProxyNCA++, which is normalised soft-max (Teh, DeVries & Taylor 2020; Zhai & Wu 2019). others: Proxy-NCA,
    Movshovitz-Attias et al. 2017; Psomas 2020, Eq. 2.27, with s = 1 / temperature; it can be negative.
    """

    def __init__(self, temperature: float, denominator: str = "all", *, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim)
        self.temperature, self.denominator = temperature, denominator

    def of(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a checked batch."""
        logits = unit(embeddings) @ unit(self.proxies).mT / self.temperature
        if self.denominator == "all":
            return F.cross_entropy(logits, labels)
        return (masked_lse(logits, ~self.own(labels)) - logits.gather(1, labels[:, None])[:, 0]).mean()


ENTRIES = (
    BatchFormula(
        "proxy_nca",
        "ProxyNCA++",
        r"-\log \frac{e^{\cos(x, w_y)/\tau}}{\sum_c e^{\cos(x, w_c)/\tau}}",
        "Movshovitz-Attias et al. 2017; Teh, DeVries & Taylor 2020",
        "Each class has a learned proxy; a sample is drawn to its own and pushed from all others.",
        {
            "temperature": Slider(0.02, 1, r"\tau", TEMPERATURE, above=0),
            "denominator": Choice(
                ("all", "others"), "c", "Proxies in the denominator: all (ProxyNCA++), or all but the own (Proxy-NCA)"
            ),
        },
        {"temperature": 0.11, "denominator": "all"},
        True,
        ProxyNCA,
    ),
)
