"""Networks with embeddings that are conditioned on neighbours: search for neighbours and embedding of whole sets."""

from __future__ import annotations

from functools import cached_property

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

# kind of embeddings for each value of `conditioning.among`, the set in which neighbours are searched
KINDS = {"own": "transductive", "train": "inductive"}


class Conditioned(nn.Module):
    """Network that conditions embeddings on neighbours from the set that the setting `conditioning.among` selects.

    `batches.embed` calls `embed_set` with a whole set at once, because its samples may be neighbours of each other.

    Args:
        model: Network that embeds single samples and conditions them on neighbours.
        spec: Spec of the run.
        data: Data set with the splits in which neighbours are searched.
        device: Device to compute on.
        table: Unconditioned embeddings (N, D) of the training split; if None, they are computed when first needed.
    """

    def __init__(
        self, model: Network, spec: RunSpec, data: Dataset, device: torch.device, table: Tensor | None = None
    ) -> None:
        super().__init__()
        self.model, self.spec, self.data, self.device = model, spec, data, device
        self._table = table
        # unconditioned embeddings of the last embedded set, and the indices of its samples
        self._alone: tuple[Tensor, Ints] | None = None

    @property
    def is_transductive(self) -> bool:
        """True if the embedding of a scored sample depends on the other scored samples."""
        return self.spec.conditioning.among == "own"

    def forward(self, inputs: Tensor) -> Tensor:
        """Embed inputs that belong to no split, such as a user's own images.

        Their neighbours are searched in the test split if embeddings are transductive, else in the training split.
        """
        alone = self.model(inputs).float()
        pool = self._tested if self.is_transductive else self._training
        return self._read(alone, pool, neighbours(alone, pool, self.spec.conditioning.neighbours))

    def embed_set(self, alone: Tensor, indices: Ints) -> Tensor:
        """Return conditioned embeddings (n, D) of the samples at `indices`, given the unconditioned ones in `alone`."""
        self._alone = alone, indices
        return self._of(self.spec.conditioning.among)

    def other_embeddings(self) -> dict[str, Singles]:
        """Return further embeddings (n, D) of the last embedded set: "alone", and "inductive" or "transductive".

        "alone" holds the unconditioned embeddings. The other entry holds embeddings conditioned on the set that
        `conditioning.among` does not select.
        """
        assert self._alone is not None
        other = "train" if self.is_transductive else "own"
        with batches.evaluation_mode(self):
            return {"alone": self._alone[0].cpu().numpy(), KINDS[other]: self._of(other).cpu().numpy()}

    def _of(self, among: str) -> Tensor:
        assert self._alone is not None
        (alone, indices), k = self._alone, self.spec.conditioning.neighbours
        if among == "own":
            return self._read(alone, alone, neighbours(alone, None, k))
        train = self.data.splits["train"]
        places = np.searchsorted(train, indices).clip(max=len(train) - 1)
        own = np.where(train[places] == indices, places, -1)
        return self._read(alone, self._training, neighbours(alone, self._training, k, own))

    def _read(self, alone: Tensor, pool: Tensor, places: Ints) -> Tensor:
        places = in_order(places, self.spec.conditioning.order, seed=seed_of(self.spec.seed, "order"))
        rows = torch.from_numpy(np.ascontiguousarray(places)).to(alone.device)
        size = batches.CHUNK
        parts = [
            self.model.condition(torch.cat([alone[start : start + size, None], pool[rows[start : start + size]]], 1))
            for start in range(0, len(alone), size)
        ]
        return torch.cat(parts)

    @cached_property
    def _tested(self) -> Tensor:
        return self._embedded(batches.rows_of(self.data, "test")[0])

    @cached_property
    def _training(self) -> Tensor:
        return self._embedded(self.data.splits["train"]) if self._table is None else self._table

    def _embedded(self, indices: Ints) -> Tensor:
        return torch.from_numpy(batches.embed(self.model, self.data, indices, self.device)).to(self.device)


def neighbours(points: Tensor, pool: Tensor | None, k: int, own: Ints | None = None) -> Ints:
    """Return the indices (n, k) of the k nearest pool rows of each point, nearest first; ties go to the lower index.

    If there are fewer than k neighbours, the last one is repeated. A point that is the only one of its set is its own
    neighbour.

    Args:
        points: Points (n, D).
        pool: Points to search, (N, D); None searches the points themselves, without each point itself.
        k: Number of neighbours.
        own: For each point, the pool row that is the point itself and is excluded, or -1 if there is none, (n,).
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
