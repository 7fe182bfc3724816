"""Losses of pairs and triplets, as printed. x (B, D) float64, y: B labels; every function returns a scalar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

Between = Callable[[Tensor, Tensor], Tensor]
ZERO = torch.zeros((), dtype=torch.float64)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The inner product."""
    return (a * b).sum()


def unit(a: Tensor) -> Tensor:
    """a over its length."""
    return a / dot(a, a).sqrt()


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosine similarity."""
    return dot(unit(a), unit(b))


def length(a: Tensor, b: Tensor) -> Tensor:
    """The Euclidean distance of the unit vectors."""
    difference = unit(a) - unit(b)
    return dot(difference, difference).sqrt()


def total(terms: list[Tensor]) -> Tensor:
    """The sum; 0 of none."""
    return torch.stack(terms).sum() if terms else ZERO.clone()


def average(terms: list[Tensor]) -> Tensor:
    """The mean; 0 of none."""
    return torch.stack(terms).mean() if terms else ZERO.clone()


def above_zero(terms: list[Tensor]) -> Tensor:
    """The mean of the terms above 0."""
    return average([term for term in terms if term > 0])


def log_sum(terms: list[Tensor], *more: float) -> Tensor:
    """log Σ e^term, with the constants `more` among the terms."""
    return torch.logsumexp(torch.stack([*terms, *(ZERO + value for value in more)]), 0)


def hinge(value: Tensor) -> Tensor:
    """[value]+."""
    return value if value > 0 else value * 0


def others(y: list[int], i: int, *, same: bool) -> list[int]:
    """The positives (same) or negatives of sample i."""
    return [j for j in range(len(y)) if j != i and (y[j] == y[i]) == same]


def triplets(y: list[int]) -> Iterator[tuple[int, int, int]]:
    """All (anchor, positive, negative)."""
    for a in range(len(y)):
        for p in others(y, a, same=True):
            for n in others(y, a, same=False):
                yield a, p, n


def contrastive(x: Tensor, y: list[int], m_pos: float, m_neg: float) -> Tensor:
    """Mean of [d - m_pos]+ above 0 over positive pairs, plus that of [m_neg - d]+ over negative ones."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if i != j]
    pull = [hinge(length(x[i], x[j]) - m_pos) for i, j in pairs if y[i] == y[j]]
    push = [hinge(m_neg - length(x[i], x[j])) for i, j in pairs if y[i] != y[j]]
    return above_zero(pull) + above_zero(push)


def triplet_terms(x: Tensor, y: list[int], m: float, between: Between = length, *, swap: bool = False) -> list[Tensor]:
    """d_ap - d_an + m of all triplets before the hinge; swap: the nearer of d_an and d_pn (Balntas et al. 2016)."""
    result = []
    for a, p, n in triplets(y):
        far = between(x[a], x[n])
        if swap:
            far = torch.minimum(far, between(x[p], x[n]))
        result.append(between(x[a], x[p]) - far + m)
    return result


def apart(a: Tensor, b: Tensor) -> Tensor:
    """The cosine distance, 1 - cosine."""
    return 1 - cosine(a, b)


def soft_triplet(x: Tensor, y: list[int], between: Between = length) -> Tensor:
    """Mean over the triplets of log(1 + e^(d_ap - d_an))."""
    return average([log_sum([term], 0.0) for term in triplet_terms(x, y, 0.0, between)])


def lifted(x: Tensor, y: list[int], alpha: float) -> Tensor:
    """1 / (2 |P|) Σ over positive pairs {i, j} of [log Σ_(negatives of i or j) e^(alpha - d) + d_ij]+^2."""
    terms = []
    for i in range(len(y)):
        for j in others(y, i, same=True):
            if j < i:
                continue
            ends = [alpha - length(x[end], x[k]) for end in (i, j) for k in others(y, end, same=False)]
            terms.append(hinge(log_sum(ends) + length(x[i], x[j])) ** 2)
    return average(terms) / 2


def generalised_lifted(x: Tensor, y: list[int], m: float, *, singletons: bool = False) -> Tensor:
    """Σ_i [LSE_P(m - s) + LSE_N(s)]+; singletons: an anchor without a positive counts with its negatives alone."""
    terms = []
    for i in range(len(y)):
        positives, negatives = others(y, i, same=True), others(y, i, same=False)
        if not positives and not singletons:
            continue
        pull = log_sum([m - cosine(x[i], x[j]) for j in positives]) if positives else ZERO
        terms.append(hinge(pull + log_sum([cosine(x[i], x[k]) for k in negatives])))
    return total(terms)


def n_pairs(x: Tensor, y: list[int]) -> Tensor:
    """Mean over the classes of log(1 + Σ_(other classes) e^(f·f_j+ - f·f+)), the first two samples of each class."""
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
    """Mean over ordered positive pairs of -log e^(s_ij/t) / Σ_(k != i) e^(s_ik/t); not all_below: without the other
    positives of i in the denominator.
    """
    terms = []
    for i in range(len(y)):
        for j in others(y, i, same=True):
            below = [k for k in range(len(y)) if k != i and (all_below or y[k] != y[i] or k == j)]
            own = cosine(x[i], x[j]) / temperature
            terms.append(log_sum([cosine(x[i], x[k]) / temperature for k in below]) - own)
    return average(terms)


def supervised_contrastive(x: Tensor, y: list[int], temperature: float) -> Tensor:
    """Mean over the anchors with a positive of -1/|P| Σ_P log e^(s_ip/t) / Σ_(k != i) e^(s_ik/t)."""
    terms = []
    for i in range(len(y)):
        positives = others(y, i, same=True)
        if positives:
            below = log_sum([cosine(x[i], x[k]) / temperature for k in range(len(y)) if k != i])
            terms.append(average([below - cosine(x[i], x[j]) / temperature for j in positives]))
    return average(terms)


def margin(x: Tensor, y: list[int], alpha: float, beta: float, *, by_triplets: bool = False) -> Tensor:
    """Mean above 0 of [alpha + d - beta]+ over positive and [alpha + beta - d]+ over negative pairs, each pair once.

    by_triplets: each pair as often as it is part of a triplet.
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
    """Mean over the anchors of 1/alpha log(1 + Σ_P e^(-alpha (s - base))) + 1/beta log(1 + Σ_N e^(beta (s - base))).

    epsilon: over positives with s < max_N s + epsilon and negatives with s > min_P s - epsilon only. anchors: these
    alone, of all samples.
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
    """Contrastive loss of a batch against a memory whose last len(x) rows are the batch itself, self matches left out:
    mean above 0 of d over the positives plus that of [m - d]+ over the negatives, Euclidean, not normalised.
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
