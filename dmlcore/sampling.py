"""Which samples make up a batch: balanced, and a pure function of (seed, step)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


class BalancedSampler:
    """Draws batches of `classes` classes with `samples` samples each.

    labels: (N,) integers. Classes with a single sample can form no pair and are never drawn: there are
    `left_out` of them. Classes with fewer than `samples` samples repeat theirs once all were used: there are
    `repeating`. Raises ValueError if fewer than `classes` classes remain.
    """

    def __init__(self, labels: ArrayLike, classes: int, samples: int, *, seed: int) -> None:
        labels = np.asarray(labels)
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(f"labels must be (N,) integers, got {labels.dtype} of shape {labels.shape}")
        if classes < 1 or samples < 1 or seed < 0:
            raise ValueError(f"needs classes >= 1, samples >= 1, seed >= 0; got {classes}, {samples}, {seed}")
        _, starts, sizes = np.unique(np.sort(labels), return_index=True, return_counts=True)
        by_class = np.split(np.argsort(labels, kind="stable"), starts[1:])

        self.members = [members for members in by_class if len(members) > 1]
        self.classes, self.samples, self.seed = classes, samples, seed
        self.left_out = int((sizes == 1).sum())
        self.repeating = int(((sizes > 1) & (sizes < samples)).sum())
        if len(self.members) < classes:
            raise ValueError(
                f"a batch needs {classes} classes, but only {len(self.members)} of {len(sizes)} have two samples or "
                f"more ({self.left_out} have one); lower the classes per batch"
            )

    def batch(self, step: int) -> NDArray[np.int64]:
        """Return the (classes * samples,) positions in `labels` of batch `step` >= 0, class after class."""
        random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(step,)))
        chosen = random.choice(len(self.members), self.classes, replace=False)
        return np.concatenate([self._draw(self.members[label], random) for label in chosen])

    def _draw(self, members: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        rounds = -(-self.samples // len(members))
        return np.concatenate([random.permutation(members) for _ in range(rounds)])[: self.samples]


def batch_indices(labels: ArrayLike, classes: int, samples: int, *, seed: int, step: int) -> NDArray[np.int64]:
    """Return the (classes * samples,) positions in `labels` of one balanced batch; see BalancedSampler.

    The same seed and step give the same batch on every machine, whatever was drawn before. A loop keeps a
    BalancedSampler, which indexes the classes once.
    """
    return BalancedSampler(labels, classes, samples, seed=seed).batch(step)
