"""What a training works with, made from its spec: device, data, network, loss, optimiser, augmentation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import checkpoint, data, losses, models
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec


class TrainingError(RuntimeError):
    """A training that cannot start or go on; the message says why and what to do."""


@dataclass
class Workbench:
    """Everything that changes during a training; `best` holds the weights with the best validation score."""

    spec: RunSpec
    data: Dataset
    device: torch.device
    model: nn.Module
    loss: nn.Module
    optimiser: torch.optim.Optimizer
    best: dict[str, Tensor]

    def tensors(self) -> dict[str, Tensor]:
        """All of it, for a checkpoint."""
        return checkpoint.join(
            model=self.model.state_dict(),
            loss=self.loss.state_dict(),
            optimiser=checkpoint.optimiser_tensors(self.optimiser),
            best=self.best,
        )

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `tensors` took."""
        self.model.load_state_dict(checkpoint.part(tensors, "model"))
        self.loss.load_state_dict(checkpoint.part(tensors, "loss"))
        checkpoint.restore_optimiser(self.optimiser, checkpoint.part(tensors, "optimiser"))
        self.best = checkpoint.part(tensors, "best")


def build(spec: RunSpec, dataset: Dataset, device: torch.device) -> Workbench:
    """Network, loss and optimiser, initialised as a function of the seed; raises TrainingError or ModelError."""
    model = _model(spec, dataset).to(device)
    loss = _loss(spec).to(device)
    kinds: dict[str, type[torch.optim.Adam | torch.optim.RMSprop]] = {
        "adam": torch.optim.Adam,
        "rmsprop": torch.optim.RMSprop,
    }
    optimiser = kinds[spec.optimiser.name](
        [*model.parameters(), *loss.parameters()],
        lr=spec.optimiser.learning_rate,
        weight_decay=spec.optimiser.weight_decay,
    )
    return Workbench(spec, dataset, device, model, loss, optimiser, best={})


def refuse_unusable(spec: RunSpec) -> None:
    """Raise TrainingError for a loss that cannot be made, DataError for missing data, before a run exists."""
    _loss(spec)
    data.locate(spec.data.name, spec.data.root)


def load_data(spec: RunSpec) -> Dataset:
    """The data set of a spec; raises DataError."""
    d = spec.data
    return data.load(
        d.name, root=d.root, split=d.split, validation=d.validation, image_size=d.image_size, seed=spec.seed
    )


def prepare_device(name: str, threads: int) -> torch.device:
    """Choose the device and make its arithmetic repeatable; raises TrainingError if there is no such device."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(threads)
    present = torch.cuda.is_available()
    if name == "cuda" and not present:
        raise TrainingError("device: this machine has no usable CUDA device; use device=auto or device=cpu")
    return torch.device("cuda" if present and name != "cpu" else "cpu")


def device_name(device: torch.device) -> str:
    """The device as shown to the user."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def seed_of(seed: int, purpose: str, step: int = 0) -> int:
    """An independent 64-bit seed for each (seed, purpose, step)."""
    words = [seed, step, *purpose.encode()]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def augment(pictures: Tensor, seed: int) -> Tensor:
    """Flip half of the pictures (B, 3, H, W) and shift each by up to an eighth of its side, black outside."""
    batch, _, height, width = pictures.shape
    pad = height // 8
    random = torch.Generator().manual_seed(seed)  # on the CPU, so that every device draws the same
    flip = torch.rand(batch, 1, generator=random) < 0.5
    top, left = torch.randint(0, 2 * pad + 1, (2, batch, 1), generator=random)
    rows = torch.arange(height) + top
    columns = torch.arange(width).expand(batch, width)
    columns = torch.where(flip, columns.flip(1), columns) + left
    each, rows, columns = (index.to(pictures.device) for index in (torch.arange(batch), rows, columns))
    padded = F.pad(pictures, (pad, pad, pad, pad)).permute(0, 2, 3, 1)
    return padded[each[:, None, None], rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _model(spec: RunSpec, dataset: Dataset) -> nn.Module:
    shape, seed = dataset.inputs.shape[1:], seed_of(spec.seed, "model")
    if len(shape) == 3:
        model = models.build(spec.model, shape, seed=seed)
        return nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)  # 1.4 times faster on a CPU
    vectors = dataset.inputs[dataset.parts["train"]]
    mean, std = float(vectors.mean()), float(vectors.std())
    return models.build(spec.model, shape, seed=seed, mean=mean, std=std or 1.0)


def _loss(spec: RunSpec) -> nn.Module:
    hyper: dict[str, Any] = dict(spec.loss.parameters)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed_of(spec.seed, "loss"))
        try:
            return losses.create(spec.loss.name, reduction=spec.loss.reduction, **hyper)
        except (KeyError, TypeError, ValueError) as error:
            raise TrainingError(f"loss: {error.args[0]}") from None
