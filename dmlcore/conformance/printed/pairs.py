"""Losses of pairs and triplets as printed in their sources.

x holds embeddings (B, D) in float64 and y is a list of B labels. Losses return a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

Between = Callable[[Tensor, Tensor], Tensor]
ZERO = torch.zeros((), dtype=torch.float64)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner product of two vectors."""
    return (a * b).sum()


def unit(a: Tensor) -> Tensor:
    """Return `a` divided by its norm."""
    return a / dot(a, a).sqrt()


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine similarity of two vectors."""
    return dot(unit(a), unit(b))


def length(a: Tensor, b: Tensor) -> Tensor:
    """Return the Euclidean distance between the normalised vectors."""
    difference = unit(a) - unit(b)
    return dot(difference, difference).sqrt()


def total(terms: list[Tensor]) -> Tensor:
    """Return the sum of the terms, or 0 for an empty list."""
    return torch.stack(terms).sum() if terms else ZERO.clone()


def average(terms: list[Tensor]) -> Tensor:
    """Return the mean of the terms, or 0 for an empty list."""
    return torch.stack(terms).mean() if terms else ZERO.clone()


def above_zero(terms: list[Tensor]) -> Tensor:
    """Return the mean of the terms above 0, or 0 if there are none."""
    return average([term for term in terms if term > 0])


def log_sum(terms: list[Tensor], *more: float) -> Tensor:
    """Compute log Σ e^term, with the constants `more` as further terms."""
    return torch.logsumexp(torch.stack([*terms, *(ZERO + value for value in more)]), 0)


def hinge(value: Tensor) -> Tensor:
    """Return the positive part of a value: the value if it is above 0, otherwise 0."""
    return value if value > 0 else value * 0


def others(y: list[int], i: int, *, same: bool) -> list[int]:
    """Return the indices of the positives of sample i if `same`, otherwise the indices of its negatives."""
    return [j for j in range(len(y)) if j != i and (y[j] == y[i]) == same]


def triplets(y: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the indices of all triplets (anchor, positive, negative)."""
    for a in range(len(y)):
        for p in others(y, a, same=True):
            for n in others(y, a, same=False):
                yield a, p, n


def contrastive(x: Tensor, y: list[int], m_pos: float, m_neg: float) -> Tensor:
    """Compute the contrastive loss, the sum of a positive and a negative term.

    They are the means of [d - m_pos]+ over positive pairs and of [m_neg - d]+ over negative pairs. Each mean is over
    the pairs with a value above 0.
    """
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if i != j]
    pull = [hinge(length(x[i], x[j]) - m_pos) for i, j in pairs if y[i] == y[j]]
    push = [hinge(m_neg - length(x[i], x[j])) for i, j in pairs if y[i] != y[j]]
    return above_zero(pull) + above_zero(push)


def threshold_consistent(x: Tensor, y: list[int], m_pos: float, m_neg: float) -> Tensor:
    """Compute the threshold-consistent margin, the sum of a positive and a negative term.

    They are the means of m_pos - s over positive pairs with s <= m_pos and of s - m_neg over negative pairs with
    s >= m_neg, where s is the cosine similarity.
    """
    pairs = [(cosine(x[i], x[j]), y[i] == y[j]) for i in range(len(y)) for j in range(i)]
    pull = [m_pos - s for s, same in pairs if same and s <= m_pos]
    push = [s - m_neg for s, same in pairs if not same and s >= m_neg]
    return average(pull) + average(push)


def triplet_terms(x: Tensor, y: list[int], m: float, between: Between = length, *, swap: bool = False) -> list[Tensor]:
    """Return d_ap - d_an + m for all triplets, before the hinge.

    With `swap`, min(d_an, d_pn) replaces d_an (Balntas et al. 2016).
    """
    result = []
    for a, p, n in triplets(y):
        far = between(x[a], x[n])
        if swap:
            far = torch.minimum(far, between(x[p], x[n]))
        result.append(between(x[a], x[p]) - far + m)
    return result


def apart(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine distance of two vectors, 1 - cosine."""
    return 1 - cosine(a, b)


def soft_triplet(x: Tensor, y: list[int], between: Between = length) -> Tensor:
    """Compute the mean over the triplets of log(1 + e^(d_ap - d_an))."""
    return average([log_sum([term], 0.0) for term in triplet_terms(x, y, 0.0, between)])


def lifted(x: Tensor, y: list[int], alpha: float) -> Tensor:
    """Compute 1 / (2 |P|) Σ over positive pairs {i, j} of [log Σ_(negatives of i or j) e^(alpha - d) + d_ij]+^2."""
    terms = []
    for i in range(len(y)):
        for j in others(y, i, same=True):
            if j < i:
                continue
            ends = [alpha - length(x[end], x[k]) for end in (i, j) for k in others(y, end, same=False)]
            terms.append(hinge(log_sum(ends) + length(x[i], x[j])) ** 2)
    return average(terms) / 2


def generalised_lifted(x: Tensor, y: list[int], m: float, *, singletons: bool = False) -> Tensor:
    """Compute the generalised lifted structure loss, Σ_i [LSE_P(m - s) + LSE_N(s)]+.

    LSE is the log-sum-exp over the positives (P) or negatives (N) of anchor i, and s their cosine to the anchor. With
    `singletons`, anchors without a positive are included, with their negatives only.
    """
    terms = []
    for i in range(len(y)):
        positives, negatives = others(y, i, same=True), others(y, i, same=False)
        if not positives and not singletons:
            continue
        pull = log_sum([m - cosine(x[i], x[j]) for j in positives]) if positives else ZERO
        terms.append(hinge(pull + log_sum([cosine(x[i], x[k]) for k in negatives])))
    return total(terms)


def n_pairs(x: Tensor, y: list[int]) -> Tensor:
    """Compute the mean over classes of log(1 + Σ_(other classes) e^(f·f_j+ - f·f+)) on two samples per class."""
    classes = sorted({label for label in y if y.count(label) > 1})
    first = [y.index(label) for label in classes]
    second = [y.index(label, start + 1) for label, start in zip(classes, first, strict=True)]
    terms = []
    for c, anchor in enumerate(first):
        own = dot(x[anchor], x[second[c]])
        rivals = [dot(x[anchor], x[second[k]]) - own for k in range(len(classes)) if k != c]
        terms.append(log_sum(rivals, 0.0))
    return average(terms)


def nt_xent(x: Tensor, y: list[int], temperature: float, *, all_below: bool = True) -> Tensor:
    """Compute the mean over ordered positive pairs of -log e^(s_ij/t) / Σ_(k != i) e^(s_ik/t).

    If `all_below` is False, the denominator omits the other positives of i.
    """
    terms = []
    for i in range(len(y)):
        for j in others(y, i, same=True):
            below = [k for k in range(len(y)) if k != i and (all_below or y[k] != y[i] or k == j)]
            own = cosine(x[i], x[j]) / temperature
            terms.append(log_sum([cosine(x[i], x[k]) / temperature for k in below]) - own)
    return average(terms)


def supervised_contrastive(x: Tensor, y: list[int], temperature: float) -> Tensor:
    """Compute the mean over anchors with a positive of -1/|P| Σ_P log e^(s_ip/t) / Σ_(k != i) e^(s_ik/t)."""
    terms = []
    for i in range(len(y)):
        positives = others(y, i, same=True)
        if positives:
            below = log_sum([cosine(x[i], x[k]) / temperature for k in range(len(y)) if k != i])
            terms.append(average([below - cosine(x[i], x[j]) / temperature for j in positives]))
    return average(terms)


def margin(x: Tensor, y: list[int], alpha: float, beta: float, *, by_triplets: bool = False) -> Tensor:
    """Compute the margin loss, the mean of the pair terms that are above 0.

    The terms are [alpha + d - beta]+ for positive pairs and [alpha + beta - d]+ for negative pairs, where d is the
    distance of the pair. Each pair counts once, or, with `by_triplets`, once per triplet that contains it.
    """
    pull = {(i, j): hinge(alpha + length(x[i], x[j]) - beta) for i in range(len(y)) for j in others(y, i, same=True)}
    push = {(i, k): hinge(alpha + beta - length(x[i], x[k])) for i in range(len(y)) for k in others(y, i, same=False)}
    if not by_triplets:
        return above_zero([*pull.values(), *push.values()])
    return above_zero([term for a, p, n in triplets(y) for term in (pull[a, p], push[a, n])])


def multi_similarity(
    x: Tensor,
    y: list[int],
    alpha: float,
    beta: float,
    base: float,
    epsilon: float | None = None,
    anchors: Sequence[int] | None = None,
) -> Tensor:
    """Compute the multi-similarity loss.

    It is the mean over anchors of 1/alpha log(1 + Σ_P e^(-alpha (s - base))) + 1/beta log(1 + Σ_N e^(beta (s - base))).
    P and N are the positives and negatives of the anchor, and s is their cosine similarity to it.

    If `epsilon` is given, the sums contain only positives with s < max_N s + epsilon and negatives with s > min_P s -
    epsilon. If `anchors` is given, only these samples are anchors.
    """
    terms = []
    for i in range(len(y)) if anchors is None else anchors:
        p = [cosine(x[i], x[j]) for j in others(y, i, same=True)]
        n = [cosine(x[i], x[k]) for k in others(y, i, same=False)]
        if epsilon is not None:
            hardest = max((s.item() for s in n), default=-torch.inf)
            easiest = min((s.item() for s in p), default=torch.inf)
            p, n = [s for s in p if s < hardest + epsilon], [s for s in n if s > easiest - epsilon]
        pull = log_sum([-alpha * (s - base) for s in p], 0.0) / alpha
        terms.append(pull + log_sum([beta * (s - base) for s in n], 0.0) / beta)
    return average(terms)


def cross_batch(x: Tensor, y: list[int], memory: Tensor, held: list[int], m: float) -> Tensor:
    """Compute the contrastive loss of a batch against a memory whose last len(x) rows are the batch itself.

    `held` contains the labels of `memory`. Pairs of a sample with itself are excluded. With d the Euclidean distance
    between unnormalised vectors, the loss is the mean of d over positive pairs plus the mean of [m - d]+ over negative
    pairs. Each mean is over the pairs with a value above 0.
    """
    pull: list[Tensor] = []
    push: list[Tensor] = []
    for i in range(len(y)):
        for j in range(len(held)):
            if j == len(held) - len(y) + i:
                continue
            difference = x[i] - memory[j]
            d = dot(difference, difference).sqrt()
            (pull if y[i] == held[j] else push).append(d if y[i] == held[j] else hinge(m - d))
    return above_zero(pull) + above_zero(push)
