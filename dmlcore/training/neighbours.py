"""A network whose embeddings are conditioned on neighbours: who these are, and how a set is embedded with them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.data import Dataset
from dmlcore.metrics.nearest_neighbours import nearest
from dmlcore.models.conditioned import in_order
from dmlcore.models.networks import Network
from dmlcore.spec import RunSpec
from dmlcore.training import batches
from dmlcore.training.objective import seed_of
from dmlcore.typing import Ints, Singles

KINDS = {"own": "transductive", "train": "inductive"}  # ways to score, by where a sample has its neighbours


class Conditioned(nn.Module):
    """Embeddings of a network, conditioned as `conditioning.among` says; `batches.embed` hands it whole sets.

    table: embeddings (N, D) of the training split by the network alone, made when needed where it is None.
    """

    def __init__(
        self, model: Network, spec: RunSpec, data: Dataset, device: torch.device, table: Tensor | None = None
    ) -> None:
        super().__init__()
        self.model, self.spec, self.data, self.device = model, spec, data, device
        self._table = table
        self._test: Tensor | None = None  # as the table, of the test split
        self._alone: tuple[Tensor, Ints] | None = None  # of the last set, by the network alone

    @property
    def is_transductive(self) -> bool:
        """Whether a scored sample's embedding depends on what is scored with it."""
        return self.spec.conditioning.among == "own"

    def forward(self, inputs: Tensor) -> Tensor:
        """Samples that are of no set, such as one's own images: their neighbours are in the test or training split."""
        alone = self.model(inputs).float()
        pool = self._tested() if self.is_transductive else self._training()
        return self._read(alone, pool, neighbours(alone, pool, self.spec.conditioning.neighbours))

    def of_set(self, alone: Tensor, indices: Ints) -> Tensor:
        """Embeddings (n, D) of these samples of the data set by the network alone -> the conditioned ones."""
        self._alone = alone, indices
        return self._of(self.spec.conditioning.among)

    def beside(self) -> dict[str, Singles]:
        """The last set embedded otherwise: by the network "alone", and "inductive" or "transductive", the other way."""
        assert self._alone is not None
        other = "train" if self.is_transductive else "own"
        with batches.evaluating(self):
            return {"alone": self._alone[0].cpu().numpy(), KINDS[other]: self._of(other).cpu().numpy()}

    def _of(self, among: str) -> Tensor:
        assert self._alone is not None
        (alone, indices), k = self._alone, self.spec.conditioning.neighbours
        if among == "own":
            return self._read(alone, alone, neighbours(alone, None, k))
        train = self.data.splits["train"]
        places = np.searchsorted(train, indices).clip(max=len(train) - 1)
        own = np.where(train[places] == indices, places, -1)
        return self._read(alone, self._training(), neighbours(alone, self._training(), k, own))

    def _read(self, alone: Tensor, pool: Tensor, places: Ints) -> Tensor:
        places = in_order(places, self.spec.conditioning.order, seed=seed_of(self.spec.seed, "order"))
        rows = torch.from_numpy(np.ascontiguousarray(places)).to(alone.device)
        size = batches.CHUNK
        parts = [
            self.model.condition(torch.cat([alone[start : start + size, None], pool[rows[start : start + size]]], 1))
            for start in range(0, len(alone), size)
        ]
        return torch.cat(parts)

    def _tested(self) -> Tensor:
        from dmlcore.training.evaluation import rows_of  # late: it imports `state`, which imports this

        if self._test is None:
            self._test = self._embedded(rows_of(self.data, "test")[0])
        return self._test

    def _training(self) -> Tensor:
        if self._table is None:
            self._table = self._embedded(self.data.splits["train"])
        return self._table

    def _embedded(self, indices: Ints) -> Tensor:
        return torch.from_numpy(batches.embed(self.model, self.data, indices, self.device)).to(self.device)


def neighbours(points: Tensor, pool: Tensor | None, k: int, own: Ints | None = None) -> Ints:
    """The k nearest rows of the pool (N, D) of each point (n, D), (n, k), the nearest first, ties by index.

    pool: None for the points themselves, none its own neighbour. own (n,): the row of the pool that a point is and that
    is left out, -1 where there is none. Fewer than k repeat the last; the only point of a set is its own neighbour.
    """
    if pool is None:
        available = min(k, len(points) - 1)
        listed = nearest(points, k=available)[1] if available else np.zeros((len(points), 1), np.int64)
    elif own is None:
        listed = nearest(points, pool, k=min(k, len(pool)))[1]
    else:
        listed = nearest(points, pool, k=min(k + 1, len(pool)))[1]
        left_out = np.where((listed == own[:, None]).any(1), own, listed[:, -1])
        listed = listed[listed != left_out[:, None]].reshape(len(points), -1)
    padding = np.repeat(listed[:, -1:], k - listed.shape[1], axis=1)
    return np.concatenate([listed, padding], axis=1)
