"""What became of every sample over training: its nearest neighbour and the rank of its first hit at each checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class SampleHistory:
    """Row i is sample `indices[i]` of the data set; `steps` ascend."""

    steps: Ints  # (S,)
    indices: Ints  # (n,)
    nearest: Ints  # (S, n): the nearest neighbour, as a sample of the data set
    right: Bools  # (S, n): whether it is of the same class
    rank: Ints  # (S, n): of the first of the own class, 0 for a sample without another one
    distance: Floats  # (S, n): to the nearest


def sample_history(evaluated: Iterable[tuple[int, TestNeighbours]]) -> SampleHistory | None:
    """The steps at which the same samples were evaluated; None without any.

    evaluated: steps with what was found there, read one after another. A step that tested other samples than the first
    is left out.
    """
    columns: list[tuple[int, Ints, Bools, Ints, Floats]] = []  # the rest, embeddings too, is not held
    indices: Ints | None = None
    for step, neighbours in evaluated:
        indices = neighbours.indices if indices is None else indices
        if np.array_equal(neighbours.indices, indices):
            nearest = neighbours.indices[neighbours.neighbours[:, 0]]
            columns.append(
                (
                    step,
                    nearest,
                    neighbours.right[:, 0].copy(),
                    neighbours.positives.rank,
                    neighbours.distances[:, 0].copy(),
                )
            )
    if indices is None:
        return None
    columns.sort(key=lambda column: column[0])
    return SampleHistory(
        steps=np.array([step for step, *_ in columns]),
        indices=indices,
        nearest=np.stack([nearest for _, nearest, *_ in columns]),
        right=np.stack([right for _, _, right, *_ in columns]),
        rank=np.stack([rank for *_, rank, _ in columns]),
        distance=np.stack([distance for *_, distance in columns]),
    )
