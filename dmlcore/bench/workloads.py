"""Runs that are measured: images in memory, the training loop with a hook after each step, and the bare step."""

from __future__ import annotations

import copy
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import build, loop, optimisers, starts
from dmlcore.training.state import TrainingState
from dmlcore.typing import Bytes, Ints

TINY = ("model.name=conv4_32", "model.embedding_dim=128", "batch.classes=2", "batch.samples=2")


def step_spec(small: bool, overrides: Sequence[str] = ()) -> RunSpec:
    """Return the spec of the measured step: ResNet-50, batch 28 x 4, bfloat16, checkpoints; if `small`, a tiny one."""
    spec = RunSpec().with_overrides(
        [
            *("model.name=resnet50", "model.embedding_dim=512", "loss.name=distance_sensitive", "batch.classes=28"),
            *("batch.samples=4", "compute.precision=bfloat16", "data.crop=resized", "data.validation=none"),
            "schedule.checkpoint_every=50",
        ]
    )
    return spec.with_overrides([*(TINY if small else ()), *overrides])


class ImagesInMemory:
    """Random images with the interface of `dmlcore.data.files.image_store`.

    Indexing returns square crops; `uncut` returns the full images, from which random crops are cut.
    """

    def __init__(self, count: int, side: int) -> None:
        draw, high = np.random.default_rng(0), round(side * 256 / 227)
        # like photographs with a short side of `high` pixels and a long side of up to 1.5 times that
        widths = draw.integers(high, high * 3 // 2, count)
        self.images: list[Bytes] = [draw.integers(0, 256, (high, width, 3), dtype=np.uint8) for width in widths]
        self.shape, self.dtype = (count, 3, side, side), np.dtype(np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Bytes:
        side = self.shape[-1]
        rows = np.arange(len(self.images))[index]
        cuts = np.stack([self.images[row][:side, :side] for row in np.ravel(rows)])
        cropped: Bytes = cuts.reshape(*np.shape(rows), side, side, 3).swapaxes(-1, -2).swapaxes(-2, -3)
        return cropped

    def uncut(self, indices: Ints) -> list[Bytes]:
        """Return the full images (h, w, 3) for some indices."""
        return [self.images[row] for row in indices]


def random_photographs(classes: int, image_size: int) -> Dataset:
    """Return a data set of random images in memory, 32 per class."""
    labels = np.repeat(np.arange(classes), 32)
    everything = np.arange(len(labels))
    splits = {"train": everything, "validation": everything[:0], "test": everything[::16]}
    images: Any = ImagesInMemory(len(labels), image_size)
    return Dataset("random", images, labels, tuple(map(str, range(classes))), splits, None, ())


def trained(spec: RunSpec, dataset: Dataset, after_step: Callable[[TrainingState], bool | None]) -> TrainingState:
    """Train with the loop of the command line until `after_step`, which is called after each step, returns True."""
    states: list[TrainingState] = []

    def keep(*args: Any, **options: Any) -> TrainingState:
        states.append(build.build(*args, **options))
        return states[0]

    def stop() -> bool:
        return bool(after_step(states[0]))

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(starts, "build", keep):
        run = RunStore(folder).create(spec)
        with run.lock():
            state = loop.train(run, dataset=dataset, stop=stop)
    if state.state not in ("done", "cancelled"):
        sys.exit(state.message)
    return states[0]


def bare_step(state: TrainingState, *, plain: bool = False) -> Callable[[], None]:
    """Return a function that performs a bare step: forward pass, backward pass of a sum, and optimiser step.

    It is launched kernel by kernel. If `plain`, the optimiser is not fused.
    """
    model = copy.deepcopy(state.model).train()
    optimiser = optimisers.create(state.spec, model, torch.nn.Module())
    if plain:
        optimisers.disable_fused(optimiser)
    size = state.spec.batch.classes * state.spec.batch.samples
    inputs = state.batches.prepared(state.data.splits["train"][:size], 1)
    direction = torch.randn(size, state.spec.model.embedding_dim, device=inputs.device)
    bfloat16 = state.spec.compute.precision == "bfloat16"

    def step() -> None:
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=bfloat16):
            embeddings = model(inputs)
        loss = (embeddings.float() * direction).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for _ in range(3):  # memory is allocated and kernels are chosen
        step()
    return step
