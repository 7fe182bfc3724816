"""Baselines from features that exist before training: a pretrained or frozen backbone, or input vectors, whitened.

Features of images are the averages of the backbone's feature maps. They are compared by cosine similarity: unchanged
("features"), after PCA whitening ("pca_whitened") and after within-class whitening ("whitened"). The whitenings are
fitted to the training split, keep all dimensions, and use a fixed shrinkage (`whitening.SHRINKAGE`), so neither
validation nor test scores influence them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np
import torch

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.models import whitening
from dmlcore.models.networks import ImageNetwork
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import batches, evaluation, score_cache
from dmlcore.training.state import TrainingState
from dmlcore.typing import Array, Ints, Singles

VERSION = 1  # version of the cached rows, which is included in the cache key
MOST_FITTED = 10_000  # training samples to which a whitening is fitted; whole classes are drawn at random
MOST_FEATURES = 4096  # dimensions; the decomposition of the covariance takes minutes beyond
MOST_WORK = 1e12  # multiplications of one search on a CPU, about half a minute

log = logging.getLogger(__name__)


def rows(state: TrainingState) -> list[Row]:
    """Return the scores of the features, plain and whitened, on the test and validation splits.

    Returns [] unless the network has a pretrained or frozen backbone or takes vectors, or if the scores would take
    minutes. Scores of the same features are computed once and cached. All processes must call this function.
    """
    data, train = state.data, fitted_samples(state.data)
    if not applies(state) or len(train) < 2 or not _is_affordable(state):
        return []
    splits = [split for split in ("test", "validation") if len(data.splits[split])]
    features = extract(state, train)
    embedded = {split: extract(state, batches.rows_of(data, split)[0]) for split in splits}
    made: list[Row] = processes.on_first(lambda: _cached(state, features, data.labels[train], embedded))
    return made


def applies(state: TrainingState) -> bool:
    """Return True if a run has features before its training: of a pretrained or frozen backbone, or input vectors."""
    if isinstance(state.model, ImageNetwork):
        return bool(state.spec.model.start or state.model.frozen)
    inputs = state.data.inputs
    return len(inputs.shape) == 2 and inputs.dtype.kind == "f"


def extract(state: TrainingState, indices: Ints) -> Singles:
    """Return the features (n, F) of samples: averages of the backbone's maps, or the input vectors themselves."""
    if not isinstance(state.model, ImageNetwork):
        return np.asarray(state.data.inputs[indices], np.float32)
    model = state.model

    def pooled(inputs: torch.Tensor) -> torch.Tensor:
        return model.features(inputs).mean((2, 3))

    with batches.evaluation_mode(model):
        return batches.embed(pooled, state.data, indices, state.device, batches.CHUNK // 4)


def fitted_samples(data: Dataset) -> Ints:
    """Return the training samples to which a whitening is fitted: all, or those of random classes if they are many."""
    train = data.splits["train"]
    if len(train) <= MOST_FITTED:
        return train
    labels = data.labels[train]
    classes, counts = np.unique(labels, return_counts=True)
    order = np.random.default_rng(0).permutation(len(classes))
    chosen = order[: max(1, int(np.searchsorted(np.cumsum(counts[order]), MOST_FITTED, "right")))]
    return train[np.isin(labels, classes[chosen])]


def whitened(features: Singles, labels: Ints, is_vectors: bool) -> Iterator[tuple[str, Callable[[Singles], Singles]]]:
    """Yield the names of the baselines, and functions from features (n, F) to embeddings (n, F), fitted to `features`.

    Args:
        features: Features of the training samples, (N, F).
        labels: Their labels, (N,).
        is_vectors: True if the features are the inputs, whose scores without whitening are a baseline of their own.
    """
    if not is_vectors:
        yield "features", whitening.normalise
    for name, fitted_to in (("pca_whitened", None), ("whitened", labels)):
        try:
            yield name, whitening.fit(features, fitted_to)
        except (ValueError, np.linalg.LinAlgError) as error:
            log.info("no baseline %s: %s", name, error)


def _cached(state: TrainingState, features: Singles, labels: Ints, embedded: dict[str, Singles]) -> list[Row]:
    data, ks = state.data, state.spec.ks
    is_vectors = not isinstance(state.model, ImageNetwork)
    arrays: list[Array] = [features, labels]
    for split, points in embedded.items():
        indices, searched = batches.rows_of(data, split)
        arrays += [points, data.labels[indices], searched]

    def compute() -> list[Row]:
        made: list[Row] = []
        for name, embed in whitened(features, labels, is_vectors):
            for split, points in embedded.items():
                wanted = ks if split == "test" else (1,)
                scores = evaluation.score(embed(points), data, split, wanted, state.device)
                if split == "test":
                    made.append(evaluation.row(name, 0, scores, labels=evaluation.query_labels(data, split)))
                else:
                    values = {"map_at_r": scores.map_at_r, "recall_at_1": scores.recall_at[1]}
                    made.append({"kind": "baseline", "of": name, "part": split, "step": 0, **values})
        return made

    return score_cache.cached(
        ("features", VERSION, features.shape, ks, is_vectors, whitening.SHRINKAGE), arrays, compute
    )


def _is_affordable(state: TrainingState) -> bool:
    """Return True if the decomposition and, on a CPU, each search take less than about half a minute."""
    model, data = state.model, state.data
    width = model.backbone.out_channels if isinstance(model, ImageNetwork) else int(data.inputs.shape[1])
    searched = len(data.splits.get("gallery", ())) or len(data.splits["test"])
    work = float(width) * len(data.splits["test"]) * searched
    return width <= MOST_FEATURES and (state.device.type == "cuda" or work <= MOST_WORK)
