"""What a training works with, made from its spec: device, data, network, losses, optimiser; how one step is made."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore import data
from dmlcore.data import Dataset
from dmlcore.models import backbones, networks
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.training import augmentation, initial_weights, objective, optimisers, stored_features
from dmlcore.training.batches import Batches
from dmlcore.training.errors import StepError, TrainingError, Watch
from dmlcore.training.forks.training_part import edited
from dmlcore.training.objective import Objective, seed_of
from dmlcore.typing import Ints, Singles

__all__ = ["Objective", "StepError", "TrainingError", "Workbench", "build", "seed_of", "to_device"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h
CHUNK = 256  # samples embedded at once for the table of a sampler


@dataclass
class Workbench:
    """Everything that changes during a training; `best` holds the weights with the best monitored score.

    `lowered` counts the plateaus that have lowered the learning rate. After a step `seen` holds its embeddings (B, D)
    float32 and labels (B,), detached, and `gradient_norm` the norm of its gradient before clipping.
    """

    spec: RunSpec
    data: Dataset
    device: torch.device
    model: nn.Module
    loss: Objective
    optimiser: torch.optim.Optimizer
    batches: Batches
    warm_up: optimisers.WarmUp
    watch: Watch
    forward: Callable[[Tensor], Tensor]
    best: dict[str, Tensor] = field(default_factory=dict)
    best_loss: dict[str, Tensor] = field(default_factory=dict)  # of a loss that takes part in embedding
    lowered: int = 0
    seen: tuple[Tensor, Tensor] | None = None
    _norm: Tensor | None = None  # of the gradient before it was clipped

    def step(self, step: int, objective: Callable[..., Tensor] | None = None) -> Tensor:
        """Make step `step` >= 1 and return its loss, on the device; a function of (seed, step) and of the weights.

        objective: (embeddings, labels, shares) -> scalar, in place of `loss`. Raises StepError, with the weights
        untouched, where loss or gradient is not finite; on a GPU `watch.settle` raises it later.
        """
        # Learning rates, what is frozen, a batch and its augmentation.
        optimisers.set_rates(self.optimiser, self.spec.schedule, step, self.lowered)
        self.warm_up(step)
        batch = self.batches.make(step, self._embed)
        self.loss.tuples = batch.tuples
        if self.loss.miner is not None:
            self.loss.generator = torch.Generator().manual_seed(seed_of(self.spec.seed, "miner", step))

        # Forward, the network in the precision of the spec and the loss in float32; backward.
        try:
            with self._precision():
                embeddings = self.forward(batch.inputs)
            embeddings, shares = embeddings.float(), self.shares()
            loss: Tensor = (objective or self.loss)(embeddings, batch.labels, shares)
        except ValueError as error:  # the loss refuses embeddings that are not finite or whose squares overflow
            self.watch.settle()
            raise StepError(str(error), step, batch.indices) from None
        self.watch.loss(loss, step, batch.indices)
        self.optimiser.zero_grad()
        loss.backward()

        # The optimiser's step; nothing that is not finite reaches the weights.
        gradients, settings = optimisers.gradients(self.optimiser), self.spec.optimiser
        clips = settings.clip_norm > 0 or settings.clip_value > 0
        self._norm = nn.utils.get_total_norm(gradients) if clips or self.device.type == "cuda" else None
        # On a CPU a sum finds NaN and Inf in half the time of a norm.
        seen = torch.stack([gradient.sum() for gradient in gradients]).sum() if self._norm is None else self._norm
        self.watch.gradient(seen, step, batch.indices)
        if self._norm is not None:
            optimisers.clip(self.optimiser, settings, self._norm)
        if self.watch.deferred:
            self.optimiser.found_inf = self.watch.found_inf  # type: ignore[attr-defined]
        self.optimiser.step()
        if isinstance(self.model, networks.TokenNetwork):
            self.model.after_step()
        self.seen = embeddings.detach(), batch.labels
        return loss.detach()

    @property
    def gradient_norm(self) -> Tensor:
        """Norm of the gradient of the last step, before clipping."""
        return nn.utils.get_total_norm(optimisers.gradients(self.optimiser)) if self._norm is None else self._norm

    def shares(self) -> Tensor | None:
        """Prototype shares (B, m) of the last batch, where the pooling has prototypes."""
        found: Tensor | None = getattr(getattr(self.model, "pool", None), "shares", None)
        return found.float() if found is not None else None

    @property
    def fused(self) -> bool:
        """Whether the optimiser's kernels are fused, which round differently from the plain ones."""
        return optimisers.is_fused(self.optimiser)

    @property
    def pooling_ready(self) -> bool:
        """False while a pooling with prototypes collects what they start from, and averages meanwhile."""
        return bool(getattr(getattr(self.model, "pool", None), "ready", True))

    def measured(self) -> dict[str, float]:
        """What the losses of the last batch say beside their value, as numbers, for which it waits."""
        return {name: float(value) for name, value in self.loss.measured().items()}

    @property
    def embedder(self) -> nn.Module:
        """What makes scored embeddings of inputs: the network, and how an ensemble joins what its learners embed."""
        return _Joined(self.model, self.loss.metric) if hasattr(self.loss.metric, "embed") else self.model

    def keep_best(self) -> None:
        """Keep the weights as they are now as the best."""
        self.best = _copied(self.model)
        self.best_loss = _copied(self.loss) if hasattr(self.loss.metric, "embed") else {}

    def use_best(self) -> None:
        """Go back to the best weights, if any were kept."""
        if self.best:
            self.model.load_state_dict(self.best)
        if self.best_loss:
            self.loss.load_state_dict(self.best_loss)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, for a checkpoint."""
        table = self.batches.table
        return checkpoint.join(
            model=self.model.state_dict(),
            loss=self.loss.state_dict(),
            optimiser=checkpoint.optimiser_tensors(self.optimiser),
            best=self.best,
            best_loss=self.best_loss,
            table={} if table is None else {"embeddings": torch.from_numpy(table)},
        )

    def restore(self, tensors: Mapping[str, Tensor], *, fused: bool = True) -> None:
        """Put back what `tensors` took; fused: False if it was taken from an optimiser with plain kernels."""
        self.model.load_state_dict(checkpoint.part(tensors, "model"))
        self.loss.load_state_dict(checkpoint.part(tensors, "loss"))
        self.restore_optimiser(checkpoint.part(tensors, "optimiser"), fused=fused)
        self.best, self.best_loss = checkpoint.part(tensors, "best"), checkpoint.part(tensors, "best_loss")
        table = checkpoint.part(tensors, "table").get("embeddings")
        self.batches.table = None if table is None else table.numpy()

    def restore_optimiser(self, moments: Mapping[str, Tensor], *, fused: bool) -> None:
        """Put back the moments of an optimiser that was `fused` or not; one that was not goes on with plain kernels."""
        checkpoint.restore_optimiser(self.optimiser, moments)
        if self.fused and not fused:
            optimisers.without_fused(self.optimiser)
            self.watch.deferred = False  # plain kernels cannot skip an update
        optimisers.start_momentum(self.optimiser)

    def _precision(self) -> AbstractContextManager[object]:
        if self.spec.compute.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _embed(self, indices: Ints) -> Singles:
        """Embeddings (n, D) of these samples by the network as it is, pictures uncut."""
        was_training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            chunks = np.split(indices, range(CHUNK, len(indices), CHUNK))
            found = [self.model(to_device(self.data, chunk, self.device)).float().cpu().numpy() for chunk in chunks]
        self.model.train(was_training)
        return np.concatenate(found)


class _Joined(nn.Module):
    """A network and the loss that joins what its learners embed."""

    def __init__(self, model: nn.Module, metric: nn.Module) -> None:
        super().__init__()
        self.model, self.metric = model, metric

    def forward(self, inputs: Tensor) -> Tensor:
        """The joined embeddings."""
        embed: Any = self.metric.embed
        joined: Tensor = embed(self.model(inputs))
        return joined


def _copied(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def build(spec: RunSpec, dataset: Dataset, device: torch.device, *, start: bool = True) -> Workbench:
    """Network, losses and optimiser, initialised as a function of the seed; raises TrainingError or ModelError.

    start: False leaves out `model.start`, which a resume does not need any more.
    """
    model = _model(spec, dataset, start).to(device)
    loss = objective.create(spec, classes_of(dataset), model).to(device)
    optimiser = optimisers.create(spec, model, loss)
    dataset = edited(dataset, spec.fork)  # network and loss are made as they were for the run that is forked
    if isinstance(model, networks.PictureNetwork) and model.frozen and dataset.features is None:
        dataset = replace(dataset, features=stored_features.KeptFeatures(model, spec, dataset, device))
    # Where the optimiser can skip an update by itself, no step waits for the device.
    deferred = device.type == "cuda" and optimisers.is_fused(optimiser)
    return Workbench(
        spec,
        dataset,
        device,
        model,
        loss,
        optimiser,
        Batches(spec, dataset, device),
        optimisers.WarmUp(spec.schedule.warm_up, model),
        Watch(device, deferred),
        torch.compile(model) if spec.compute.compile else model,
    )


def classes_of(dataset: Dataset) -> int:
    """One more than the largest training label: how many proxies or label embeddings a loss needs."""
    return int(dataset.labels[dataset.parts["train"]].max()) + 1


def to_device(dataset: Dataset, indices: Ints, device: torch.device) -> Tensor:
    """Inputs of these samples on the device, or the maps that a frozen backbone made of them; channels last."""
    return augmentation.upload((dataset.inputs if dataset.features is None else dataset.features)[indices], device)


def refuse_unusable(spec: RunSpec) -> None:
    """Raise SpecError for what no catalogue has, TrainingError for what cannot be made, DataError for missing data."""
    objective.refuse_unknown(spec)
    objective.refuse_unusable(spec)
    known = ["mlp", "tokens", *backbones.names()]
    if spec.model.name not in known and not spec.model.name.startswith("timm:"):
        raise TrainingError(f"model.name: unknown network {spec.model.name!r}; known: {', '.join(known)}, timm:NAME")
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


def has_cuda() -> bool:
    """Whether this machine has a CUDA device that torch can use."""
    return torch.cuda.is_available()


def prepare_device(name: str, threads: int) -> torch.device:
    """Choose the device and make its arithmetic repeatable; raises TrainingError if there is no such device.

    On a GPU the few operations that have no repeatable kernel warn and run. Products of float32 matrices are exact
    there (no TF32), so that distances are; convolutions in float32 may use TF32.
    """
    present = has_cuda()
    if name == "cuda" and not present:
        raise TrainingError("device: this machine has no usable CUDA device; use device=auto or device=cpu")
    device = torch.device("cuda" if present and name != "cpu" else "cpu")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic
    torch.use_deterministic_algorithms(True, warn_only=device.type == "cuda")
    # Nothing here reads what it has not written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True
    torch.set_num_threads(threads)
    return device


def keep_freed_memory() -> None:
    """Let glibc keep what large tensors free: to ask the system for it at every step takes 30 to 40 % of a step.

    For a process that trains and ends; a server would keep what one page needed once.
    One core, conv4, batches of 64: 63 -> 44 ms at 28 pixels a side, 259 -> 156 ms at 56, with 470 MB as before.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # other C libraries have none
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def device_model(device: torch.device) -> str:
    """What rounds the same: "CPU", or the name of the card."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def device_name(device: torch.device) -> str:
    """The device as shown to the user."""
    if device.type == "cuda":
        return device_model(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def _model(spec: RunSpec, dataset: Dataset, start: bool) -> nn.Module:
    shape, seed = dataset.inputs.shape[1:], seed_of(spec.seed, "model")
    if len(shape) == 3:
        model = networks.build(spec.model, shape, seed=seed, pool=spec.pooling)
        if spec.model.start and start:
            initial_weights.start(model, spec.model.name, spec.model.start)
        return nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)  # 1.4 times faster on a CPU
    if spec.model.start:
        raise TrainingError(
            f"model.start: only networks for pictures have a backbone to start; {spec.model.name} has none"
        )
    if np.issubdtype(dataset.inputs.dtype, np.integer):
        largest = int(dataset.inputs[dataset.parts["train"]].max())
        return networks.build(spec.model, shape, seed=seed, pool=spec.pooling, vocabulary=largest + 1)
    if not spec.data.standardize:
        return networks.build(spec.model, shape, seed=seed)
    vectors = dataset.inputs[dataset.parts["train"]]
    mean, std = float(vectors.mean()), float(vectors.std())
    return networks.build(spec.model, shape, seed=seed, mean=mean, std=std or 1.0)
