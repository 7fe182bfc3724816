"""Conditioned embeddings: one vector for a sample and its neighbours, from a bidirectional LSTM or an average."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.models.seeded import seeded
from dmlcore.spec.sections import ConditioningSpec
from dmlcore.typing import Ints


class ConditionedEmbedding(nn.Module):
    """Layer that combines a sample and its K neighbours: embeddings (B, 1 + K, D) to (B, D), not normalised.

    With f(x) the embedding of the sample, the result is g = W [h; f(x)] + b, where the setting `by` in the spec selects
    h:

        lstm: the last states of both directions of the last LSTM layer, which reads the sample, then its neighbours
        average: the mean of the neighbours
        concat: the concatenation of all neighbours
        mean: g is the mean of the sample and its neighbours; this has no h and no parameters

    If `hidden` in the spec is 0, the LSTM has ceil(D / 2) hidden units per direction.

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
        """Return the conditioned embeddings (B, D) of sequences (B, 1 + K, D) that start with the sample."""
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
    """Create the layer that `spec` describes, initialised from `seed`; return None if `spec` uses no neighbours."""
    if not spec.neighbours:
        return None
    with seeded(seed):
        return ConditionedEmbedding(spec, dimension)


def in_order(neighbours: Ints, order: str, *, seed: int) -> Ints:
    """Return neighbours (n, K), given nearest first, in the order in which the layer reads them.

    "furthest" reverses each row, "random" shuffles each row independently, and "nearest" changes nothing.
    """
    if order == "furthest":
        return neighbours[:, ::-1]
    if order == "random":
        return np.random.default_rng(seed).permuted(neighbours, axis=1)
    return neighbours
