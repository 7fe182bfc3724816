"""Pair losses, computed on dense tables of rows (batch samples) and columns (samples they are compared with)."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from dmlcore.catalogue import Choice, Slider
from dmlcore.losses.engine.batch_loss import (
    BatchPairs,
    Distance,
    Divisor,
    PairLoss,
    batch_loss,
    log1p_exp,
    masked_lse,
    mean,
    reduce_terms,
)
from dmlcore.losses.engine.distances import clip_to_unit_ball

Pull = Annotated[float, Slider(0.5, 20, r"\alpha", "Steepness of the pull", step=0.05, above=0)]
Push = Annotated[float, Slider(5, 100, r"\beta", "Steepness of the push", step=0.05, above=0)]
Base = Annotated[float, Slider(-0.5, 1, "m", "Cosine similarity that pairs are compared with")]


@batch_loss(
    "contrastive",
    title="Contrastive",
    latex=r"\operatorname{mean}_{+}\,[d_{ij} - m_+]_+ \;+\; \operatorname{mean}_{-}\,[m_- - d_{ij}]_+",
    source="Hadsell, Chopra & LeCun 2006; with a positive margin Gürbüz 2022, Sec. 3.3 (C2)",
    sentence="Pulls pairs of one class until they are closer than the positive margin, and pushes pairs of two classes "
    "until they are farther apart than the negative margin.",
)
class Contrastive(PairLoss):
    """Contrastive loss, the sum of [d - m_pos]+ over pairs of one class and [m_neg - d]+ over pairs of two classes.

    `divisor` names the number by which each of the two sums is divided: the number of its terms above 0 ("nonzero"),
    the number of its pairs ("pairs"), the number of anchors ("anchors"), or 1 ("one"). Each pair counts in both orders.

    Reference:
        Hadsell, Chopra & LeCun 2006. Gurbuz 2022, Sec. 3.3, for a positive margin ("C2") and for cosine distance with
        m_pos = 1e-5, m_neg = 0.5 and divisor "anchors" ("C1"). Karaman 2021, Eq. 2.3, for squared distances. With
        cosine distance the loss equals Psomas 2020, Eq. 2.15 with lambda = 1 - m_neg, up to the number of positive
        pairs.
    """

    def __init__(
        self,
        m_pos: Annotated[
            float, Slider(0, 2, "m_+", "Positive margin: distance below which pairs of one class do not count", least=0)
        ] = 0.0,
        m_neg: Annotated[
            float,
            Slider(
                low=0.01,
                high=2,
                symbol="m_-",
                help="Negative margin: distance beyond which pairs of two classes do not count",
                above=0,
                tuned_on="cub",  # Gürbüz 2022, Sec. 3.3.2.1: a Bayesian search; other values on other data
            ),
        ] = 0.3841,
        distance: Distance = "euclidean",
        divisor: Divisor = "nonzero",
    ) -> None:
        super().__init__()
        self.m_pos, self.m_neg, self.distance, self.divisor = m_pos, m_neg, distance, divisor
        self.unbounded = distance == "cosine"

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        d = pairs.distances(self.distance)
        pull = (d - self.m_pos).relu().masked_fill(~pairs.positive, 0.0)
        push = (self.m_neg - d).relu().masked_fill(~pairs.negative, 0.0)
        self.record_counts(pull.detach() + push.detach(), pairs.positive | pairs.negative)
        return reduce_terms(pull, pairs.positive, self.divisor) + reduce_terms(push, pairs.negative, self.divisor)


@batch_loss(
    "margin",
    title="Margin",
    latex=r"\operatorname{mean}_{>0}\,\bigl\{[d_{ij} - \beta + \alpha]_+,\ [\beta - d_{ik} + \alpha]_+\bigr\}",
    source="Wu et al. 2017, Eq. 6; Psomas 2020, Eq. 2.23",
    sentence="Learns a boundary distance. Pairs of one class are pulled inside it, pairs of two classes pushed out, "
    "by a margin.",
)
class MarginLoss(PairLoss):
    """Margin loss, which keeps pairs of one class within a boundary distance beta and pairs of two classes beyond it.

    The terms are [d - beta + alpha]+ for pairs of one class and [beta - d + alpha]+ for pairs of two classes; the loss
    is the mean of the terms above 0. `counting` is "pairs" to count each pair once, or "triplets" to count it once per
    triplet that contains it, as pytorch-metric-learning does. `boundary` is "learned" for one learned beta, "per_class"
    for a learned beta per class of the anchor, or "fixed".

    Reference:
        Wu et al. 2017, Eq. 6; Psomas 2020, Eq. 2.23 with I = +-1 (errata).
    """

    def __init__(
        self,
        alpha: Annotated[float, Slider(0, 1, r"\alpha", "Margin on both sides of the boundary", least=0)] = 0.5,
        beta: Annotated[float, Slider(0.1, 2, r"\beta", "Initial boundary distance", above=0)] = 1.2,
        distance: Distance = "euclidean",
        counting: Annotated[
            str,
            Choice(("pairs", "triplets"), "n", "Each pair counts once, or once for every triplet that it is part of"),
        ] = "pairs",
        boundary: Annotated[
            str,
            Choice(("learned", "per_class", "fixed"), r"\beta_y", "One boundary learned, one for each class, or fixed"),
        ] = "learned",
        *,
        classes: int,
    ) -> None:
        super().__init__()
        self.alpha, self.distance, self.counting, self.boundary = alpha, distance, counting, boundary
        self.unbounded = distance == "cosine"
        start = torch.full((classes if boundary == "per_class" else 1,), float(beta))
        self.beta = nn.Parameter(start, requires_grad=boundary != "fixed")

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        d = pairs.distances(self.distance)
        beta = self.beta[pairs.known_labels()[0]][:, None] if self.boundary == "per_class" else self.beta
        pull = (d - beta + self.alpha).relu().masked_fill(~pairs.positive, 0.0)
        push = (beta - d + self.alpha).relu().masked_fill(~pairs.negative, 0.0)
        self.record_counts(pull.detach() + push.detach(), pairs.positive | pairs.negative)
        if self.counting == "triplets" and pairs.listed is None:
            positives, negatives = pairs.positive.sum(1, keepdim=True), pairs.negative.sum(1, keepdim=True)
            total = (pull * negatives + push * positives).sum()
            return mean(total, ((pull > 0) * negatives + (push > 0) * positives).sum())
        if self.counting == "triplets" and pairs.listed is not None:
            a, p, n = pairs.listed
            pull, push = pull[a, p], push[a, n]
        return mean(pull.sum() + push.sum(), (pull > 0).sum() + (push > 0).sum())


@batch_loss(
    "multi_similarity",
    title="Multi-similarity",
    # in braces, so that a line breaks between the two terms
    latex=r"\operatorname{mean}_i\ {\tfrac1\alpha \log\bigl(1 + \textstyle\sum_{P_i} e^{-\alpha(s_{ij} - m)}\bigr)}"
    r" + {\tfrac1\beta \log\bigl(1 + \textstyle\sum_{N_i} e^{\beta(s_{ik} - m)}\bigr)}",
    source="Wang et al. 2019, Eq. 15; Psomas 2020, Eq. 2.24",
    sentence="Weights each pair by its own similarity and by the similarities of its anchor's other pairs.",
)
class MultiSimilarity(PairLoss):
    """Multi-similarity loss of pairs.

    It is the mean over anchors of 1/alpha log(1 + Σ_P e^-alpha(s - m)) + 1/beta log(1 + Σ_N e^beta(s - m)), where s is
    the cosine similarity or, with `similarity` "ball", the inner product after projection onto the unit ball. Only hard
    pairs enter the sums over positives P and negatives N: positives with s < largest negative s + epsilon, and
    negatives with s > smallest positive s - epsilon. With epsilon = inf all pairs enter.

    Reference:
        Wang et al. 2019, Eq. 12-15; Psomas 2020, Eq. 2.24.
    """

    unbounded = True

    def __init__(
        self,
        alpha: Pull = 2.0,
        beta: Push = 50.0,
        m: Base = 0.5,
        epsilon: Annotated[
            float,
            Slider(
                0.01, 1, r"\epsilon", "Mining: keep pairs whose hardest rival is within this similarity", optional=True
            ),
        ] = 0.1,
        similarity: str = "cosine",
    ) -> None:
        super().__init__()
        self.alpha, self.beta, self.m, self.epsilon, self.similarity = alpha, beta, m, epsilon, similarity

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = (
            pairs.cosines()
            if self.similarity == "cosine"
            else clip_to_unit_ball(pairs.rows) @ clip_to_unit_ball(pairs.columns).mT
        )
        positive, negative = select_hard_pairs(s, pairs.positive, pairs.negative, self.epsilon)
        self.record_counts((positive | negative).float(), pairs.positive | pairs.negative)
        pull = log1p_exp(masked_lse(-self.alpha * (s - self.m), positive)) / self.alpha
        push = log1p_exp(masked_lse(self.beta * (s - self.m), negative)) / self.beta
        return (pull + push).sum() / max(len(s), 1)


def select_hard_pairs(s: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Select positives with s < largest negative + epsilon, and negatives with s > smallest positive - epsilon.

    A row without a positive or without a negative selects no pair, unless epsilon is inf, which selects all pairs.

    Args:
        s: Similarities, shape (B, R).
        positive: Mask of positive pairs, shape (B, R).
        negative: Mask of negative pairs, shape (B, R).
        epsilon: Amount by which both thresholds are relaxed.

    Returns:
        Masks of the selected positives and negatives.

    Reference:
        Wang et al. 2019, Eq. 7, 8.
    """
    if epsilon == torch.inf:
        return positive, negative
    s = s.detach()
    hardest = s.masked_fill(~negative, -torch.inf).amax(1, keepdim=True)
    easiest = s.masked_fill(~positive, torch.inf).amin(1, keepdim=True)
    return positive & (s < hardest + epsilon), negative & (s > easiest - epsilon)


@batch_loss(
    "binomial_deviance",
    title="Binomial deviance",
    latex=r"\operatorname{mean}_i\ \operatorname{mean}_{P_i} \log\bigl(1 + e^{-\alpha(s_{ij} - m)}\bigr)"
    r" + \operatorname{mean}_{N_i} \log\bigl(1 + e^{\alpha C(s_{ik} - m)}\bigr)",
    source="Yi et al. 2014; Zabihzadeh et al. 2021, Eq. 17",
    sentence="Logistic regression on pairs of samples. Errors on pairs of two classes cost more.",
)
class BinomialDeviance(PairLoss):
    """Logistic loss of pairs, averaged over the positives and over the negatives of each anchor, then over the anchors.

    A positive contributes log(1 + e^-alpha(s - m)) and a negative log(1 + e^(alpha C (s - m))), where s is the cosine
    similarity and C is `cost`.

    Reference:
        Yi et al. 2014; Zabihzadeh et al. 2021, Eq. 17, whose slope for negatives is alpha C = 50 (25 in its
        implementation).
    """

    unbounded = True

    def __init__(
        self,
        alpha: Annotated[float, Slider(0.5, 10, r"\alpha", "Steepness", step=0.1, above=0)] = 2.0,
        m: Base = 0.5,
        cost: Annotated[
            float, Slider(1, 50, "C", "Steepness for negatives over that for positives", step=0.5, above=0)
        ] = 25.0,
    ) -> None:
        super().__init__()
        self.alpha, self.m, self.cost = alpha, m, cost

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = pairs.cosines() - self.m
        terms = log1p_exp(torch.where(pairs.positive, -self.alpha * s, self.alpha * self.cost * s))
        pull, push = (terms.masked_fill(~mask, 0.0) for mask in (pairs.positive, pairs.negative))
        loss = mean(pull.sum(1), pairs.positive.sum(1)) + mean(push.sum(1), pairs.negative.sum(1))
        return loss.sum() / max(len(s), 1)
