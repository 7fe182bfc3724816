"""Checks of the errata of Zabihzadeh et al. 2021 about the members and the sum of an ensemble, scores and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise

import numpy as np
import torch
from torch import nn

from dmlcore import metrics
from dmlcore.losses.engine.ensemble import diversity
from dmlcore.losses.ensembles import initial_weights
from dmlcore.losses.structured import NPair
from dmlcore.published.checks.curves_of_sets import exponential, rescaled
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.checks.printed_tables import cell, printed
from dmlcore.typing import Floats


def _sign() -> Iterable[Outcome]:
    """Compare the gradient with respect to a negative on the unit circle, with the printed and with the true sign."""
    at = torch.tensor([0.0, 0.9, 1.7], dtype=torch.float64, requires_grad=True)  # angles
    x = torch.stack([at.cos(), at.sin()], 1)
    s = (x @ x.mT).detach()
    (slope,) = torch.autograd.grad(NPair("all")(x, torch.tensor([0, 0, 1])), at)
    weights = [torch.sigmoid(s[i, 2] - s[0, 1]) for i in (0, 1)]
    turned = [
        torch.sin(at.detach()[i] - at.detach()[2]) for i in (0, 1)
    ]  # derivatives of S_i2, the similarity of sample i to the negative, with respect to the negative's angle
    true = float(sum(w * t for w, t in zip(weights, turned, strict=True)) / 3)
    yield Decision(
        "derivative of the loss with respect to the angle of the negative",
        -true,
        true,
        float(slope[2]),
        "automatic differentiation",
    )


def _running_mean() -> Iterable[Outcome]:
    first, last = np.eye(10)[[0, 9]]
    weights = [float(of(first) / of(last)) for of in (exponential, np.mean, rescaled)]
    what = "weight of the first of ten losses over that of the last"
    yield Decision(what, weights[0], weights[1], weights[2], "the rescaling of the ensemble")


def _squares() -> Iterable[Outcome]:
    f = torch.tensor([[0.6, 0.8], [1.0, 0.0]], dtype=torch.float64)
    twice = torch.cat([f, f])
    doubled = torch.stack([twice, twice.roll(1, 1)], 1), torch.stack([f, f.roll(1, 1)], 1)
    growth = float(diversity(doubled[0]) / diversity(doubled[1]))
    yield Decision("growth when every sample is repeated", 2.0, 1.0, growth, "the mean over the batch")


def twelve() -> tuple[Floats, list[int]]:
    """Return the batch that the tests also use: twelve five-dimensional embeddings and their labels, 3 per class."""
    labels = [i // 3 for i in range(12)]
    i, d, y = np.arange(12)[:, None], np.arange(5), np.array(labels)[:, None]
    return 0.8 * np.cos(1.7 * y + 0.9 * d * (y + 1)) + 0.9 * np.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1), labels


def _three_neighbours() -> Iterable[Outcome]:
    x, labels = twelve()
    scores = metrics.retrieval(x, labels)
    yield Number("kNN(3) of the twelve, two of three", "0.750", scores.knn3 or 0.0)
    yield Number("kNN(3) of the twelve, majority with ties to the nearest", "0.833", scores.knn3_majority or 0.0)
    gallery = ([[1.0], [2.0], [3.0], [9.0]], [0, 1, 2, 0])
    voters = gallery[1][:3]
    majority = max(voters, key=lambda label: (voters.count(label), -voters.index(label)))
    referee = metrics.retrieval([[0.0]], [0], gallery=gallery[0], gallery_labels=gallery[1]).knn3_majority
    yield Decision(
        "a query whose three neighbours have three labels, the nearest its own",
        float(voters.count(0) >= 2),
        float(majority == 0),
        math.nan if referee is None else referee,
        "the rule of the implementation",
    )


def _compressed_size() -> Iterable[Outcome]:
    M, e = 4, 64
    layers = [M * e, 2 * e, 2 * e]  # layer sizes in our implementation
    network = nn.Sequential(*[part for a, b in pairwise(layers) for part in (nn.Linear(a, b), nn.Tanh())][:-1])
    referee = network(torch.zeros(1, M * e)).shape[1]
    yield Decision(
        "dimensions of a compressed embedding, e = 64", e, layers[-1], referee, "the network of the implementation"
    )


def _best_marks() -> Iterable[Outcome]:
    for table, column, true in (("Z-3", "Recall@4", 97.89), ("Z-4", "NMI", 66.88), ("Z-5", "Recall@8", 93.72)):
        marked = cell(table, "WEDL-DML", column)
        best = max(float(row.values[column] or 0) for row in printed(table).rows)
        yield Decision(f"best {column} of Table {table[2:]}", marked, true, best, "the maximum of the column")


# weights that WEDL learned on Flowers-102, as printed below Table 6, and the members that they belong to
LEARNED = {
    "triplet": ("Triplet Loss", 0.10),
    "binomial": ("Binomial Loss", 0.30),
    "proxy_nca": ("Proxy-NCA", 0.39),
    "classifier": ("Classification Loss", 0.21),
}


def _learned_weights() -> Iterable[Outcome]:
    scores = [(cell("Z-3", title, "Recall@1"), weight) for title, weight in LEARNED.values()]
    ordered = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in combinations(scores, 2))
    yield Decision("pairs of losses, of six, whose weights have the order of R@1", 6, 5, ordered, "Table 3")
    yield Number("R@1 of the classification loss", "85.74", cell("Z-3", "Classification Loss", "Recall@1"))
    yield Number("R@1 of binomial deviance", "85.21", cell("Z-3", "Binomial Loss", "Recall@1"))
    for (title, _), weight, eighths in zip(
        LEARNED.values(), initial_weights("source", list(LEARNED)), "1232", strict=True
    ):
        yield Number(f"first weight of {title} in eighths", eighths, 8 * weight)


CHECKS: Mapping[int, Check] = {
    85: _sign,
    86: _running_mean,
    87: _squares,
    92: _three_neighbours,
    93: _compressed_size,
    94: _best_marks,
    117: _learned_weights,
}
