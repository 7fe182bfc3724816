"""History of the test samples over training: nearest neighbour and rank of the nearest positive at each checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class SampleHistory:
    """Nearest neighbour and rank of the nearest positive of each sample at several training steps."""

    steps: Ints  # (S,) ascending
    indices: Ints  # (n,) sample indices in the data set
    nearest: Ints  # (S, n) sample index of the nearest neighbour
    right: Bools  # (S, n) True where the nearest neighbour has the class of the sample
    rank: Ints  # (S, n) rank of the nearest positive; 0 if the class has no other sample
    distance: Floats  # (S, n) distance to the nearest neighbour


def sample_history(evaluated: Iterable[tuple[int, TestNeighbours]]) -> SampleHistory | None:
    """Collect the history of samples that were evaluated at several steps.

    Args:
        evaluated: Pairs (step, neighbours at this step), consumed one at a time. Steps evaluated on other samples than
            the first pair are skipped.

    Returns:
        The history, or None if `evaluated` is empty.
    """
    # only these values are kept, so that embeddings can be freed
    columns: list[tuple[int, Ints, Bools, Ints, Floats]] = []
    indices: Ints | None = None
    for step, known in evaluated:
        indices = known.indices if indices is None else indices
        if np.array_equal(known.indices, indices):
            nearest, right = known.indices[known.neighbours[:, 0]], known.right[:, 0].copy()
            columns.append((step, nearest, right, known.positives.rank, known.distances[:, 0].copy()))
    if indices is None:
        return None
    steps, *values = zip(*sorted(columns, key=lambda column: column[0]), strict=True)
    return SampleHistory(np.array(steps), indices, *map(np.stack, values))
