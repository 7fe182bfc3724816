"""Evaluation of zero-shot prediction, which predicts the embeddings of held-out classes from their prototype shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.pooling.zero_shot import ridge
from dmlcore.typing import Floats

MOST_SPLITS = 20_000  # maximum number of splits for an exhaustive evaluation; 16 classes have 12,870


@dataclass(frozen=True)
class Accuracy:
    """Share of predictions for which the nearest candidate is the correct class mean.

    `l2` and `cosine` are the shares by Euclidean distance and by angle; `chance` is the share for random guesses.
    """

    predictions: int
    l2: float
    cosine: float
    chance: float


@dataclass(frozen=True)
class SplitAccuracy:
    """Accuracy over `splits` splits of the classes into halves, for each of two candidate sets."""

    splits: int
    held_out: Accuracy  # candidates are the means of the held-out classes
    everything: Accuracy  # candidates are all class means; ridge regression favours those of the fitted classes


@dataclass(frozen=True)
class ZeroShotEvaluation:
    """Accuracy over all splits of the classes into two halves, and its estimate from random splits."""

    exhaustive: SplitAccuracy | None  # None if there are more than MOST_SPLITS splits
    estimate: SplitAccuracy | None  # None if `draws` is None


def zero_shot_evaluation(
    shares: ArrayLike,
    embeddings: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float = 0.05,
    draws: int | None = None,
    seed: int = 0,
) -> ZeroShotEvaluation:
    """Predict class means of embeddings from class means of shares, for splits of the classes into two halves.

    For each split, the ridge fit to C // 2 of the C classes predicts the means of the other classes. A prediction is
    correct if the mean of its own class is the candidate at the smallest Euclidean distance (`l2`) or at the smallest
    angle (`cosine`). All splits are evaluated (252 for ten classes) unless there are more than MOST_SPLITS.

    Args:
        shares: Prototype shares, shape (N, m).
        embeddings: Shape (N, D).
        labels: Shape (N,).
        epsilon: Weight of the penalty in the ridge fit.
        draws: Number of random splits for the estimate (1,000 in the reference); None for no estimate.
        seed: Seed of the random splits.

    Raises:
        ValueError: If an argument is invalid, or if there are more than MOST_SPLITS splits and `draws` is None.

    Reference:
        Gurbuz 2022, Sec. 5.3.
    """
    attributes, means = _class_means(shares, embeddings, labels)
    count = len(means)
    if draws is not None and draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    splits = comb(count, count // 2)
    if splits > MOST_SPLITS and draws is None:
        raise ValueError(f"{count} classes have {splits:,} splits, too many to try all; set draws")

    @cache
    def hits(fitted: tuple[int, ...]) -> tuple[int, ...]:
        return _hits(attributes, means, fitted, epsilon)

    def accuracy(chosen: Iterable[tuple[int, ...]]) -> SplitAccuracy:
        table = np.array([hits(fitted) for fitted in chosen])
        predictions = len(table) * (count - count // 2)
        (own_l2, own_cosine, all_l2, all_cosine) = (table.sum(0) / predictions).tolist()
        return SplitAccuracy(
            len(table),
            Accuracy(predictions, own_l2, own_cosine, 1 / (count - count // 2)),
            Accuracy(predictions, all_l2, all_cosine, 1 / count),
        )

    random = np.random.default_rng(seed)
    drawn = (tuple(sorted(random.permutation(count)[: count // 2].tolist())) for _ in range(draws or 0))
    return ZeroShotEvaluation(
        exhaustive=accuracy(combinations(range(count), count // 2)) if splits <= MOST_SPLITS else None,
        estimate=accuracy(drawn) if draws else None,
    )


def _hits(attributes: Floats, means: Floats, fitted: tuple[int, ...], epsilon: float) -> tuple[int, ...]:
    """Count the correct predictions for the classes that are not in `fitted`.

    Returns:
        Four counts: by Euclidean distance and by cosine with the held-out classes as candidates, then the same two with
        all classes as candidates.
    """
    seen = np.zeros(len(means), dtype=bool)
    seen[list(fitted)] = True
    A = ridge(torch.from_numpy(attributes[seen]), torch.from_numpy(means[seen]), epsilon).numpy()
    predicted, truth = attributes[~seen] @ A.T, np.flatnonzero(~seen)
    far = np.linalg.norm(predicted[:, None] - means[None], axis=-1)
    # Negative cosine up to the length of the prediction, which does not change the order of the candidates.
    turned = -(predicted @ means.T) / np.maximum(np.linalg.norm(means, axis=1), 1e-300)
    own = [int((truth[d[:, ~seen].argmin(1)] == truth).sum()) for d in (far, turned)]
    everything = [int((d.argmin(1) == truth).sum()) for d in (far, turned)]
    return (*own, *everything)


def _class_means(shares: ArrayLike, embeddings: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return the mean shares (C, m) and mean embeddings (C, D) of the classes."""
    z, x, y = np.asarray(shares, np.float64), np.asarray(embeddings, np.float64), np.asarray(labels)
    for name, array in (("shares", z), ("embeddings", x)):
        if array.ndim != 2 or not array.size or not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite numbers of shape (N, D), N > 0, got shape {array.shape}")
    if x.shape[0] != len(z) or y.shape != (len(z),):
        raise ValueError(f"embeddings and labels must have {len(z)} rows like shares, got {x.shape} and {y.shape}")
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError("labels must contain at least two classes")
    members = [y == c for c in classes]
    return np.stack([z[m].mean(0) for m in members]), np.stack([x[m].mean(0) for m in members])
