"""Conformance cases of scores of a ranked list (retrieval) and of a partition (clustering)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dmlcore import metrics
from dmlcore.conformance.case import Case, Computation, Outcome
from dmlcore.conformance.printed import choices
from dmlcore.conformance.vectors import BALANCED, FAR_AWAY, HIGH_LABELS, UNEVEN, Vector


def clusters(v: Vector) -> list[int]:
    """Return an arbitrary partition of the batch into three clusters."""
    return [(i * i // 3) % 3 for i in range(len(v.labels))]


LONE = "queries without a relevant item count as 0"


def scored(score: Callable[[list[bool], int], float], *, lone: bool = False) -> Computation:
    """Return a function that averages a printed score over the queries of a batch that have a relevant item.

    If `lone`, the average is over all queries, and those without a relevant item count as 0.
    """

    def computed(v: Vector) -> Outcome:
        answered = sum(any(marks) for marks in choices.ranked(v.embeddings, v.names))
        share = answered / len(v.labels) if lone else 1.0
        return Outcome(choices.mean_score(v.embeddings, v.names, score) * share)

    return computed


def _retrieval(name: str) -> Computation:
    def computed(v: Vector) -> Outcome:
        scores = metrics.retrieval(v.embeddings, v.labels, ks=(1,))
        value = scores.recall_at[1] if name == "recall_at_1" else getattr(scores, name)
        return Outcome(float("nan") if value is None else float(value))

    return computed


def _map_at_2(marks: list[bool], r: int) -> float:
    return choices.average_precision(marks, r, 2, min(2, r))


def _map_over_found(marks: list[bool], r: int) -> float:
    return choices.average_precision(marks, r, 2, sum(marks[:2]))


def _precision_over_least(marks: list[bool], r: int) -> float:
    return sum(marks[:4]) / min(4, r)


def score(name: str, title: str, source: str, printed: Computation, **rest: Any) -> Case:
    """Create a conformance case of a score."""
    return Case(name, "score", title, source, printed, **rest)


RANKED = (BALANCED, UNEVEN, HIGH_LABELS, FAR_AWAY)
SCORES = (
    score(
        "precision_at_1",
        "Precision at 1",
        "Musgrave et al. 2020",
        scored(choices.precision_at_1),
        ours=_retrieval("recall_at_1"),
        variants={LONE: scored(choices.precision_at_1, lone=True)},
        on=RANKED,
    ),
    score(
        "r_precision",
        "R-precision",
        "Musgrave et al. 2020",
        scored(choices.r_precision),
        ours=_retrieval("r_precision"),
        on=RANKED,
    ),
    score(
        "map_at_r",
        "MAP@R",
        "Musgrave et al. 2020",
        scored(choices.map_at_r),
        ours=_retrieval("map_at_r"),
        on=RANKED,
    ),
    score(
        "mean_average_precision",
        "Mean average precision",
        "Manning et al. 2008, 8.4",
        scored(choices.average_precision),
    ),
    score("reciprocal_rank", "Mean reciprocal rank, requested alone", "Voorhees 1999", scored(choices.reciprocal_rank)),
    score(
        "map_at_2",
        "Average precision of the first 2, over min(2, R)",
        "Manning et al. 2008, 8.4",
        scored(_map_at_2),
        variants={
            "divided by how many relevant ones were found": scored(_map_over_found),
            f"divided by how many relevant ones were found; {LONE}": scored(_map_over_found, lone=True),
        },
    ),
    score(
        "precision_at_4",
        "Precision at 4",
        "Manning et al. 2008, 8.4",
        scored(lambda marks, r: sum(marks[:4]) / 4),
        variants={
            "divided by min(4, R)": scored(_precision_over_least),
            f"divided by min(4, R); {LONE}": scored(_precision_over_least, lone=True),
        },
    ),
    score(
        "nmi",
        "NMI of a partition",
        "Manning et al. 2008, 16.3",
        lambda v: Outcome(choices.nmi(clusters(v), v.names)),
        ours=lambda v: Outcome(metrics.nmi(clusters(v), v.labels)),
        on=(BALANCED, UNEVEN, HIGH_LABELS),
    ),
    score("ami", "AMI of a partition", "Vinh et al. 2010", lambda v: Outcome(choices.ami(clusters(v), v.names))),
)
