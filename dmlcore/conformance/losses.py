"""Conformance cases of losses between samples, each with its printed formula, dmlcore's computation and variants.

A variant is another reading of the formula that a library may follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from dmlcore import losses
from dmlcore.conformance.case import Case, Computation, Outcome, evaluate_loss, evaluate_module
from dmlcore.conformance.printed import pairs, ranking
from dmlcore.conformance.vectors import BALANCED, FOUR_EACH, HIGH_LABELS, TWO_EACH, UNEVEN, Vector


def of_pairs(formula: Callable[..., Tensor], *more: object, **options: object) -> Computation:
    """Return a function that evaluates formula(embeddings, labels, *more, **options) on a batch, with its gradient."""
    return lambda v: evaluate_loss(lambda x: formula(x, v.names, *more, **options), v)


def catalogue(
    name: str, *, unit: bool = False, weights: Callable[[Vector], Tensor] | None = None, **hyper: Any
) -> Computation:
    """Return a function that evaluates the dmlcore loss `name` in float64; if `unit`, on normalised embeddings."""

    def computed(v: Vector) -> Outcome:
        loss = losses.for_training(name, classes=v.classes, embedding_dim=v.embeddings.shape[1], **hyper).double()
        if hasattr(loss, "beta") and isinstance(loss.beta, Tensor):
            # set beta in place: it is created in float32, so the value passed to the constructor would be rounded
            loss.beta.data.fill_(float(hyper["beta"]))
        if hasattr(loss, "proxies"):
            return evaluate_module(loss, v, "proxies", None if weights is None else weights(v))
        return evaluate_loss(lambda x: loss(F.normalize(x) if unit else x, v.labels), v)

    return computed


def case(name: str, title: str, source: str, printed: Computation, **rest: Any) -> Case:
    """Create a conformance case of a loss."""
    return Case(name, "loss", title, source, printed, **rest)


def mean_triplets(m: float, between: pairs.Between = pairs.length, *, swap: bool = False) -> Computation:
    """Return a function that evaluates the mean triplet hinge over all triplets of a batch."""

    def loss(x: Tensor, y: list[int]) -> Tensor:
        return pairs.average([pairs.hinge(t) for t in pairs.triplet_terms(x, y, m, between, swap=swap)])

    return of_pairs(loss)


def _above_zero(x: Tensor, y: list[int], m: float) -> Tensor:
    return pairs.above_zero([pairs.hinge(t) for t in pairs.triplet_terms(x, y, m)])


def _in_runs(x: Tensor, y: list[int], temperature: float) -> Tensor:
    """Compute Smooth AP as if the samples were sorted by class and each of the C classes had C samples."""
    return ranking.smooth_ap(x, [i // len(set(y)) for i in range(len(y))], temperature, itself=True)


PAIRS = (
    case(
        "contrastive",
        "Contrastive with two margins, means above 0",
        "Hadsell et al. 2006; Gürbüz 2022, Sec. 3.3 (C2)",
        of_pairs(pairs.contrastive, 0.2652, 0.5409),
        ours=catalogue("contrastive", unit=True, m_pos=0.2652, m_neg=0.5409),
        on=(BALANCED, UNEVEN, HIGH_LABELS),
    ),
    case(
        "threshold_consistent",
        "Threshold-consistent margin",
        "Zhang et al. 2024",
        of_pairs(pairs.threshold_consistent, 0.7, 0.2),
        ours=catalogue("threshold_consistent_margin", m_pos=0.7, m_neg=0.2),
        on=(BALANCED, UNEVEN, HIGH_LABELS),
    ),
    case(
        "triplet",
        "Triplet, mean above 0",
        "Schroff et al. 2015; Hermans et al. 2017",
        of_pairs(_above_zero, 0.119),
        ours=catalogue("triplet", unit=True, m=0.119, distance="euclidean"),
    ),
    case(
        "triplet_cosine",
        "Triplet on cosines, mean of all",
        "Psomas 2020, Eq. 2.17",
        mean_triplets(0.1, pairs.apart),
        ours=catalogue("triplet", m=0.1, divisor="pairs"),
    ),
    case(
        "triplet_all",
        "Triplet, mean of all",
        "Weinberger & Saul 2009",
        mean_triplets(0.119),
        ours=catalogue("triplet", unit=True, m=0.119, distance="euclidean", divisor="pairs"),
    ),
    case("triplet_swap", "Triplet with anchor swap", "Balntas et al. 2016", mean_triplets(0.3, swap=True)),
    case("triplet_soft", "Triplet, soft margin", "Hermans et al. 2017", of_pairs(pairs.soft_triplet)),
    case(
        "margin",
        "Margin, fixed boundary",
        "Wu et al. 2017, Eq. 6",
        of_pairs(pairs.margin, 0.2, 1.2),
        ours=catalogue("margin", unit=True, alpha=0.2, beta=1.2, boundary="fixed"),
        variants={"each pair as often as it is part of a triplet": of_pairs(pairs.margin, 0.2, 1.2, by_triplets=True)},
    ),
    case(
        "lifted",
        "Lifted structure over pairs",
        "Oh Song et al. 2016, Eq. 4",
        of_pairs(pairs.lifted, 1.0),
        ours=catalogue("lifted_structure", unit=True, form="pairs", m=1.0),
    ),
    case(
        "lifted_rows",
        "Lifted structure over anchors, on cosines",
        "Hermans et al. 2017; Psomas 2020, Eq. 2.21",
        of_pairs(pairs.generalised_lifted, 0.5),
        ours=catalogue("lifted_structure", divisor="one", m=0.5),
        variants={
            "anchors without a positive count, with their negatives alone": of_pairs(
                pairs.generalised_lifted, 0.5, singletons=True
            )
        },
    ),
    case(
        "n_pairs",
        "N-pair, one pair of each class",
        "Sohn 2016, Eq. 10 (without the norms)",
        of_pairs(pairs.n_pairs),
        ours=catalogue("n_pair", form="one", l2=0.0),
    ),
    case(
        "nt_xent",
        "NT-Xent",
        "Chen et al. 2020, Eq. 1",
        of_pairs(pairs.nt_xent, 0.3),
        ours=catalogue("nt_xent", temperature=0.3),
        variants={"the other positives are left out of the denominator": of_pairs(pairs.nt_xent, 0.3, all_below=False)},
        on=(TWO_EACH, BALANCED, UNEVEN),
    ),
    case(
        "supervised_contrastive",
        "Supervised contrastive",
        "Khosla et al. 2020, Eq. 2",
        of_pairs(pairs.supervised_contrastive, 0.3),
        ours=catalogue("supervised_contrastive", temperature=0.3),
    ),
    case(
        "multi_similarity",
        "Multi-similarity, all pairs",
        "Wang et al. 2019, Eq. 15",
        of_pairs(pairs.multi_similarity, 2.0, 50.0, 0.5),
        ours=catalogue("multi_similarity", epsilon=math.inf),
    ),
    case(
        "multi_similarity_mined",
        "Multi-similarity, mined",
        "Wang et al. 2019, Eq. 11, 12, 15",
        of_pairs(pairs.multi_similarity, 2.0, 50.0, 0.5, 0.1),
        ours=catalogue("multi_similarity"),
    ),
    case(
        "angular",
        "Angular",
        "Wang, Zhou et al. 2017, over N-pairs of unit vectors",
        of_pairs(ranking.angular, 40.0),
        variants={"the negatives are not normalised": of_pairs(ranking.angular, 40.0, raw_negatives=True)},
    ),
    case(
        "circle", "Circle", "Sun et al. 2020", of_pairs(ranking.circle, 0.4, 80.0), ours=catalogue("circle", gamma=80.0)
    ),
    case("tuplet_margin", "Tuplet margin", "Yu & Tao 2019", of_pairs(ranking.tuplet_margin, 5.73, 64.0)),
    case("neighbours", "NCA, log of the chance to be right", "Goldberger et al. 2004", of_pairs(ranking.neighbours)),
    case("fast_ap", "FastAP", "Cakir et al. 2019", of_pairs(ranking.fast_ap, 10)),
    case(
        "smooth_ap",
        "Smooth AP",
        "Brown et al. 2020, without the query in its list",
        of_pairs(ranking.smooth_ap, 0.1),
        variants={
            "the query is one of its own positives": of_pairs(ranking.smooth_ap, 0.1, itself=True),
            "positives are runs of as many samples as there are classes, the query among them": of_pairs(_in_runs, 0.1),
        },
        on=(FOUR_EACH, BALANCED),
    ),
    case(
        "ranked_list",
        "Ranked list",
        "Wang, Hua et al. 2019",
        of_pairs(ranking.ranked_list, 0.4, 1.2, 2.0),
        variants={
            "the gradient passes through the weights, 1e-5 a sample is added to their sum": of_pairs(
                ranking.ranked_list, 0.4, 1.2, 2.0, through=True, padding=1e-5
            )
        },
    ),
    case("histogram", "Histogram", "Ustinova & Lempitsky 2016", of_pairs(ranking.histogram, 20)),
    case(
        "surrogate_precision",
        "Recall@k surrogate, as a precision",
        "Patel et al. 2022, without the query in its list",
        of_pairs(ranking.surrogate_precision, 2, 1.0, 0.1),
        variants={
            "the query is in its own list and among its positives, and ranks begin at 1/2": of_pairs(
                ranking.surrogate_precision, 2, 1.0, 0.1, itself=True
            )
        },
    ),
)
