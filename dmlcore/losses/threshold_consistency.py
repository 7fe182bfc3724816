"""Threshold-consistent margin (TCM): hinges on the cosine similarities of the hard pairs of a batch.

It serves as a loss of its own, and as a term that is added to any other loss of a training run (`loss.tcm`).
"""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss, batch_loss, mean


@batch_loss(
    "threshold_consistent_margin",
    title="Threshold-consistent margin",
    latex=r"\operatorname{mean}_{+,\ s_{ij}\le m_+}\,(m_+ - s_{ij}) \;+\;"
    r" \operatorname{mean}_{-,\ s_{ik}\ge m_-}\,(s_{ik} - m_-)",
    source="Zhang et al. 2024 (ICLR, arXiv 2307.04047)",
    sentence="Pulls pairs of one class up to one similarity and pushes pairs of two classes down to another, the same "
    "for all classes, so that one threshold between them suits every class. Other pairs do not count.",
)
class ThresholdConsistentMargin(PairLoss):
    """Threshold-consistent margin loss (TCM) of the hard pairs of a batch.

    It is the mean of m_pos - s over pairs of one class with s <= m_pos, plus the mean of s - m_neg over pairs of two
    classes with s >= m_neg, where s is the cosine similarity. A mean over no pair is 0. All hard pairs of a kind get
    the same weight, the inverse of their number.

    The source adds the loss to another one, with a weight for each of the two means. Both weights are 1 here, as in its
    experiments; the spec key `loss.tcm` is their common value. The formula and the defaults are those of
    pytorch-metric-learning's `ThresholdConsistentMarginLoss`, which cites Sec. 5.2 of the source for them.

    Reference:
        Zhang et al. 2024, "Threshold-Consistent Margin Loss for Open-World Deep Metric Learning", ICLR, arXiv
        2307.04047.
    """

    unbounded = True

    def __init__(
        self,
        m_pos: Annotated[
            float,
            Slider(
                -1,
                1,
                "m_+",
                "Positive margin: similarity above which pairs of one class do not count",
                least=-1,
                most=1,
            ),
        ] = 0.9,
        m_neg: Annotated[
            float,
            Slider(
                -1,
                1,
                "m_-",
                "Negative margin: similarity below which pairs of two classes do not count",
                least=-1,
                most=1,
            ),
        ] = 0.5,
    ) -> None:
        super().__init__()
        self.m_pos, self.m_neg = m_pos, m_neg

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = pairs.cosines()
        pulled, pushed = pairs.positive & (s <= self.m_pos), pairs.negative & (s >= self.m_neg)
        self.record_counts((pulled | pushed).float(), pairs.positive | pairs.negative)
        pull = (self.m_pos - s).masked_fill(~pulled, 0.0).sum()
        push = (s - self.m_neg).masked_fill(~pushed, 0.0).sum()
        return mean(pull, pulled.sum()) + mean(push, pushed.sum())
