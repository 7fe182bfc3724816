"""What a training works with, made from its spec: device, data, network, losses, optimiser; how one step is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from dmlcore import checkpoint, data, losses, models, pooling
from dmlcore.data import Dataset
from dmlcore.runs import RunError, RunStore
from dmlcore.sampling import BalancedSampler
from dmlcore.spec import RunSpec

PLATEAU_FACTOR = 0.5


class TrainingError(RuntimeError):
    """A training that cannot start or go on; the message says why and what to do."""


class StepError(TrainingError):
    """A step that was not made, because something in it was not finite; `indices` are the samples of its batch."""

    def __init__(self, what: str, step: int, indices: NDArray[np.int64]) -> None:
        super().__init__(
            f"step {step} was not made: {what}. The last checkpoint is good, and failure.json names the {len(indices)} "
            f"samples of the batch: check them, or lower the learning rate"
        )
        self.step, self.indices = step, indices.tolist()


class Objective(nn.Module):
    """The metric loss, mixed with the zero-shot prediction loss of the pooling's prototype shares where asked for."""

    def __init__(self, metric: nn.Module, zero_shot: pooling.ZeroShotPrediction | None, share: float) -> None:
        super().__init__()
        self.metric, self.zero_shot, self.share = metric, zero_shot, share
        self.zero_shot_value: float | None = None  # of the last batch

    def forward(self, embeddings: Tensor, labels: Tensor, shares: Tensor | None = None) -> Tensor:
        """Scalar loss; shares (B, m), without a graph while the prototypes are not yet placed, then no part of it."""
        loss: Tensor = self.metric(embeddings, labels)
        self.zero_shot_value = None
        if self.zero_shot is None or shares is None or not shares.requires_grad:
            return loss
        predicted: Tensor = self.zero_shot(shares, labels)
        self.zero_shot_value = predicted.item()
        return pooling.mixed(loss, predicted, self.share)


@dataclass
class Workbench:
    """Everything that changes during a training; `best` holds the weights with the best validation score."""

    spec: RunSpec
    data: Dataset
    device: torch.device
    model: nn.Module
    loss: Objective
    optimiser: torch.optim.Optimizer
    sampler: BalancedSampler
    best: dict[str, Tensor]

    def step(self, step: int, objective: Callable[..., Tensor] | None = None) -> Tensor:
        """Make step `step` >= 1 and return its loss; a function of (seed, step) and of the weights.

        objective: (embeddings, labels, shares) -> scalar, in place of `loss`. Raises StepError, with the weights
        untouched, where loss or gradient is not finite.
        """
        # A balanced batch and its augmentation.
        indices = self.data.parts["train"][self.sampler.batch(step)]
        labels = torch.from_numpy(self.data.labels[indices]).to(self.device)
        inputs = to_device(self.data, indices, self.device)
        if inputs.ndim == 4 and self.spec.data.augment:
            inputs = augment(inputs, seed_of(self.spec.seed, "augment", step))

        # Forward, backward; nothing that is not finite reaches the weights.
        try:
            embeddings = self.model(inputs)
            loss: Tensor = (objective or self.loss)(embeddings, labels, self.shares())
        except ValueError as error:  # the loss refuses embeddings that are not finite or whose squares overflow
            raise StepError(str(error), step, indices) from None
        _require_finite("loss", loss, step, indices)
        self.optimiser.zero_grad()
        loss.backward()
        _require_finite("gradient", _largest_gradient(self.optimiser), step, indices)
        self.optimiser.step()
        if isinstance(self.model, models.TokenNetwork):
            self.model.after_step()
        return loss.detach()

    def shares(self) -> Tensor | None:
        """Prototype shares (B, m) of the last batch, where the pooling has prototypes."""
        return getattr(getattr(self.model, "pool", None), "shares", None)

    @property
    def pooling_ready(self) -> bool:
        """False while a pooling with prototypes collects what they start from, and averages meanwhile."""
        return bool(getattr(getattr(self.model, "pool", None), "ready", True))

    def measured(self) -> dict[str, float]:
        """What the losses of the last batch say beside their value: shares of triplets, the zero-shot part."""
        counts = getattr(self.loss.metric, "counts", None)
        found: dict[str, float] = {}
        if counts is not None and counts.valid:
            found = {"nonzero": counts.nonzero / counts.valid, "active": counts.active / counts.valid}
        if self.loss.zero_shot_value is not None:
            found["zero_shot"] = self.loss.zero_shot_value
        return found

    def halve_learning_rate(self, times: int) -> None:
        """Set the learning rate of the spec, halved this many times."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.spec.optimiser.learning_rate * PLATEAU_FACTOR**times

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
    """Network, losses and optimiser, initialised as a function of the seed; raises TrainingError or ModelError."""
    model = _model(spec, dataset).to(device)
    loss = _objective(spec, classes_of(dataset), model).to(device)
    kinds: dict[str, type[torch.optim.Adam | torch.optim.RMSprop]] = {
        "adam": torch.optim.Adam,
        "rmsprop": torch.optim.RMSprop,
    }
    optimiser = kinds[spec.optimiser.name](
        [*model.parameters(), *loss.parameters()],
        lr=spec.optimiser.learning_rate,
        weight_decay=spec.optimiser.weight_decay,
    )
    labels = dataset.labels[dataset.parts["train"]]
    try:
        sampler = BalancedSampler(labels, spec.batch.classes, spec.batch.samples, seed=spec.seed)
    except ValueError as error:
        raise TrainingError(f"batch: {error}") from None
    return Workbench(spec, dataset, device, model, loss, optimiser, sampler, best={})


def classes_of(dataset: Dataset) -> int:
    """One more than the largest training label: how many proxies or label embeddings a loss needs."""
    return int(dataset.labels[dataset.parts["train"]].max()) + 1


def to_device(dataset: Dataset, indices: NDArray[np.int64], device: torch.device) -> Tensor:
    """Inputs of these samples on the device; pictures in the memory layout that convolutions like best."""
    inputs = torch.from_numpy(np.ascontiguousarray(dataset.inputs[indices])).to(device)
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.ndim == 4 else inputs


def refuse_unusable(spec: RunSpec) -> None:
    """Raise TrainingError for a loss that cannot be made, DataError for missing data, before a run exists."""
    _metric_loss(spec, classes=2)
    if spec.pooling.name not in pooling.names():
        raise TrainingError(f"pooling: unknown pooling {spec.pooling.name!r}; known: {', '.join(pooling.names())}")
    data.locate(spec.data.name, spec.data.root)


def load_data(spec: RunSpec) -> Dataset:
    """The data set of a spec; raises DataError."""
    d = spec.data
    folds = data.Folds(d.folds, d.fold, d.fold_order, d.fold_seed) if d.folds else None
    return data.load(
        d.name,
        root=d.root,
        split=d.split,
        validation=d.validation,
        folds=folds,
        image_size=d.image_size,
        seed=spec.seed,
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
        model = models.build(spec.model, shape, seed=seed, pool=spec.pooling)
        if spec.model.start:
            _start(model, spec.model.start)
        return nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)  # 1.4 times faster on a CPU
    if spec.model.start:
        raise TrainingError(
            f"model.start: only networks for pictures have a backbone to start; {spec.model.name} has none"
        )
    if np.issubdtype(dataset.inputs.dtype, np.integer):
        largest = int(dataset.inputs[dataset.parts["train"]].max())
        return models.build(spec.model, shape, seed=seed, pool=spec.pooling, vocabulary=largest + 1)
    vectors = dataset.inputs[dataset.parts["train"]]
    mean, std = float(vectors.mean()), float(vectors.std())
    return models.build(spec.model, shape, seed=seed, mean=mean, std=std or 1.0)


def _start(model: nn.Module, start: str) -> None:
    """Load the backbone from the best weights of a run, or from a file of weights; raises TrainingError."""
    path = Path(start).expanduser()
    try:
        if path.is_file():
            weights = torch.load(path, map_location="cpu", weights_only=True)
        else:
            folder = path if path.is_dir() else RunStore().open(start).path
            saved = checkpoint.load(folder)
            if saved is None:
                raise TrainingError(f"model.start: {start} has no checkpoint yet; finish that run first")
            model_weights = checkpoint.part(saved.tensors, "best") or checkpoint.part(saved.tensors, "model")
            weights = checkpoint.part(model_weights, "backbone")
    except (RunError, checkpoint.CheckpointError, OSError, RuntimeError, ValueError, EOFError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(
            f"model.start: {start} is no run and no file of weights that can be read: {error}"
        ) from None
    backbone: Any = model.backbone
    known = backbone.state_dict()
    fitting = {k: v for k, v in weights.items() if isinstance(v, Tensor) and k in known and v.shape == known[k].shape}
    if missing := [k for k in known if k not in fitting and not k.endswith("num_batches_tracked")]:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise TrainingError(f"model.start: {start} does not fit this backbone: no {', '.join(missing[:3])}{more}")
    backbone.load_state_dict(known | fitting)


def _objective(spec: RunSpec, classes: int, model: nn.Module) -> Objective:
    metric, zero_shot, share = _metric_loss(spec, classes), None, spec.pooling.zero_shot
    if share:
        if not hasattr(getattr(model, "pool", None), "shares"):
            raise TrainingError(f"pooling.zero_shot: {spec.pooling.name} has no prototypes to predict from; choose gsp")
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed_of(spec.seed, "zero-shot"))
            zero_shot = pooling.ZeroShotPrediction(
                classes, spec.model.embedding_dim, epsilon=spec.pooling.ridge, scale=spec.pooling.logit_scale
            )
    return Objective(metric, zero_shot, share)


def _metric_loss(spec: RunSpec, classes: int) -> nn.Module:
    hyper: dict[str, Any] = dict(spec.loss.parameters)
    sizes = {"classes": classes, "embedding_dim": spec.model.embedding_dim}
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed_of(spec.seed, "loss"))
        try:
            return losses.for_training(spec.loss.name, reduction=spec.loss.reduction, **sizes, **hyper)
        except (KeyError, TypeError, ValueError) as error:
            raise TrainingError(f"loss: {error.args[0]}") from None


def _require_finite(what: str, values: Tensor, step: int, indices: NDArray[np.int64]) -> None:
    if not torch.isfinite(values.detach()).all():
        raise StepError(f"the {what} is NaN or infinite", step, indices)


def _largest_gradient(optimiser: torch.optim.Optimizer) -> Tensor:
    """The largest magnitude of any gradient; NaN if one is NaN."""
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    return nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type=float("inf"))
