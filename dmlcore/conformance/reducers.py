"""Conformance cases of samplers, and of reducers applied to the hinge terms of all triplets with margin 0.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from dmlcore.conformance.case import Case, Computation, Outcome, evaluate_loss
from dmlcore.conformance.losses import catalogue
from dmlcore.conformance.printed import pairs
from dmlcore.conformance.vectors import BALANCED


def reduced(how: Callable[[list[Tensor], list[int]], Tensor]) -> Computation:
    """Return a function that evaluates how(terms, labels) on a batch, with its gradient.

    `terms` are the hinge terms of all triplets with margin 0.5, and `labels` the classes of their anchors.
    """

    def loss(x: Tensor, y: list[int]) -> Tensor:
        terms = [pairs.hinge(term) for term in pairs.triplet_terms(x, y, 0.5)]
        return how(terms, [y[a] for a, _, _ in pairs.triplets(y)])

    return lambda v: evaluate_loss(lambda x: loss(x, v.names), v)


def _triplets(divisor: str) -> Computation:
    return catalogue("triplet", unit=True, m=0.5, distance="euclidean", divisor=divisor)


def _per_anchor(count_all: bool) -> Computation:
    def loss(x: Tensor, y: list[int]) -> Tensor:
        rows = []
        for i in range(len(y)):
            positives = pairs.others(y, i, same=True)
            rows.append(pairs.average([pairs.hinge(pairs.length(x[i], x[j]) - 0.2) for j in positives]))
        kept = [row for row, i in zip(rows, range(len(y)), strict=True) if count_all or y.count(y[i]) > 1]
        return pairs.average(kept)

    return lambda v: evaluate_loss(lambda x: loss(x, v.names), v)


def reducer(name: str, title: str, printed: Computation, **rest: Any) -> Case:
    """Create a conformance case of a reducer."""
    return Case(name, "reducer", title, "as its name says", printed, **rest)


REDUCERS = (
    reducer("mean", "Mean of all terms", reduced(lambda t, _: pairs.average(t)), ours=_triplets("pairs")),
    reducer("sum", "Sum", reduced(lambda t, _: pairs.total(t)), ours=_triplets("one")),
    reducer(
        "above_zero", "Mean of the terms above 0", reduced(lambda t, _: pairs.above_zero(t)), ours=_triplets("nonzero")
    ),
    reducer(
        "between",
        "Mean of the terms in (0.1, 0.4)",
        reduced(lambda t, _: pairs.average([x for x in t if 0.1 < x.item() < 0.4])),
    ),
    reducer(
        "class_weighted",
        "Weighted by the class of the anchor, over the number of terms",
        reduced(lambda t, y: pairs.average([(1 + c) * x for x, c in zip(t, y, strict=True)])),
    ),
    reducer(
        "per_anchor",
        "Mean over anchors with pairs of the mean of each",
        _per_anchor(False),
        variants={"anchors without a pair count as 0": _per_anchor(True)},
    ),
)


# ---- samplers: number of violations of their documented behaviour, in 100 batches or ten epochs


def sampler(name: str, title: str, source: str) -> Case:
    """Create a conformance case of a sampler. Its result is a number of violations, which should be 0."""
    return Case(name, "sampler", title, source, lambda v: Outcome(0.0), on=(BALANCED,))


SAMPLERS = (
    sampler("m_per_class", "Batches of 4 classes, 3 different samples of each", "P x K, Hermans et al. 2017"),
    sampler("sampler_length", "Samples given beyond the length it states", "the contract of a sampler"),
    sampler("epoch_of_classes", "Classes that an epoch gives not exactly once", "the library's description"),
)
# class of each sample that the samplers draw from: 24 classes with 3 to 6 samples each
LABELS = [c for c in range(24) for _ in range(3 + c % 4)]


def misshapen(batches: Sequence[Sequence[int]], classes: int, each: int) -> Outcome:
    """Count the batches that do not consist of `classes` classes with `each` distinct samples."""
    bad = 0
    for batch in batches:
        labels = [LABELS[i] for i in batch]
        counts = {labels.count(label) for label in labels}
        bad += len(set(batch)) < len(batch) or counts != {each} or len(set(labels)) != classes
    return Outcome(float(bad))
