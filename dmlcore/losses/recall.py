"""Smoothed recall among the k nearest samples, in which sigmoids replace the two counting steps."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss, batch_loss, mean


@batch_loss(
    "recall_at_k",
    title="Recall@k surrogate",
    latex=r"\operatorname{mean}_{i,k}\ 1 - \frac{\min\bigl(k, \sum_{P_i}\sigma(\tfrac{k - r_{ij}}{\tau_1 k})\bigr)}"
    r"{\min(k, |P_i|)},\quad r_{ij} = 1 + \textstyle\sum_{l \ne j}\sigma\bigl(\tfrac{s_{il} - s_{ij}}{\tau_2}\bigr)",
    source="Patel, Tolias & Matas 2022",
    sentence="Counts the positives among the k nearest samples of each anchor, for several k, with smooth steps.",
)
class RecallAtK(PairLoss):
    """Mean over anchors with a positive, and over k = 1, 2, 4, ... up to `largest`, of 1 - smoothed recall at k.

    With cosine similarities s, the smoothed rank of sample j for anchor i is r_ij = 1 + Σ_l sigmoid((s_il - s_ij) /
    tau_2), where l runs over all other samples but i and j. The smoothed number of positives among the k nearest is
    Σ_j sigmoid((k - r_ij) / (tau_1 k)) over the positives j, at most k. The recall is this number divided by k or by
    the number of positives, whichever is smaller. A positive at rank k itself counts half.

    The divisor, the limit k and the temperatures, of which the first grows with k, are those of the authors' code. That
    code also ranks the anchor itself, always first; here it is left out, as in the score. Similarity mixup, the second
    part of the paper, is not included.

    Args:
        tau_1: Temperature of the step at rank k, divided by k, in ranks.
        tau_2: Temperature of the comparison of two similarities.
        largest: Largest k.

    Reference:
        Patel, Tolias & Matas 2022 (CVPR, arXiv 2108.11179).
    """

    unbounded = True

    def __init__(
        self,
        tau_1: Annotated[
            float, Slider(0.05, 4, r"\tau_1", "Temperature of the step at rank k, as a multiple of k", above=0)
        ] = 1.0,
        tau_2: Annotated[
            float,
            Slider(0.001, 1, r"\tau_2", "Temperature of the comparison of similarities", step=0.001, above=0, log=True),
        ] = 0.01,
        largest: Annotated[int, Slider(1, 64, "K", "Largest k; k is 1, 2, 4, ... up to K", step=1, least=1)] = 16,
    ) -> None:
        super().__init__()
        self.tau_1, self.tau_2 = tau_1, tau_2
        self.ks = [2**power for power in range(largest.bit_length())]

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        ranks = self.smooth_ranks(pairs.cosines(), pairs.positive, pairs.negative)
        count = pairs.positive.sum(1)
        recalls = []
        for k in self.ks:
            hits = torch.sigmoid((k - ranks) / (self.tau_1 * k)).masked_fill(~pairs.positive, 0.0).sum(1)
            recalls.append(mean(hits.clamp(max=k), count.clamp(max=k)))
        anchors = count > 0
        terms = (1 - torch.stack(recalls).mean(0)).masked_fill(~anchors, 0.0)
        self.record_counts(terms.detach(), anchors)
        return mean(terms.sum(), anchors.sum())

    def smooth_ranks(self, s: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the smoothed rank of each positive among all samples that its anchor is paired with.

        Args:
            s: Similarities, shape (B, R).
            positive: Mask of positive pairs, shape (B, R).
            negative: Mask of negative pairs, shape (B, R).

        Returns:
            Shape (B, R), 0 for pairs that are not positive.
        """
        anchors, places = positive.nonzero(as_tuple=True)
        steps = torch.sigmoid((s[anchors] - s[anchors, places][:, None]) / self.tau_2)
        rivals = (positive | negative)[anchors].scatter(1, places[:, None], False)
        return torch.zeros_like(s).masked_scatter(positive, 1 + steps.masked_fill(~rivals, 0.0).sum(1))
