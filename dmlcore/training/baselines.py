"""Baselines of a run before its first step: chance, the raw inputs, the untrained network, and whitened features.

Scores of raw inputs are the same for every run on the same data, so they are computed once and cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlcore.data import Dataset
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import batches, evaluation, feature_baselines, final_analyses, score_cache
from dmlcore.training.state import TrainingState, embedder
from dmlcore.typing import Bools, Ints

VERSION = 2  # version of the cached rows, which is included in the cache key
OF_TRAIN = (1, 8)  # values of K for R@K on the training split, as in `final_analyses.train_scores`


def first_rows(state: TrainingState) -> list[Row]:
    """Return the first metrics rows of a run, which hold the scores of its baselines.

    Two rows hold the test scores of the raw inputs and of the untrained network. If features exist before training,
    further rows hold the scores of the plain and of the whitened features (`feature_baselines`).

    The rows of kind "baseline" hold the scores of a random ranking on the test split, of the inputs on the validation
    split, and of the inputs and the untrained network on the training split. Training scores are included only if the
    trained network will also be scored on the training split (`final_analyses.rows`).
    """
    data, ks = state.data, state.spec.ks
    embeddings = evaluation.embed(embedder(state), data, "test", state.device)
    rows = [inputs_row(data, "test", ks)]
    scores, labels = evaluation.score(embeddings, data, "test", ks, state.device), evaluation.query_labels(data, "test")
    rows.append(evaluation.row("untrained", 0, scores, labels=labels))
    indices, searched = batches.rows_of(data, "test")
    rows.append(chance_row(data.labels[indices], searched))
    if len(data.splits["validation"]):
        rows.append(_baseline("inputs", "validation", _flat(inputs_row(data, "validation", (1,)))))
    if (untrained := final_analyses.train_scores(state.model, data, state.device)) is not None:
        rows.append(_baseline("inputs", "train", _flat(inputs_row(data, "train", OF_TRAIN))))
        rows.append(_baseline("untrained", "train", untrained))
    return rows + feature_baselines.rows(state)


def chance_row(labels: Ints, searched: Bools) -> Row:
    """Return the metrics row with the scores of a random ranking of the test split; arguments as for `chance`."""
    return _baseline("chance", "test", chance(labels, searched))


def chance(labels: Ints, searched: Bools) -> dict[str, float | None]:
    """Return the expected MAP@R and R@1 if neighbours are ranked at random, averaged over the queries with a match.

    If R of n candidates match, rank k holds a match with probability p = R / n, and given that, an earlier rank holds
    one with probability q = (R - 1) / (n - 1). So E[AP@R] = p / R * sum over k = 1..R of (1 + (k - 1) q) / k. The value
    is exact, because expectations add.

    Args:
        labels: Integer labels, (n,).
        searched: Mask of the gallery samples, (n,), in which all other samples are queries. If it is all False, each
            sample is a query among all others.
    """
    own = not searched.any()
    candidates = np.unique(labels if own else labels[searched], return_counts=True)
    counts = dict(zip(candidates[0].tolist(), candidates[1].tolist(), strict=True))
    classes, queries = np.unique(labels if own else labels[~searched], return_counts=True)
    n = int(candidates[1].sum()) - own
    precision = recall = asked = 0.0
    for label, weight in zip(classes.tolist(), queries.tolist(), strict=True):
        r = counts.get(label, 0) - own
        if r < 1:
            continue
        p, q = r / n, (r - 1) / (n - 1) if n > 1 else 0.0
        harmonic = float((1 / np.arange(1, r + 1)).sum())
        precision += weight * p / r * (harmonic + q * (r - harmonic))
        recall, asked = recall + weight * p, asked + weight
    return {"map_at_r": precision / asked, "recall_at_1": recall / asked} if asked else {}


def inputs_row(data: Dataset, split: str, ks: tuple[int, ...]) -> Row:
    """Return a metrics row with the scores of a split's raw inputs, from the cache if they were scored before.

    Inputs have thousands of dimensions, which makes this search the slowest part of a short run.
    """
    raw = evaluation.raw_inputs(data, split)
    indices, searched = batches.rows_of(data, split)

    def compute() -> list[Row]:
        labels = evaluation.query_labels(data, split)
        return [evaluation.row("inputs", 0, evaluation.score(raw, data, split, ks), labels=labels)]

    key = ("inputs", VERSION, raw.shape, tuple(ks))
    return score_cache.cached(key, (raw, data.labels[indices], searched), compute)[0]


def _baseline(subject: str, split: str, scores: Mapping[str, Any]) -> Row:
    return {"kind": "baseline", "of": subject, "part": split, "step": 0, **scores}


def _flat(row: Row) -> dict[str, Any]:
    """Flatten a row of scores into one mapping of MAP@R, R-precision and R@K, with keys such as recall_at_1."""
    recall = {f"recall_at_{k}": value for k, value in row["recall_at"].items()}
    return recall | {"r_precision": row["r_precision"], "map_at_r": row["map_at_r"]}
