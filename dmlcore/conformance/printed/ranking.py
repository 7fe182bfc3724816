"""Losses over ranked lists and sets of similarities, as printed in their sources.

The losses are angular, circle, tuplet margin, FastAP, Smooth AP, ranked list, histogram, neighbourhood components and
the recall surrogate.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dmlcore.conformance.printed.pairs import average, cosine, dot, hinge, length, log_sum, others, total, unit


def angular(x: Tensor, y: list[int], degrees: float, *, raw_negatives: bool = False) -> Tensor:
    """Compute the angular loss, the mean over positive pairs (a, p) of log(1 + Σ_N e^f) on unit vectors.

    f = 4 tan²α (a + p)·n - 2 (1 + tan²α) a·p. With `raw_negatives` the negatives are not normalised.
    """
    slope = math.tan(math.radians(degrees)) ** 2
    terms = []
    for i in range(len(y)):
        for j in others(y, i, same=True):
            a, p = unit(x[i]), unit(x[j])
            negatives = [x[k] if raw_negatives else unit(x[k]) for k in others(y, i, same=False)]
            f = [4 * slope * dot(a + p, n) - 2 * (1 + slope) * dot(a, p) for n in negatives]
            terms.append(log_sum(f, 0.0))
    return average(terms)


def circle(x: Tensor, y: list[int], m: float, gamma: float) -> Tensor:
    """Compute the mean over anchors of log(1 + Σ_N e^(γ α_n (s_n - m)) Σ_P e^(-γ α_p (s_p - 1 + m))).

    α_n = [s_n + m]+ and α_p = [1 + m - s_p]+ are treated as constants in the gradient.
    """
    terms = []
    for i in range(len(y)):
        p = [cosine(x[i], x[j]) for j in others(y, i, same=True)]
        n = [cosine(x[i], x[k]) for k in others(y, i, same=False)]
        if p and n:
            pull = log_sum([-gamma * max(1 + m - s.item(), 0.0) * (s - 1 + m) for s in p])
            push = log_sum([gamma * max(s.item() + m, 0.0) * (s - m) for s in n])
            terms.append(log_sum([pull + push], 0.0))
    return average(terms)


def tuplet_margin(x: Tensor, y: list[int], degrees: float, scale: float) -> Tensor:
    """Compute the mean over positive pairs of log(1 + Σ_N e^(s (cos θ_an - cos(θ_ap - β))))."""
    beta = math.radians(degrees)
    terms = []
    for i in range(len(y)):
        for j in others(y, i, same=True):
            own = torch.cos(torch.acos(cosine(x[i], x[j])) - beta)
            terms.append(log_sum([scale * (cosine(x[i], x[k]) - own) for k in others(y, i, same=False)], 0.0))
    return average(terms)


def fast_ap(x: Tensor, y: list[int], bins: int) -> Tensor:
    """Compute FastAP, the mean over anchors with a positive of 1 - 1/|P| Σ_j h_j+ H_j+ / H_j.

    h_j is the soft count of samples in bin j of the squared distance, with triangular bins; H_j is its cumulative sum,
    and + restricts a count to positives.
    """
    width = 4 / bins
    terms = []
    for i in range(len(y)):
        positives, negatives = others(y, i, same=True), others(y, i, same=False)
        if not positives:
            continue
        precision = torch.zeros((), dtype=torch.float64)
        seen, right = precision, precision
        for edge in range(bins + 1):
            near, far = (
                total([hinge(1 - (length(x[i], x[j]) ** 2 - edge * width).abs() / width) for j in group])
                for group in (positives, negatives)
            )
            right, seen = right + near, seen + near + far
            if (near * right).item() > 0:
                precision = precision + near * right / seen
        terms.append(1 - precision / len(positives))
    return average(terms)


def smooth_ap(x: Tensor, y: list[int], temperature: float, *, itself: bool = False) -> Tensor:
    """Compute Smooth AP, where the sigmoid G approximates a step function.

    It is the mean over queries of 1 - 1/|P| Σ_i (1 + Σ_(j in P) G(s_j - s_i)) / (1 + Σ_(j in P or N) G(s_j - s_i)).
    With `itself`, the query is in the gallery and counts as one of its own positives.
    """
    terms = []
    for q in range(len(y)):
        gallery = [j for j in range(len(y)) if itself or j != q]
        positives = [j for j in gallery if y[j] == y[q]]
        s = {j: cosine(x[q], x[j]) for j in gallery}
        ratios = []
        for i in positives:
            steps = {j: torch.sigmoid((s[j] - s[i]) / temperature) for j in gallery if j != i}
            ahead = total([steps[j] for j in positives if j != i])
            ratios.append((1 + ahead) / (1 + total(list(steps.values()))))
        terms.append(1 - average(ratios))
    return average(terms)


def ranked_list(
    x: Tensor, y: list[int], m: float, alpha: float, hot: float, *, through: bool = False, padding: float = 0.0
) -> Tensor:
    """Compute the ranked list loss, the mean over queries of ½ L_P + ½ L_N.

    L_P is the mean of d - (α - m) over positives farther away than α - m. L_N is the weighted mean of α - d over
    negatives nearer than α. The weights are e^(T (α - d)) with T = `hot`; they are constants in the gradient unless
    `through`. `padding` times the number of samples is added to the divisors of both means.
    """
    terms = []
    for i in range(len(y)):
        p = [length(x[i], x[j]) for j in others(y, i, same=True)]
        pull = [d - (alpha - m) for d in p if d > alpha - m]
        push = [alpha - d for d in (length(x[i], x[k]) for k in others(y, i, same=False)) if d < alpha]
        weights = [torch.exp(hot * (d if through else d.detach())) for d in push]
        loss = torch.zeros((), dtype=torch.float64)
        if pull:
            loss = loss + total(pull) / (len(pull) + padding * len(y)) / 2
        if push:
            weighed = total([w * d for w, d in zip(weights, push, strict=True)])
            loss = loss + weighed / (total(weights) + padding * len(y)) / 2
        terms.append(loss)
    return average(terms)


def histogram(x: Tensor, y: list[int], bins: int) -> Tensor:
    """Compute Σ_r h_r- Σ_(q <= r) h_q+, with triangular histograms of the cosines of positive and negative pairs."""
    width = 2 / bins
    samples: dict[bool, list[Tensor]] = {True: [], False: []}
    for i in range(len(y)):
        for j in range(i):
            samples[y[i] == y[j]].append(cosine(x[i], x[j]))
    near, far = (
        torch.stack(
            [average([hinge(1 - (s - (-1 + width * r)).abs() / width) for s in samples[same]]) for r in range(bins + 1)]
        )
        for same in (True, False)
    )
    return (far * near.cumsum(0)).sum()


def neighbours(x: Tensor, y: list[int]) -> Tensor:
    """Compute the soft nearest neighbour loss of NCA: the mean of -log(Σ_P e^(-d²) / Σ_(k != i) e^(-d²)).

    The mean is over the samples that have a positive; d is the distance between unit vectors.
    """
    terms = []
    for i in range(len(y)):
        positives = others(y, i, same=True)
        if positives:
            every = log_sum([-(length(x[i], x[k]) ** 2) for k in range(len(y)) if k != i])
            terms.append(every - log_sum([-(length(x[i], x[j]) ** 2) for j in positives]))
    return average(terms)


def surrogate_precision(x: Tensor, y: list[int], k: int, inner: float, outer: float, *, itself: bool = False) -> Tensor:
    """Compute 1 - mean over queries of Σ_P σ((k - rank) / inner) / min(k, |P|).

    The rank of a positive x is 1 + Σ_(z != x) σ((d_x - d_z) / outer) over the gallery without the query. d is the
    Euclidean distance from the query between unnormalised vectors. With `itself`, the query is in its own gallery and
    one of its positives, k is increased by one, and a rank is 1/2 plus the sum.
    """
    terms = []
    for q in range(len(y)):
        gallery = [j for j in range(len(y)) if itself or j != q]
        d = {j: ((x[q] - x[j]) ** 2).sum().sqrt() if j != q else x[q].sum() * 0 for j in gallery}
        positives = [j for j in gallery if y[j] == y[q]]
        if positives:
            first, cut = (0.5, k + 1) if itself else (1.0, k)
            ranks = [
                first + total([torch.sigmoid((d[i] - d[j]) / outer) for j in gallery if j != i]) for i in positives
            ]
            result = total([torch.sigmoid((cut - rank) / inner) for rank in ranks])
            terms.append(result / min(cut, len(positives)))
    return 1 - average(terms)
