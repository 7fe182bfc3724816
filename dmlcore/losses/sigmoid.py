"""Sigmoid loss, a logistic regression on pairs whose slope and bias are learned with the network."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss, batch_loss, log1p_exp


@batch_loss(
    "sigmoid",
    title="Sigmoid (SigLIP)",
    latex=r"\tfrac1B\textstyle\sum_i\sum_{j\ne i}\log\bigl(1 + e^{-z_{ij}(t\,s_{ij} + b)}\bigr),\quad z_{ij} = \pm1",
    source="Zhai et al. 2023, Sec. 3.2",
    sentence="Logistic regression on pairs: its learned slope and bias give the similarity above which two samples "
    "count as the same class.",
)
class Sigmoid(PairLoss):
    """Sigmoid loss, the sum over all pairs of -log sigmoid(z (t s + b)), divided by the number B of anchors.

    s is the cosine similarity of a pair and z is +1 if both samples are of one class, otherwise -1. The probability
    that a pair is of one class is modelled as sigmoid(t s + b). The slope t = e^t' and the bias b are learned; the
    trained parameters are `log_slope` (t') and `bias` (b), scalars.

    The source compares B images with B texts and sums over all B^2 pairs, one positive per row. Here a batch is
    compared with itself: a sample is not paired with itself, a row has as many positives as the batch has further
    samples of its class, and each pair counts in both orders. As in the source, the sum is divided by B.

    With the initial values of the source, t = 10 and b = -10, the threshold starts at a similarity of 1. They fit its
    batches of thousands of samples with one positive each. With P positives and N negatives per anchor, a bias of
    log(P / N) predicts the right share of positives at s = 0.

    Args:
        slope: Initial slope t.
        bias: Initial bias b.

    Reference:
        Zhai et al. 2023 (SigLIP), Sec. 3.2 and Algorithm 1 (t' = log 10 and b = -10 at the start).
    """

    unbounded = True

    def __init__(
        self,
        slope: Annotated[
            float, Slider(1, 100, "t", "Initial slope of the log-odds over the cosine similarity", log=True, above=0)
        ] = 10.0,
        bias: Annotated[
            float, Slider(-20, 5, "b", "Initial bias: log-odds of one class at cosine similarity 0", step=0.1)
        ] = -10.0,
    ) -> None:
        super().__init__()
        self.log_slope = nn.Parameter(torch.tensor(math.log(slope)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))

    @property
    def slope(self) -> Tensor:
        """Current slope t of the log-odds over the cosine similarity, scalar."""
        return self.log_slope.exp()

    @property
    def threshold(self) -> Tensor:
        """Cosine similarity -b / t at which the predicted probability of one class is one half, scalar."""
        return -self.bias / self.slope

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = pairs.cosines()
        # both are cast first, because the exponential of a half-precision number would be rounded
        log_odds = self.log_slope.to(s.dtype).exp() * s + self.bias.to(s.dtype)
        valid = pairs.positive | pairs.negative
        terms = log1p_exp(torch.where(pairs.positive, -log_odds, log_odds)).masked_fill(~valid, 0.0)
        self.record_counts(terms.detach(), valid)
        return terms.sum() / max(len(terms), 1)

    def measured(self) -> dict[str, Tensor]:
        """Return the current "slope" and "threshold", scalars."""
        return {"slope": self.slope.detach(), "threshold": self.threshold.detach()}
