"""Mean-field losses, which replace the pairs of a batch by pairs of a sample and the learned mean field of a class."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.losses.engine.batch_loss import ProxyLoss, batch_loss, log1p_exp
from dmlcore.losses.engine.distances import unit
from dmlcore.losses.engine.table import Counts
from dmlcore.losses.pairs import Base, Push

Weight = Annotated[float, Slider(0, 10, r"\lambda", "Weight of the repulsion between mean fields; 0: none", least=0)]


class MeanFieldLoss(ProxyLoss):
    """Base class of mean-field losses, in which each class has one learned mean field, stored in `proxies`.

    Only the directions of embeddings and mean fields count. The loss is `interaction` of their cosine similarities,
    plus `weight` times the mean over the mean fields of Σ overlap(s)^2, where s are the cosine similarities to the
    other mean fields.

    Reference:
        Furusawa 2024. Formulas and defaults are those of the author's code, in which the power of the overlap is 2 and
        all published commands have weight 0.
    """

    def __init__(self, weight: float, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim)
        self.weight = weight

    def interaction(self, s: Tensor, labels: Tensor) -> Tensor:
        """Compute the scalar loss from cosine similarities (B, classes) of samples to mean fields, and labels (B,)."""
        raise NotImplementedError

    def overlap(self, s: Tensor) -> Tensor:
        """Compute by how much two mean fields of cosine similarity `s` are too close; the shape is that of `s`."""
        raise NotImplementedError

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the mean fields."""
        fields = unit(proxies)
        loss = self.interaction(unit(embeddings) @ fields.mT, labels)
        if not self.weight:
            return loss
        itself = torch.eye(self.classes, dtype=torch.bool, device=fields.device)
        overlap = self.overlap(fields @ fields.mT).masked_fill(itself, 0.0)
        return loss + self.weight * overlap.square().sum(1).mean()


@batch_loss(
    "mean_field_contrastive",
    title="Mean-field contrastive",
    latex=r"\operatorname{mean}_i\bigl\{[1 - s_{iy} - m_+]_+ + \textstyle\sum_{c \ne y}[m_- - 1 + s_{ic}]_+\bigr\}"
    r" + \tfrac\lambda C\sum_{c \ne c'}[m_- - 1 + s_{cc'}]_+^2",
    source="Furusawa 2024 (arXiv 2306.15368)",
    sentence="Contrastive loss between samples and one learned mean field per class, which stands for all its samples.",
)
class MeanFieldContrastive(MeanFieldLoss):
    """Contrastive loss of cosine distances between samples and mean fields, see `MeanFieldLoss`.

    It is the mean over samples i of class y of [1 - s_iy - m_pos]+ + Σ_(c != y) [m_neg - 1 + s_ic]+. The overlap of two
    mean fields is [m_neg - 1 + s]+. With weight 0 it equals `contrastive_proxy` with cosine distance, one proxy per
    class and divisor "anchors". The margins are the defaults of the author's code.

    Reference:
        Furusawa 2024 (MeanFieldContrastive).
    """

    def __init__(
        self,
        m_pos: Annotated[
            float, Slider(0, 2, "m_+", "Cosine distance below which the own mean field does not pull", least=0)
        ] = 0.02,
        m_neg: Annotated[
            float, Slider(0.01, 2, "m_-", "Cosine distance beyond which other mean fields do not push", above=0)
        ] = 0.3,
        weight: Weight = 0.0,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(weight, classes, embedding_dim)
        self.m_pos, self.m_neg = m_pos, m_neg
        self.counts = Counts.none()

    def interaction(self, s: Tensor, labels: Tensor) -> Tensor:
        """Compute the scalar loss from cosine similarities (B, classes) of samples to mean fields, and labels (B,)."""
        terms = torch.where(self.own(labels), (1 - s - self.m_pos).relu(), self.overlap(s))
        above = (terms > 0).sum()
        self.counts = Counts.of(torch.full_like(above, terms.numel()), above, above)
        return terms.sum(1).mean()

    def overlap(self, s: Tensor) -> Tensor:
        """Compute [m_neg - 1 + s]+ for cosine similarities `s` of any shape."""
        return (self.m_neg - 1 + s).relu()


@batch_loss(
    "mean_field_multi_similarity",
    title="Mean-field class-wise multi-similarity",
    latex=r"\tfrac1{\alpha K}\textstyle\sum_c\log\bigl(1 + E_c^+\bigr)"
    r" + \tfrac1{2\beta K}\sum_{c \ne c'}\log\bigl(1 + E_{cc'}^- + E_{c'c}^-\bigr),\quad "
    r"E_c^+ = \operatorname{mean}_{i \in c} e^{-\alpha(s_{ic} - m)},\ "
    r"E_{cc'}^- = \operatorname{mean}_{i \in c} e^{\beta(s_{ic'} - m)}",
    source="Furusawa 2024 (arXiv 2306.15368)",
    sentence="Multi-similarity loss between the samples of each class and one learned mean field per class, with one "
    "term per pair of classes.",
)
class MeanFieldMultiSimilarity(MeanFieldLoss):
    """Class-wise multi-similarity loss between samples and mean fields, see `MeanFieldLoss`.

    With E+_c = mean_(i in c) e^(-alpha (s_ic - m)), E-_cc' = mean_(i in c) e^(beta (s_ic' - m)), both 0 for a class c
    without samples, and K classes in the batch, the loss is

        1 / (alpha K) Σ_c log(1 + E+_c) + 1 / (2 beta K) Σ_(c != c') log(1 + E-_cc' + E-_c'c).

    The sums run over all classes. The overlap of two mean fields is 1 / beta log(1 + e^(beta (s - m))). The default
    alpha is so small that the pull hardly depends on the distance: the first sum starts near log(2) / alpha = 69.

    Reference:
        Furusawa 2024 (MeanFieldClassWiseMultiSimilarity).
    """

    def __init__(
        self,
        alpha: Annotated[float, Slider(0.001, 20, r"\alpha", "Steepness of the pull", above=0, log=True)] = 0.01,
        beta: Push = 80.0,
        m: Base = 0.8,
        weight: Weight = 0.0,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(weight, classes, embedding_dim)
        self.alpha, self.beta, self.m = alpha, beta, m

    def interaction(self, s: Tensor, labels: Tensor) -> Tensor:
        """Compute the scalar loss from cosine similarities (B, classes) of samples to mean fields, and labels (B,)."""
        present, group = labels.unique(return_inverse=True)
        pull = log1p_exp(log_means(-self.alpha * (s.gather(1, labels[:, None]) - self.m), group, len(present)))

        # one row per class in the batch, one column per class
        push = log_means(self.beta * (s - self.m), group, len(present))
        mutual = push[:, present]
        push = push.index_copy(1, present, torch.logaddexp(mutual, mutual.mT))
        push = log1p_exp(push).masked_fill(self.own(present), 0.0)
        # of a class in the batch and another class, only pairs with an absent class occur once among these rows
        orders = torch.full_like(push[0], 2.0).index_fill(0, present, 1.0)
        return pull.mean() / self.alpha + (push @ orders).mean() / (2 * self.beta)

    def overlap(self, s: Tensor) -> Tensor:
        """Compute 1 / beta log(1 + e^(beta (s - m))) for cosine similarities `s` of any shape."""
        return log1p_exp(self.beta * (s - self.m)) / self.beta


def log_means(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """Compute log(mean(exp(values))) over the rows of each group.

    Args:
        values: Shape (B, C).
        group: Group of each row, integers in 0..groups-1, shape (B,). Each group has at least one row.
        groups: Number K of groups.

    Returns:
        Shape (K, C).
    """
    index = group[:, None].expand_as(values)
    largest = values.new_full((groups, values.shape[1]), -torch.inf).scatter_reduce(0, index, values.detach(), "amax")
    member = (group == torch.arange(groups, device=group.device)[:, None]).to(values.dtype)
    return largest + ((member @ (values - largest[group]).exp()) / member.sum(1, keepdim=True)).log()
