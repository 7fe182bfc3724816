"""Conditioned embeddings: one vector for a sample and its neighbours, from a bidirectional LSTM or an average."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.models.seeded import seeded
from dmlcore.spec.sections import ConditioningSpec
from dmlcore.typing import Ints


class ConditionedEmbedding(nn.Module):
    """Layer that maps embeddings of a sample and its K neighbours (B, 1 + K, D) to conditioned ones (B, D),
    unnormalised.

    lstm: h = the last states of both directions of the last layer, g = W [h; f(x)] + b. average: h = the mean of the
    neighbours. concat: h = the concatenation of all of them. mean: g = the mean of the sample and its neighbours,
    without parameters. hidden = 0 uses half of D, rounded up.

    Reference:
        Can 2018, Ch. 4, for the LSTM (512-D: 2 layers of 256 in each direction).
    """

    def __init__(self, spec: ConditioningSpec, dimension: int) -> None:
        super().__init__()
        self.by, self.neighbours, self.order = spec.by, spec.neighbours, spec.order
        self.lstm: nn.LSTM | None = None
        width = {"average": dimension, "concat": spec.neighbours * dimension}.get(spec.by, 0)
        if spec.by == "lstm":
            hidden = spec.hidden or (dimension + 1) // 2
            width = 2 * hidden
            # dropout acts between layers; torch warns if there is only one
            dropout = spec.dropout if spec.layers > 1 else 0.0
            self.lstm = nn.LSTM(dimension, hidden, spec.layers, batch_first=True, dropout=dropout, bidirectional=True)
        self.linear = None if spec.by == "mean" else nn.Linear(width + dimension, dimension)

    def forward(self, sequences: Tensor) -> Tensor:
        """Return the conditioned embeddings of sequences whose first element is the sample."""
        sample, neighbours = sequences[:, 0], sequences[:, 1:]
        if self.linear is None:
            return sequences.mean(1)
        if self.lstm is not None:
            states = self.lstm(sequences)[1][0]
            read = torch.cat([states[-2], states[-1]], dim=1)
        else:
            read = neighbours.mean(1) if self.by == "average" else neighbours.flatten(1)
        embedded: Tensor = self.linear(torch.cat([read, sample], dim=1))
        return embedded


def create(spec: ConditioningSpec, dimension: int, *, seed: int) -> ConditionedEmbedding | None:
    """Create the layers of a spec, initialised as a function of `seed`; return None if it has none."""
    if not spec.neighbours:
        return None
    with seeded(seed):
        return ConditionedEmbedding(spec, dimension)


def in_order(neighbours: Ints, order: str, *, seed: int) -> Ints:
    """Return neighbours (n, K), given nearest first, in the order in which they are read.

    "random" shuffles each row independently.
    """
    if order == "furthest":
        return neighbours[:, ::-1]
    if order == "random":
        return np.random.default_rng(seed).permuted(neighbours, axis=1)
    return neighbours
