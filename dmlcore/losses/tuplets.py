"""(N+P+1)-tuplet loss, in which each sample is the centre of a tuplet with all its positives and negatives."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Choice, Slider
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss, batch_loss, log1p_exp, masked_lse, mean

FORMS = ("cross_entropy", "ratio", "pairs")


def centre_losses(similarities: Tensor, positive: Tensor, negative: Tensor, form: str) -> Tensor:
    """Compute the loss of each centre, shape (B,), from its similarities to all other samples.

    Let D be the similarities, P and N the positives and negatives of a centre, K their union and p = |P|. Contrary to
    the paper, the three forms agree only for p = 1.

    Args:
        similarities: Similarities of centres (rows) to samples, shape (B, R).
        positive: Mask of positive pairs, shape (B, R). The result is undefined for rows without a positive.
        negative: Mask of negative pairs, shape (B, R).
        form: "cross_entropy" for LSE_K D - mean_P D, the soft-label "easy trick"; "ratio" for LSE_K D - LSE_P D + log
            p; or "pairs" for log(1 + 1/p sum_P sum_N e^(D_n - D_p)).

    Reference:
        Can 2018, Eq. 3.1-3.5.
    """
    count = positive.sum(1).clamp(min=1).to(similarities.dtype)
    if form == "pairs":
        return log1p_exp(masked_lse(similarities, negative) + masked_lse(-similarities, positive) - count.log())
    every = masked_lse(similarities, positive | negative)
    if form == "ratio":
        return every - masked_lse(similarities, positive) + count.log()
    return every - similarities.masked_fill(~positive, 0.0).sum(1) / count


@batch_loss(
    "tuplet",
    title="(N+P+1)-tuplet",
    latex=r"\log\!\sum_{k \ne i} e^{x_i^\top x_k} \;-\; \tfrac{1}{|P_i|}\sum_{j \in P_i} x_i^\top x_j",
    source="Can 2018, Eq. 3.1-3.5, corrected: the printed forms differ beyond one positive",
    sentence="Classifies the positives of each sample among all other samples, by inner products of unnormalised "
    "embeddings.",
)
class Tuplet(PairLoss):
    """Mean of `centre_losses` of inner products over the samples with a positive, plus a penalty on embedding norms.

    `norm_weight` is the weight of the mean norm of the embeddings (J_reg, 0.02 in the source). The term J_pre of the
    source keeps embeddings close to those of the pretrained network. It is not included here, because the run setting
    `loss.start_weight` provides it for every loss.

    Reference:
        Can 2018, Sec. 3.2-3.4.
    """

    def __init__(
        self,
        form: Annotated[
            str,
            Choice(
                FORMS,
                "J",
                "cross_entropy pulls all positives alike, ratio the nearest most, pairs the farthest most",
            ),
        ] = "cross_entropy",
        norm_weight: Annotated[
            float, Slider(0, 1, r"\gamma", "Weight of the mean length of the embeddings", least=0)
        ] = 0.0,
    ) -> None:
        super().__init__()
        self.form, self.norm_weight = form, norm_weight

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        terms = centre_losses(pairs.rows @ pairs.columns.mT, pairs.positive, pairs.negative, self.form)
        has = pairs.positive.any(1)
        self.record_counts(terms.detach(), has)
        loss = mean(terms.masked_fill(~has, 0.0).sum(), has.sum())
        return loss + self.norm_weight * _mean_length(pairs.rows) if self.norm_weight else loss


def _mean_length(vectors: Tensor) -> Tensor:
    """Compute the mean Euclidean norm of vectors (B, D); the gradient for a zero vector is zero."""
    length: Tensor = torch.linalg.vector_norm(vectors, dim=1)
    return length.mean()
