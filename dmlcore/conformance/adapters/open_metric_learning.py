"""Calls of open-metric-learning (OML) for each conformance case.

The packages of OML import torchvision and other modules that are not needed here. If those are missing, a module of OML
is loaded directly from its file, without running the `__init__` of its package. The code of the module itself is
unchanged.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from dmlcore.conformance.case import Computation, Library, Outcome, evaluate_loss, evaluate_module, selection_masks
from dmlcore.conformance.reducers import LABELS, misshapen
from dmlcore.conformance.vectors import Vector


def module(name: str) -> Any:
    """Import a module of OML by its dotted name.

    Raises:
        ImportError: If a dependency is missing; the message names it.
    """
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    # RuntimeError is raised by an extension module that was built for another version of torch
    except (ImportError, RuntimeError):
        root = importlib.import_module(name.split(".")[0])
        file = root.__path__[0] + "/" + "/".join(name.split(".")[1:]) + ".py"
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made


def loss(make: Callable[[], nn.Module], *, unit: bool = False) -> Computation:
    """Return a function that evaluates a loss of OML on a batch; if `unit`, on normalised embeddings."""

    def computed(v: Vector) -> Outcome:
        made = make()
        return evaluate_loss(lambda x: made(F.normalize(x) if unit else x, v.labels), v)

    return computed


def triplet(margin: float | None) -> Computation:
    """Return a function that evaluates the OML triplet loss over all triplets of a batch."""
    return loss(lambda: module("oml.losses.triplet").TripletLossWithMiner(margin), unit=True)


def arcface(v: Vector) -> Outcome:
    """Compute the ArcFace loss of OML on a batch."""
    made = module("oml.losses.arcface").ArcFaceLoss(v.embeddings.shape[1], v.classes, m=np.radians(28.6), s=8)
    return evaluate_module(made, v, "weight")


def miner(name: str, kind: str) -> Computation:
    """Return a function that selects triplets of a batch with an OML miner, on unit vectors.

    The miner's method `sample` validates the batch; `_sample` selects the triplets.
    """

    def computed(v: Vector) -> Outcome:
        made = getattr(module(f"oml.miners.{name}"), kind)()
        unit = F.normalize(v.embeddings)
        made.sample(unit, v.labels)
        a, p, n = (torch.as_tensor(result) for result in made._sample(unit, labels=v.names))
        return selection_masks(len(v.labels), (a, p, n))

    return computed


def score(name: str, first: int) -> Computation:
    """Return a function that computes the OML retrieval score `name` within a batch.

    Only the nearest `first` neighbours of each query are scored.
    """

    def computed(v: Vector) -> Outcome:
        every = torch.arange(len(v.labels))
        _, result, relevant = module("oml.functional.knn").batched_knn(
            v.embeddings, every, every, top_n=first, labels_gt=v.labels
        )
        scores = module("oml.functional.metrics").calc_retrieval_metrics(
            result, relevant, cmc_top_k=(first,), precision_top_k=(first,), map_top_k=(first,), verbose=False
        )
        return Outcome(float(scores[name][first]))

    return computed


def epochs() -> list[list[list[int]]]:
    """Return ten epochs of the OML balance sampler, as batches of 4 classes with 3 samples each."""
    np.random.seed(0)  # noqa: NPY002 - the library draws from it
    sampler = module("oml.samplers.balance").BalanceSampler(LABELS, n_labels=4, n_instances=3)
    return [list(sampler) for _ in range(10)]


def m_per_class(_: Vector) -> Outcome:
    """Count the batches without exactly 4 classes of 3 samples each in ten epochs of the OML balance sampler."""
    return misshapen([batch for epoch in epochs() for batch in epoch], 4, 3)


def epoch_of_classes(_: Vector) -> Outcome:
    """Count the classes that occur several times or never in an epoch of the OML balance sampler, over ten epochs."""
    wrong = 0
    for epoch in epochs():
        given = [label for batch in epoch for label in {LABELS[i] for i in batch}]
        wrong += sum(given.count(label) != 1 for label in set(LABELS))
    return Outcome(float(wrong))


CALLS: dict[str, Computation] = {
    "triplet_all": triplet(0.119),
    "triplet_soft": triplet(None),
    "surrogate_precision": loss(lambda: module("oml.losses.surrogate_precision").SurrogatePrecision(2, 1.0, 0.1)),
    "arcface": arcface,
    "all_triplets": miner("inbatch_all_tri", "AllTripletsMiner"),
    "batch_hard": miner("inbatch_hard_tri", "HardTripletsMiner"),
    "precision_at_1": score("precision", 1),
    "map_at_2": score("map", 2),
    "precision_at_4": score("precision", 4),
    "m_per_class": m_per_class,
    "epoch_of_classes": epoch_of_classes,
}
LIBRARY = Library("open-metric-learning", "oml", CALLS)
