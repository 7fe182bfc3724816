"""Triplet and quadruplet hinge losses, which sort the distances of each anchor instead of listing triplets."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Choice, Slider
from dmlcore.losses.engine.batch_loss import BatchPairs, Distance, Divisor, PairLoss, batch_loss, mean, reduce_terms
from dmlcore.losses.engine.table import Counts

LISTED = 1 << 18  # largest number of (positive pair, sample) entries for which a CPU lists triplets instead of sorting
NEGATIVES = ("all", "semi_hard", "semi_hard_or_farthest", "window", "hardest")


@batch_loss(
    "triplet",
    title="Triplet, cosine and mined",
    latex=r"\operatorname{mean}\,[d_{ap} - d_{an} + m]_+",
    source="Weinberger & Saul 2009; Schroff et al. 2015; Psomas 2020, Eq. 2.17",
    sentence="Triplet hinge with a choice of distance and of the negatives that each source mines.",
)
class TripletHinge(PairLoss):
    """Triplet hinge [d_ap - d_an + m]+ over all triplets of a batch, or over those that `negatives` selects.

    Triplets that the caller lists are used without further selection. With the divisor "pairs" the sum is divided by
    the number of triplets.

    Args:
        m: Margin.
        distance: See `distances.distance_table`.
        negatives: "all"; "semi_hard" for the nearest negative that is farther than the positive, one per pair (Psomas
            2020, Eq. 2.20); "semi_hard_or_farthest" for the nearest negative that is not closer than the positive or,
            if there is none, the farthest (Can 2018, Eq. 2.11-2.13); "window" for all with 0 < d_an - d_ap <= window
            (as in pytorch-metric-learning and Zabihzadeh et al. 2021); "hardest" for the nearest.
        window: Width of the window.
        divisor: Name of the number by which the sum is divided, see `reduce_terms`.

    Reference:
        Weinberger & Saul 2009; Schroff et al. 2015; Psomas 2020, Eq. 2.17 with cosine distance.
    """

    def __init__(
        self,
        m: Annotated[
            float, Slider(0, 2, "m", "Margin: how much farther than the positive a negative must be", least=0)
        ] = 0.1,
        distance: Distance = "cosine",
        negatives: Annotated[
            str,
            Choice(
                NEGATIVES,
                r"\mathcal N",
                "Negatives of each pair: all, the nearest farther than the positive (or else the farthest), all "
                "within a window, or the hardest",
            ),
        ] = "all",
        window: Annotated[
            float, Slider(0.01, 1, "w", "Window: how much farther than the positive a negative may be", above=0)
        ] = 0.1,
        divisor: Divisor = "nonzero",
    ) -> None:
        super().__init__()
        self.m, self.distance, self.negatives, self.window, self.divisor = m, distance, negatives, window, divisor
        self.unbounded = distance == "cosine"

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        d = pairs.distances(self.distance)
        if pairs.listed is not None:
            a, p, n = pairs.listed
            raw = d[a, p] - d[a, n] + self.m
            return self._reduced(raw.relu(), torch.ones_like(raw, dtype=torch.bool), len(d))
        if self.negatives in ("all", "window"):
            return self._counted(d, pairs)
        chosen, active = self._chosen(d.masked_fill(~pairs.negative, torch.inf), d, pairs)
        raw = d - chosen + self.m
        return self._reduced(raw.relu().masked_fill(~active, 0.0), active, len(d))

    def _reduced(self, terms: Tensor, valid: Tensor, anchors: int) -> Tensor:
        self.record_counts(terms.detach(), valid)
        return terms.sum() / max(anchors, 1) if self.divisor == "anchors" else reduce_terms(terms, valid, self.divisor)

    def _counted(self, d: Tensor, pairs: BatchPairs) -> Tensor:
        """Compute the sum over triplets as Σ (pull count - push count) d, with the counts of `count_triplets`."""
        with torch.no_grad():
            pull, push, valid = count_triplets(d, pairs.positive, pairs.negative, self.m, self._width)
        above = pull.sum()
        self.counts = Counts.of(valid, above, above)
        total = ((pull - push).to(d.dtype) * d).sum() + self.m * above.to(d.dtype)
        if self.divisor in ("nonzero", "pairs"):
            return mean(total, above if self.divisor == "nonzero" else valid)
        return total / max(len(d), 1) if self.divisor == "anchors" else total

    @property
    def _width(self) -> float | None:
        return self.window if self.negatives == "window" else None

    def _chosen(self, negatives: Tensor, d: Tensor, pairs: BatchPairs) -> tuple[Tensor, Tensor]:
        """Return the distance (B, R) to the negative selected for each positive pair, and a mask of pairs with one."""
        near, order = negatives.detach().sort(1)
        count = pairs.negative.sum(1, keepdim=True)
        kept = pairs.positive & (count > 0)
        if self.negatives == "hardest":
            return d.gather(1, order[:, :1]), kept
        strict = self.negatives == "semi_hard"
        rank = torch.searchsorted(near, d.detach().contiguous(), right=strict)
        if strict:
            kept = kept & (rank < count)
        return d.gather(1, order.gather(1, torch.minimum(rank, count - 1).clamp(min=0))), kept


def count_triplets(
    d: Tensor, positive: Tensor, negative: Tensor, m: float, window: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """For each pair, count the triplets with d_an < d_ap + m in which it is the positive or the negative pair.

    Negatives are sorted once, so the cost is O(B R log R). The counts of negative pairs follow from the ranks of the
    positives among the negatives, so rounding cannot make the two counts disagree.

    Args:
        d: Distances, shape (B, R). The pairs of a triplet share the row of the anchor.
        positive: Mask of positive pairs, shape (B, R).
        negative: Mask of negative pairs, shape (B, R).
        m: Margin.
        window: If given, count only triplets with 0 < d_an - d_ap <= window.

    Returns:
        Number of triplets in which each pair is the positive pair, shape (B, R), number in which it is the negative
        pair, shape (B, R), and the number of all triplets, whether or not d_an < d_ap + m.
    """
    if d.device.type == "cpu" and int(positive.sum()) * d.shape[1] <= LISTED:
        return _count_listed(d, positive, negative, m, window)
    near, order = d.masked_fill(~negative, torch.inf).sort(1)
    d = d.contiguous()

    def closer(added: float, strict: bool) -> Tensor:
        """Return the number of negatives with d_an < d_ap + added for each positive pair, and 0 for other pairs.

        The comparison is <= if `strict` is False.
        """
        return torch.searchsorted(near, d + added, right=not strict).masked_fill(~positive, 0)

    if window is None:
        low, high = torch.zeros_like(order), closer(m, strict=True)
        valid = (negative.sum(1) * positive.sum(1)).sum()
    else:
        low = closer(0.0, strict=False)
        high = within = closer(window, strict=False) if m > window else closer(m, strict=True)
        if m < window:
            high, within = torch.maximum(high, low), closer(window, strict=False)
        valid = (within - low).sum()
    marks = torch.zeros(len(d), d.shape[1] + 1, dtype=torch.int64, device=d.device)
    marks.scatter_add_(1, high, positive.long()).scatter_add_(1, low, -positive.long())
    # number of positives with which the negative at each rank forms a counted triplet
    by_rank = marks.flip(1).cumsum(1).flip(1)[:, 1:]
    return high - low, torch.zeros_like(order).scatter_(1, order, by_rank), valid


def _count_listed(
    d: Tensor, positive: Tensor, negative: Tensor, m: float, window: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the result of `count_triplets` by listing the triplets of each positive pair.

    This is faster if samples have few positives, but it requires a synchronisation on a GPU.
    """
    anchors, positives = positive.nonzero(as_tuple=True)
    near, reach = d[anchors], d[anchors, positives][:, None]
    valid = negative[anchors]
    if window is not None:
        valid = valid & (near > reach) & (near <= reach + window)
    costly = valid & (near < reach + m)
    pull = torch.zeros_like(d, dtype=torch.int64).index_put_((anchors, positives), costly.sum(1))
    push = torch.zeros_like(d, dtype=torch.int64).index_add_(0, anchors, costly.long())
    return pull, push, valid.sum()


@batch_loss(
    "quadruplet",
    title="Quadruplet",
    latex=r"\operatorname{mean}_{ij}\,[d_{ij} - \min_k d_{ik} + m_1]_+ + [d_{ij} - \min_{l,k} d_{lk} + m_2]_+",
    source="Chen et al. 2017, Eq. 6, on the hardest negatives",
    sentence="Anchor and positive must be closer together than the anchor and its hardest negative, and closer than "
    "the nearest pair of two other classes.",
)
class Quadruplet(PairLoss):
    """Mean over positive pairs (i, j) of [d_ij - min_k d_ik + m1]+ + [d_ij - min_{l,k} d_lk + m2]+.

    In the first term k is a sample of another class than i; it is a triplet hinge on the hardest negative. In the
    second term l and k belong to two different classes, neither of them that of i; it pushes other negative pairs
    apart.

    Reference:
        Chen et al. 2017, Eq. 6. The hard negatives of Sec. 3.3 are the hardest of the batch. The margins, which adapt
        during training in the paper, are constant here.
    """

    def __init__(
        self,
        m1: Annotated[float, Slider(0, 2, "m_1", "Margin to the hardest negative of the anchor", least=0)] = 1.0,
        m2: Annotated[float, Slider(0, 2, "m_2", "Margin to the nearest pair of two other classes", least=0)] = 0.5,
        distance: Distance = "squared",
    ) -> None:
        super().__init__()
        self.m1, self.m2, self.distance = m1, m2, distance
        self.unbounded = distance == "cosine"

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs."""
        d = pairs.distances(self.distance)
        labels, column_labels = pairs.known_labels()
        negatives = d.masked_fill(~pairs.negative, torch.inf)
        nearest = negatives.min(1)
        rival = column_labels[nearest.indices]
        other = negatives.masked_fill(column_labels == rival[:, None], torch.inf).amin(1)
        # entry (i, l): distance from sample l to its nearest negative that is not of the class of i
        elsewhere = torch.where(rival == labels[:, None], other, nearest.values)
        elsewhere = elsewhere.masked_fill(labels[:, None] == labels, torch.inf).amin(1)
        terms = torch.zeros((), dtype=d.dtype, device=d.device)
        for negative, margin in ((nearest.values, self.m1), (elsewhere, self.m2)):
            known = negative.isfinite()
            hinge = (d - torch.where(known, negative, 0.0)[:, None] + margin).relu()
            terms = terms + hinge.masked_fill(~(pairs.positive & known[:, None]), 0.0)
        self.record_counts(terms.detach(), pairs.positive)
        return mean(terms.sum(), pairs.positive.sum())
