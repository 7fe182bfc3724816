"""Reference miners and scores, written as published, with plain loops over sorted lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from torch import Tensor

from dmlcore.conformance.printed.pairs import Between, cosine, length, others, triplets

Triple = tuple[int, int, int]


def table(x: Tensor, between: Between = length) -> dict[tuple[int, int], float]:
    """Return the distances between all pairs of different samples x[i] and x[j], keyed by (i, j)."""
    return {(i, j): float(between(x[i], x[j])) for i in range(len(x)) for j in range(len(x)) if i != j}


def where(x: Tensor, y: list[int], keep: Callable[[float], bool]) -> list[Triple]:
    """Return the triplets for which `keep(d_an - d_ap)` is true."""
    d = table(x)
    return [(a, p, n) for a, p, n in triplets(y) if keep(d[a, n] - d[a, p])]


def one_each(x: Tensor, y: list[int], *, farthest: bool, semi_hard: bool = False) -> list[Triple]:
    """Return one triplet per anchor, with its farthest or nearest positive and its nearest negative.

    With `semi_hard`, only negatives that are farther away than the chosen positive are considered. Anchors without a
    positive or such a negative are skipped.
    """
    d, result = table(x), []
    for a in range(len(y)):
        positives, negatives = others(y, a, same=True), others(y, a, same=False)
        if not positives:
            continue
        p = (max if farthest else min)(positives, key=lambda j: d[a, j])
        beyond = [k for k in negatives if not semi_hard or d[a, k] > d[a, p]]
        if beyond:
            result.append((a, p, min(beyond, key=lambda k: d[a, k])))
    return result


def hard_pairs(x: Tensor, y: list[int], epsilon: float) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return positive pairs with s < max_N s + epsilon and negative pairs with s > min_P s - epsilon.

    s is the cosine similarity to the anchor, P and N are the positives and negatives of the anchor.
    """
    s = table(x, cosine)
    pull, push = [], []
    for i in range(len(y)):
        p, n = others(y, i, same=True), others(y, i, same=False)
        hardest, easiest = max((s[i, k] for k in n), default=-math.inf), min((s[i, j] for j in p), default=math.inf)
        pull += [(i, j) for j in p if s[i, j] < hardest + epsilon]
        push += [(i, k) for k in n if s[i, k] > easiest - epsilon]
    return pull, push


def wide_angles(x: Tensor, y: list[int], degrees: float, *, raw: bool = False) -> list[Triple]:
    """Return the triplets whose angle arctan(|a - p| / (2 |n - (a + p) / 2|)) exceeds `degrees`.

    The vectors are normalised unless `raw`.
    """
    x = x if raw else x / x.norm(dim=1, keepdim=True)
    result = []
    for a, p, n in triplets(y):
        to_centre = float((x[n] - (x[a] + x[p]) / 2).norm())
        if math.degrees(math.atan2(float((x[a] - x[p]).norm()), 2 * to_centre)) > degrees:
            result.append((a, p, n))
    return result


def ranked(x: Tensor, y: list[int]) -> list[list[bool]]:
    """Return one list per query with the relevance of the other items, in order of increasing Euclidean distance."""
    lists = []
    for q in range(len(y)):
        order = sorted((j for j in range(len(y)) if j != q), key=lambda j: float(((x[q] - x[j]) ** 2).sum()))
        lists.append([y[j] == y[q] for j in order])
    return lists


def mean_score(x: Tensor, y: list[int], score: Callable[[list[bool], int], float]) -> float:
    """Return the mean of score(relevance, R) over all queries that have R > 0 relevant items.

    The relevance is a list of booleans over the other items, nearest first.
    """
    values = [score(marks, sum(marks)) for marks in ranked(x, y) if any(marks)]
    return sum(values) / len(values)


def precision_at_1(marks: list[bool], _: int) -> float:
    """Return 1 if the nearest item is relevant, otherwise 0. The second argument is not used."""
    return float(marks[0])


def r_precision(marks: list[bool], r: int) -> float:
    """Return the share of relevant items among the first `r`, where `r` is the number of relevant items."""
    return sum(marks[:r]) / r


def average_precision(marks: list[bool], r: int, first: int | None = None, divisor: int | None = None) -> float:
    """Return 1/R Σ rel_i P@i over the first `first` items, or over all if None; `divisor` replaces the number R."""
    hits = [sum(marks[: i + 1]) / (i + 1) for i in range(len(marks) if first is None else first) if marks[i]]
    return sum(hits) / (r if divisor is None else max(divisor, 1))


def map_at_r(marks: list[bool], r: int) -> float:
    """Compute the MAP@R of one query, 1/R Σ_(i <= R) rel_i P@i."""
    return average_precision(marks, r, r)


def reciprocal_rank(marks: list[bool], _: int) -> float:
    """Return one divided by the rank of the first relevant item."""
    return 1 / (1 + marks.index(True))


def entropies(a: list[int], b: list[int]) -> tuple[float, float, float]:
    """Return the entropies of two partitions and their mutual information, in nats: (H_a, H_b, I)."""
    n, rows, columns, joint = len(a), Counter(a), Counter(b), Counter(zip(a, b, strict=True))
    h_a, h_b = (-sum(k / n * math.log(k / n) for k in c.values()) for c in (rows, columns))
    mutual = sum(k / n * math.log(k * n / (rows[i] * columns[j])) for (i, j), k in joint.items())
    return h_a, h_b, mutual


def nmi(a: list[int], b: list[int]) -> float:
    """Compute the normalised mutual information of two partitions, I / ((H_a + H_b) / 2)."""
    h_a, h_b, mutual = entropies(a, b)
    return mutual / ((h_a + h_b) / 2)


def ami(a: list[int], b: list[int]) -> float:
    """Compute the adjusted mutual information of two partitions, (I - E[I]) / ((H_a + H_b) / 2 - E[I]).

    E is the expectation over random partitions with the same cluster sizes (hypergeometric).
    """
    h_a, h_b, mutual = entropies(a, b)
    n, expected = len(a), 0.0
    for row in Counter(a).values():
        for column in Counter(b).values():
            for k in range(max(1, row + column - n), min(row, column) + 1):
                chance = math.comb(row, k) * math.comb(n - row, column - k) / math.comb(n, column)
                expected += chance * k / n * math.log(n * k / (row * column))
    return (mutual - expected) / ((h_a + h_b) / 2 - expected)
