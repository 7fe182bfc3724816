"""Losses of a classifier whose weight vectors are learned with the network."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from dmlcore.losses.batch import BatchFormula, ProxyLoss
from dmlcore.losses.proxies import TEMPERATURE
from dmlcore.params import Slider


class CrossEntropy(ProxyLoss):
    """Cross-entropy of the inner products with one weight vector per class over a temperature, nothing normalised.

    Temperature 1 is soft-max classification without a bias, Psomas 2020, Eq. 2.26.
    """

    unbounded = False

    def __init__(self, temperature: float, *, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim)
        self.temperature = temperature

    def of(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a checked batch."""
        return F.cross_entropy(embeddings @ self.proxies.mT / self.temperature, labels)


ENTRIES = (
    BatchFormula(
        "cross_entropy",
        "Cross-entropy",
        r"-\log \frac{e^{w_y^\top x/\tau}}{\sum_c e^{w_c^\top x/\tau}}",
        "Psomas 2020, Eq. 2.26",
        "Plain classification with a linear layer, as backbones are pretrained.",
        {"temperature": Slider(0.02, 2, r"\tau", TEMPERATURE, above=0)},
        {"temperature": 1.0},
        True,
        CrossEntropy,
    ),
)
