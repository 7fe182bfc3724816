"""What each step trains on: the samples of its batch, and how they reach the device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.training import augmentation, samplers
from dmlcore.training.augmentation import Gathered
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import Tuples, seed_of
from dmlcore.typing import Ints, Singles


@dataclass(frozen=True, eq=False)
class Batch:
    """indices (B,) into the data set, inputs and labels (B,) on the device, tuples that the sampler has mined."""

    indices: Ints
    inputs: Tensor
    labels: Tensor
    tuples: Tuples | None


class Batches:
    """The batch of each step, a function of (seed, step) and, for mined batches, of the table.

    `table` (N, D) holds embeddings of the training part, made anew before every `batch.refresh`-th step; it is None
    where the sampler needs none. On a GPU a thread reads the next batch while the device computes.
    """

    def __init__(self, spec: RunSpec, dataset: Dataset, device: torch.device) -> None:
        self.spec, self.dataset, self.device = spec, dataset, device
        self.part = dataset.parts["train"]
        self.table: Singles | None = None
        if spec.data.fresh and not hasattr(dataset.inputs, "fresh"):
            raise TrainingError(f"data.fresh: only collages can be put together anew, and {dataset.name} has none")
        if spec.data.fresh and dataset.features is not None:
            raise TrainingError("data.fresh: frozen backbones keep feature maps of collages that stay; switch it off")
        b, mined = spec.batch, spec.batch.sampler == "mined"
        try:
            self.sampler = samplers.create(
                b.sampler,
                dataset.labels[self.part],
                b.classes,
                b.samples,
                seed=spec.seed,
                neighbours=b.neighbours,
                **({"miner": spec.miner.name} if mined else {}),
            )
        except ValueError as error:
            raise TrainingError(f"batch: {error}") from None
        self._reader = ThreadPoolExecutor(1, "batches") if device.type == "cuda" else None
        self._next: tuple[int, Future[Gathered]] | None = None

    def make(self, step: int, embed: Callable[[Ints], Singles]) -> Batch:
        """The batch of step `step` >= 1; embed: samples -> their embeddings (n, D), for the table."""
        if self._stale(step):
            self.table = embed(self.part)
        indices, tuples = self._choose(step)
        gathered = self._gather(step, indices)
        if self.dataset.features is not None:
            inputs = augmentation.upload(gathered.inputs, self.device)
        else:
            side, data = self.dataset.inputs.shape[-1], self.spec.data
            inputs = augmentation.apply(gathered, side, data, self._seed(step), self.device)
        labels = augmentation.upload(self.dataset.labels[indices], self.device)
        return Batch(indices, inputs, labels, tuples)

    def _stale(self, step: int) -> bool:
        return self.sampler.uses_table and (self.table is None or (step - 1) % self.spec.batch.refresh == 0)

    def _choose(self, step: int) -> tuple[Ints, Tuples | None]:
        if isinstance(self.sampler, samplers.MinedSampler):
            chosen, places = self.sampler.triplets(step, self.table)
            return self.part[chosen], tuple(augmentation.upload(place, self.device) for place in places)
        return self.part[self.sampler.batch(step, self.table)], None

    def _seed(self, step: int) -> int:
        return seed_of(self.spec.seed, "augment", step)

    def _gather(self, step: int, indices: Ints) -> Gathered:
        """Read the samples of `step`, and ask for those of the next one where that costs no waiting."""
        if self._reader is None:
            return self._read(step, indices)
        waiting = self._next
        found = None if waiting is None or waiting[0] != step else waiting[1].result()
        self._next = None
        if not self._stale(step + 1):
            following = self._choose(step + 1)[0]
            self._next = step + 1, self._reader.submit(self._read, step + 1, following)
        return found or self._read(step, indices)

    def _read(self, step: int, indices: Ints) -> Gathered:
        """Images, or the feature maps that a frozen backbone made of them or of their views."""
        if self.dataset.features is not None:
            return Gathered(self.dataset.features.batch(indices, self._seed(step)))
        return augmentation.gather(self.dataset, indices, self.spec.data, self._seed(step))


def to_device(dataset: Dataset, indices: Ints, device: torch.device) -> Tensor:
    """Inputs of these samples on the device, or the maps that a frozen backbone made of them; channels last."""
    return augmentation.upload((dataset.inputs if dataset.features is None else dataset.features)[indices], device)
