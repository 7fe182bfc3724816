"""Calls of pytorch-metric-learning for the conformance cases of miners, scores, reducers and samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from dmlcore.conformance.adapters.pytorch_metric_learning import loss, parts
from dmlcore.conformance.case import Computation, Outcome, selection_masks
from dmlcore.conformance.miners import frequencies
from dmlcore.conformance.reducers import LABELS, misshapen
from dmlcore.conformance.scores import clusters
from dmlcore.conformance.vectors import Vector


def miner(make: Callable[[Any], Any]) -> Computation:
    """Return a function that selects pairs or triplets of a batch with the miner that `make` creates.

    `make` receives the package pytorch_metric_learning.
    """

    def computed(v: Vector) -> Outcome:
        result = make(parts())(v.embeddings, v.labels)
        return selection_masks(len(v.labels), *((result,) if len(result) == 3 else (result[:2], result[2:])))

    return computed


def easy(negatives: str) -> Computation:
    """Return a function that runs the library's easy-positive miner and converts its pairs to triplets.

    `negatives` is the strategy by which the miner selects negatives, for example "semihard".
    """

    def computed(v: Vector) -> Outcome:
        mine = parts().miners.BatchEasyHardMiner(pos_strategy="easy", neg_strategy=negatives)
        a, p, _, n = mine(v.embeddings, v.labels)
        return selection_masks(len(v.labels), (a, p, n))

    return computed


def drawn(v: Vector) -> Outcome:
    """Return the relative frequency of each negative for each anchor in draws of the distance-weighted miner."""
    torch.manual_seed(0)
    mine = parts().miners.DistanceWeightedMiner()
    return frequencies(v, lambda: mine(v.embeddings, v.labels))


def score(name: str) -> Computation:
    """Return a function that computes a score of the library's AccuracyCalculator, on unnormalised embeddings."""

    def computed(v: Vector) -> Outcome:
        from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

        calculator = AccuracyCalculator(include=(name,), device=torch.device("cpu"))
        return Outcome(float(calculator.get_accuracy(v.embeddings, v.labels)[name]))

    return computed


def partition(name: str) -> Computation:
    """Return a function that computes a clustering score of AccuracyCalculator for the partition `scores.clusters`."""

    def computed(v: Vector) -> Outcome:
        from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

        calculator = AccuracyCalculator(include=(name,), device=torch.device("cpu"))
        given = {"query_labels": v.labels.float(), "cluster_labels": torch.tensor(clusters(v))}  # as get_accuracy does
        return Outcome(float(getattr(calculator, f"calculate_{name}")(**given)))

    return computed


def m_per_class(_: Vector) -> Outcome:
    """Count the batches of MPerClassSampler, out of 100, that do not consist of 4 classes with 3 samples each."""
    np.random.seed(0)  # noqa: NPY002 - the library draws from it
    sampler = parts().samplers.MPerClassSampler(LABELS, 3, batch_size=12, length_before_new_iter=1200)
    given = list(sampler)
    return misshapen([given[i : i + 12] for i in range(0, 1200, 12)], 4, 3)


def sampler_length(_: Vector) -> Outcome:
    """Return by how many samples MPerClassSampler exceeds the length that it reports.

    It is created with a `length_before_new_iter` that is too small to hold the samples of every class.
    """
    sampler = parts().samplers.MPerClassSampler(LABELS, 3, length_before_new_iter=50)
    return Outcome(float(len(list(sampler)) - len(sampler)))


def reduced(make: Callable[[Any], Any]) -> Computation:
    """Return a function that evaluates the library's triplet loss with the reducer that `make` creates."""
    return loss(lambda p: p.losses.TripletMarginLoss(0.5, reducer=make(p.reducers)))


def per_anchor(p: Any) -> Any:
    """Create the library's contrastive loss of positive pairs only, averaged over the positives of each anchor."""
    reducers = p.reducers.MultipleReducers(
        {"pos_loss": p.reducers.PerAnchorReducer(), "neg_loss": p.reducers.SumReducer()}
    )
    return p.losses.ContrastiveLoss(0.2, 0.0, reducer=reducers)


CALLS: dict[str, Computation] = {
    "batch_hard": miner(lambda p: p.miners.BatchHardMiner()),
    "easy_positive": easy("hard"),
    "easy_positive_semi_hard": easy("semihard"),
    "semi_hard": miner(lambda p: p.miners.TripletMarginMiner(0.2, "semihard")),
    "hard": miner(lambda p: p.miners.TripletMarginMiner(0.2, "hard")),
    "violating": miner(lambda p: p.miners.TripletMarginMiner(0.2, "all")),
    "hard_pairs": miner(lambda p: p.miners.MultiSimilarityMiner(0.1)),
    "wide_angles": miner(lambda p: p.miners.AngularMiner(35)),
    "distance_weighted": drawn,
    "precision_at_1": score("precision_at_1"),
    "r_precision": score("r_precision"),
    "map_at_r": score("mean_average_precision_at_r"),
    "mean_average_precision": score("mean_average_precision"),
    "reciprocal_rank": score("mean_reciprocal_rank"),
    "nmi": partition("NMI"),
    "ami": partition("AMI"),
    "mean": reduced(lambda r: r.MeanReducer()),
    "sum": reduced(lambda r: r.SumReducer()),
    "above_zero": reduced(lambda r: r.AvgNonZeroReducer()),
    "between": reduced(lambda r: r.ThresholdReducer(low=0.1, high=0.4)),
    "class_weighted": reduced(lambda r: r.ClassWeightedReducer(1 + torch.arange(6.0))),
    "per_anchor": loss(per_anchor),
    "m_per_class": m_per_class,
    "sampler_length": sampler_length,
}
