"""Losses that weigh the pairs of an anchor against each other: lifted structure, N-pair, NT-Xent, SupCon and Circle."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Choice, Slider
from dmlcore.losses.engine.batch_loss import (
    BatchPairs,
    Divisor,
    PairLoss,
    batch_loss,
    log1p_exp,
    masked_lse,
    mean,
    reduce_terms,
)
from dmlcore.losses.engine.distances import first_derivatives_only
from dmlcore.losses.pairs import select_hard_pairs


@batch_loss(
    "lifted_structure",
    title="Lifted structure of a batch",
    latex=r"\textstyle\sum_i \bigl[\operatorname{LSE}_{P_i}(m - s_{ij}) + \operatorname{LSE}_{N_i}(s_{ik})\bigr]_+",
    source="Oh Song et al. 2016, Eq. 4; Psomas 2020, Eq. 2.21; Can 2018, Eq. 2.17",
    sentence="Pulls every anchor to its farthest positives and pushes it from its nearest negatives (softmax weights).",
)
class Lifted(PairLoss):
    """Lifted structure loss in three published forms, selected by `form`.

    "rows" is Σ_i [LSE_P(m - s) + LSE_N(s)]+ over anchors i with cosine similarities s (Psomas 2020, Eq. 2.21; Hermans
    et al. 2017). LSE_P and LSE_N are log-sum-exp over the positives and the negatives of the anchor. Only this form
    uses `divisor`.

    "pairs" is the mean over positive pairs (i, j) of 1/2 [log(Σ_N(i) e^(m - d) + Σ_N(j) e^(m - d)) + d_ij]+^2 with
    Euclidean distances (Oh Song et al. 2016, Eq. 4; Can 2018, Eq. 2.17). It needs the negatives of both samples of a
    pair and therefore does not support a memory.

    "mined" is the mean over i of 2/beta LSE_P(-beta s) + 2/alpha LSE_N(alpha s) over hard pairs (public implementation
    of Psomas 2020).
    """

    def __init__(
        self,
        form: Annotated[
            str,
            Choice(
                ("rows", "pairs", "mined"),
                r"\Sigma",
                "Sum over anchors on cosines, over positive pairs on distances, or over the hard pairs of each anchor",
            ),
        ] = "rows",
        m: Annotated[float, Slider(0, 2, "m", "Margin of rows and pairs", least=0)] = 0.5,
        alpha: Annotated[float, Slider(1, 100, r"\alpha", "Steepness of the push, mined", step=0.5, above=0)] = 40.0,
        beta: Annotated[float, Slider(0.5, 20, r"\beta", "Steepness of the pull, mined", step=0.1, above=0)] = 2.0,
        epsilon: Annotated[
            float,
            Slider(
                0.01, 1, r"\epsilon", "Mining: keep pairs whose hardest rival is within this similarity", optional=True
            ),
        ] = 0.1,
        divisor: Divisor = "anchors",
    ) -> None:
        super().__init__()
        self.form, self.m, self.alpha, self.beta, self.epsilon, self.divisor = form, m, alpha, beta, epsilon, divisor
        self.unbounded = form != "pairs"

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        return {"rows": self._rows, "pairs": self._pairs, "mined": self._mined}[self.form](pairs)

    def _rows(self, pairs: BatchPairs) -> Tensor:
        s = pairs.cosines()
        terms = (masked_lse(self.m - s, pairs.positive) + masked_lse(s, pairs.negative)).relu()
        valid = pairs.positive.any(1) & pairs.negative.any(1)
        self.record_counts(terms.detach(), valid)
        return reduce_terms(terms, valid, self.divisor)

    def _pairs(self, pairs: BatchPairs) -> Tensor:
        if pairs.columns is not pairs.rows:
            raise ValueError(
                "ref_emb: lifted structure over pairs needs the negatives of both samples; choose form = rows"
            )
        d = pairs.distances("euclidean")
        push = masked_lse(self.m - d, pairs.negative)
        terms = (torch.logaddexp(push[:, None], push) + d).relu().square() / 2
        terms = terms.masked_fill(~pairs.positive, 0.0)
        self.record_counts(terms.detach(), pairs.positive)
        return mean(terms.sum(), pairs.positive.sum())

    def _mined(self, pairs: BatchPairs) -> Tensor:
        s = pairs.cosines()
        positive, negative = select_hard_pairs(s, pairs.positive, pairs.negative, self.epsilon)
        self.record_counts((positive | negative).float(), pairs.positive | pairs.negative)
        pull = masked_lse(-self.beta * s, positive).masked_fill(~positive.any(1), 0.0) * (2 / self.beta)
        push = masked_lse(self.alpha * s, negative).masked_fill(~negative.any(1), 0.0) * (2 / self.alpha)
        return (pull + push).sum() / max(len(s), 1)


@batch_loss(
    "n_pair",
    title="N-pair of a batch",
    latex=r"\operatorname{mean}_i \log\bigl(1 + \textstyle\sum_{P_i}\sum_{N_i} e^{s_{ik} - s_{ij}}\bigr)",
    source="Sohn 2016; Psomas 2020, Eq. 2.22; Can 2018, Eq. 2.22",
    sentence="Every positive of an anchor competes with all its negatives at once.",
)
class NPair(PairLoss):
    """N-pair loss in two published forms, selected by `form`.

    "all" is the mean over anchors i of log(1 + Σ_P Σ_N e^(s_in - s_ip)) with cosine similarities s (Psomas 2020, Eq.
    2.22).

    "one" takes the first two samples of each of C classes as anchor and positive. It is the cross-entropy of the inner
    products of the C anchors with the C positives, plus `l2` times a penalty on the norms of these 2 C embeddings.
    `norms` selects the penalty: "squared" is the mean squared norm of anchors plus that of positives (Sohn 2016, Eq.
    10), "mean" is the mean norm of all 2 C embeddings (Can 2018, Eq. 2.22). Both samples must be in the batch, so this
    form does not support a memory.
    """

    def __init__(
        self,
        form: Annotated[
            str,
            Choice(("all", "one"), r"\Sigma", "All pairs on cosines, or one pair of each class on raw inner products"),
        ] = "all",
        l2: Annotated[
            float, Slider(0, 0.2, r"\lambda", "Weight of the norms with one pair", step=0.005, least=0)
        ] = 0.02,
        norms: Annotated[
            str, Choice(("squared", "mean"), r"\|x\|", "Squared norms, or mean norm of the embeddings, with one pair")
        ] = "squared",
    ) -> None:
        super().__init__()
        self.form, self.l2, self.norms = form, l2, norms
        self.unbounded = form == "all"

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        if self.form == "one":
            return self._one(pairs)
        s = pairs.cosines()
        terms = log1p_exp(masked_lse(s, pairs.negative) + masked_lse(-s, pairs.positive))
        return terms.sum() / max(len(s), 1)

    def _one(self, pairs: BatchPairs) -> Tensor:
        if pairs.columns is not pairs.rows:
            raise ValueError(
                "ref_emb: N-pair with one pair per class does not support a reference set; choose form = all"
            )
        order = torch.arange(len(pairs.rows), device=pairs.rows.device)
        partner = pairs.positive & (order > order[:, None])
        # index of the next positive after each sample in the batch
        second = torch.where(partner, order, len(order)).amin(1)
        earlier = (pairs.positive & (order < order[:, None])).any(1)
        anchor = (second < len(order)) & ~earlier  # True for the first sample of each class that has a second one
        positive = torch.zeros(len(order) + 1, dtype=torch.bool, device=order.device)
        positive[torch.where(anchor, second, len(order))] = True
        positive = positive[:-1]
        s = pairs.rows @ pairs.rows.mT
        own = s.gather(1, second.clamp(max=max(len(order) - 1, 0))[:, None])[:, 0]
        lse = masked_lse(s, positive.expand_as(s))
        entropy = mean((lse - own).masked_fill(~anchor, 0.0).sum(), anchor.sum())
        return entropy + self.l2 * self._penalty(pairs.rows, anchor, positive)

    def _penalty(self, x: Tensor, anchor: Tensor, positive: Tensor) -> Tensor:
        """Return the penalty on the norms of the anchors and positives among the embeddings `x`, shape (B, D)."""
        chosen = anchor | positive
        if self.norms == "mean":
            return mean(torch.linalg.vector_norm(x, dim=1).masked_fill(~chosen, 0.0).sum(), chosen.sum())
        return mean(x.square().sum(1).masked_fill(~chosen, 0.0).sum(), anchor.sum())


@batch_loss(
    "nt_xent",
    title="NT-Xent",
    latex=r"\operatorname{mean}_{ij}\ -\log \frac{e^{s_{ij}/\tau}}{e^{s_{ij}/\tau} + \sum_{N_i} e^{s_{ik}/\tau}}",
    source="Sohn 2016; Chen et al. 2020 (SimCLR), Eq. 1",
    sentence="Classifies each positive of an anchor against all negatives of this anchor.",
)
class NTXent(PairLoss):
    """Mean over positive pairs (i, p) of -log e^(s_ip/tau) / (e^(s_ip/tau) + Σ_N e^(s_in/tau)), with cosines s.

    The sum runs over the negatives n of anchor i.

    Reference:
        Sohn 2016; Chen et al. 2020 (SimCLR), Eq. 1; Oord et al. 2018.
    """

    unbounded = True

    def __init__(
        self,
        temperature: Annotated[
            float,
            Slider(0.02, 2, r"\tau", "Temperature: a lower value gives the nearest negatives more weight", above=0),
        ] = 0.1,
    ) -> None:
        super().__init__()
        self.temperature = temperature

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = pairs.cosines() / self.temperature
        terms = log1p_exp(masked_lse(s, pairs.negative)[:, None] - s).masked_fill(~pairs.positive, 0.0)
        return mean(terms.sum(), pairs.positive.sum())


@batch_loss(
    "supervised_contrastive",
    title="Supervised contrastive (SupCon)",
    latex=r"\operatorname{mean}_i\ \tfrac{-1}{|P_i|}\sum_{j \in P_i}"
    r"\log\frac{e^{s_{ij}/\tau}}{\sum_{k\ne i}e^{s_{ik}/\tau}}",
    source="Khosla et al. 2020, Eq. 2",
    sentence="Each positive of an anchor competes with all other samples, including the other positives.",
)
class SupervisedContrastive(PairLoss):
    """Mean over anchors i with a positive of -1/|P| Σ_P log e^(s_ip/tau) / Σ_(k != i) e^(s_ik/tau), with cosines s.

    The outer sum runs over the positives p of the anchor, the inner one over all other samples k.

    Reference:
        Khosla et al. 2020, Eq. 2 (the sum outside the logarithm).
    """

    unbounded = True

    def __init__(
        self,
        temperature: Annotated[
            float, Slider(0.02, 2, r"\tau", "Temperature: a lower value gives the nearest samples more weight", above=0)
        ] = 0.1,
    ) -> None:
        super().__init__()
        self.temperature = temperature

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = pairs.cosines() / self.temperature
        every = masked_lse(s, pairs.positive | pairs.negative)
        terms = mean((every[:, None] - s).masked_fill(~pairs.positive, 0.0).sum(1), pairs.positive.sum(1))
        anchors = pairs.positive.any(1)
        self.record_counts(terms.detach(), anchors)
        return mean(terms.sum(), anchors.sum())


@batch_loss(
    "circle",
    title="Circle",
    latex=r"\operatorname{mean}_i \log\bigl(1 + \textstyle\sum_{N_i} e^{\gamma [s_{ik} + m]_+ (s_{ik} - m)}"
    r"\sum_{P_i} e^{-\gamma [1 + m - s_{ij}]_+ (s_{ij} - 1 + m)}\bigr)",
    source="Sun et al. 2020, Eq. 6 to 8",
    sentence="Each similarity is weighted by its distance from its optimum, so that the worst pairs move fastest.",
)
class Circle(PairLoss):
    """Circle loss, averaged over the anchors that have a positive and a negative.

    The loss of an anchor is log(1 + Σ_N e^(gamma a_n (s_n - m)) Σ_P e^(-gamma a_p (s_p - 1 + m))) with cosine
    similarities s and weights a_n = [s_n + m]+ and a_p = [1 + m - s_p]+. The gradient treats the weights as constants
    (Sun et al. 2020, Eq. 10), so it is not the exact derivative of the loss.

    Reference:
        Sun et al. 2020, Eq. 6 to 8.
    """

    unbounded = True

    def __init__(
        self,
        m: Annotated[float, Slider(0, 1, "m", "Relaxation: radius of the decision boundary", least=0)] = 0.4,
        gamma: Annotated[float, Slider(1, 512, r"\gamma", "Scale of the similarities", step=1, above=0)] = 80.0,
    ) -> None:
        super().__init__()
        self.m, self.gamma = m, gamma

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        s = first_derivatives_only(
            pairs.cosines(),
            "circle has no second derivatives, as its gradient takes weights as constants; try multi_similarity",
        )
        pull = -(1 + self.m - s.detach()).relu() * (s - 1 + self.m)
        push = (s.detach() + self.m).relu() * (s - self.m)
        terms = log1p_exp(masked_lse(self.gamma * push, pairs.negative) + masked_lse(self.gamma * pull, pairs.positive))
        valid = pairs.positive.any(1) & pairs.negative.any(1)
        self.record_counts(terms.detach(), valid)
        return mean(terms.sum(), valid.sum())
