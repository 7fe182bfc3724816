"""Construction of a training state from its spec: device, data, network, losses and optimiser."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore import data, processes
from dmlcore.data import Dataset
from dmlcore.models import backbones, conditioned, networks, pretrained
from dmlcore.models.networks import ImageNetwork, Network
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import IDENTITY
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training import forward_pass, linear_start, methods, objective, optimisers, stored_features
from dmlcore.training.batches import Batches
from dmlcore.training.errors import DeferredFiniteCheck, StepError, TrainingError
from dmlcore.training.forks.training_split import edit_split
from dmlcore.training.objective import Objective, seed_of
from dmlcore.training.state import TrainingState, device_model

__all__ = ["Objective", "StepError", "TrainingError", "build", "seed_of"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # constants of malloc.h


def build(
    spec: RunSpec, dataset: Dataset, device: torch.device, *, start: bool = True, mode: str = ""
) -> TrainingState:
    """Build the network, losses and optimiser, initialised from the seed of the spec.

    Args:
        spec: Spec of the run.
        dataset: Data set to train on.
        device: Device to train on.
        start: If False, the initial weights `model.start` and those of the embedding layer are not set, because a
            resumed run overwrites them.
        mode: How the forward pass is launched; by default as `forward_pass.choose` decides.

    Raises:
        TrainingError: If the spec cannot be trained.
        ModelError: If the network cannot be built.
    """
    model = _model(spec, dataset, start)
    model.conditioning = conditioned.create(
        spec.conditioning, spec.model.embedding_dim, seed=seed_of(spec.seed, "conditioning")
    )
    model.to(device)
    loss = objective.create(spec, classes_of(dataset), model).to(device)
    optimiser = optimisers.create(spec, model, loss)
    size = len(dataset.splits["train"])
    if spec.conditioning.neighbours >= size:
        raise TrainingError(
            f"conditioning.neighbours: {spec.conditioning.neighbours} exceed the other {size - 1} samples to "
            "train on; use fewer"
        )
    # Network and loss are created before the split is edited, so that their shapes are those of the parent.
    dataset = edit_split(dataset, spec.fork)
    if spec.model.freeze != "none" and dataset.features is None:
        features = stored_features.StoredFeatures(cast(ImageNetwork, model), spec, dataset, device)
        dataset = replace(dataset, features=features)
    mode = mode or forward_pass.choose(spec, model, device)
    state = TrainingState(
        spec=spec,
        data=dataset,
        device=device,
        model=model,
        mode=mode,
        forward=forward_pass.create(spec, model, mode),
        loss=loss,
        optimiser=optimiser,
        batches=Batches(spec, dataset, device),
        frozen_at_first=optimisers.frozen_at_first(spec.schedule, model),
        finite_check=DeferredFiniteCheck(device) if device.type == "cuda" else None,
    )
    if start and spec.model.embedding_start != "random":
        linear_start.begin(state)
    if start:
        linear_start.scale(model, spec.model.embedding_scale)
    if start and spec.loss.proxy_start == "means":
        linear_start.set_proxies(state)
    state.methods = methods.create(state)
    return state


def classes_of(dataset: Dataset) -> int:
    """Return the number of classes for which a loss creates parameters: the largest training label plus one."""
    return int(dataset.labels[dataset.splits["train"]].max()) + 1


def refuse_unusable(spec: RunSpec) -> None:
    """Raise an error if a run cannot be trained with this spec.

    Raises:
        SpecError: If the spec contains unknown names.
        TrainingError: If settings cannot be used.
        DataError: If data are missing.
    """
    objective.refuse_unknown(spec)
    methods.refuse_unknown(spec)
    objective.refuse_unusable(spec)
    if spec.model.name == IDENTITY:
        raise TrainingError(
            "model.name: identity leaves the vectors unchanged, so there is nothing to train; choose model.name=mlp "
            "(model.hidden=[] for a linear layer)"
        )
    if spec.data.split == "none":
        raise TrainingError("data.split: none leaves no samples to train on; choose classes or samples")
    known = [*networks.TAKES, *backbones.names()]
    if spec.model.name not in known and ":" not in spec.model.name:
        raise TrainingError(
            f"model.name: unknown network {spec.model.name!r}; known: {', '.join(known)}, timm:NAME, "
            "or package.module:factory for a network of your own"
        )
    data.locate(spec.data.name, spec.data.root)
    refuse_absent_weights(spec)


def refuse_absent_weights(spec: RunSpec) -> None:
    """Raise TrainingError if the initial weights of the backbone are neither on this machine nor downloadable.

    A fork is not checked, because its weights come from its parent.
    """
    start = spec.model.start
    if not start or spec.fork.run:
        return
    try:
        if _is_file_of_weights(start):
            pretrained.refuse_absent(spec.model.name, start)
        elif not Path(start).expanduser().is_dir():
            RunStore().open(start)
    except (pretrained.WeightsError, RunError) as error:
        raise TrainingError(f"model.start: {error}") from None


def load_data(spec: RunSpec) -> Dataset:
    """Load the data set of a spec; raise DataError if it cannot be read."""
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
        damaged=d.damaged,
    )


def has_cuda() -> bool:
    """Return True if this machine has a CUDA device that torch can use."""
    return torch.cuda.is_available()


def prepare_device(name: str, threads: int) -> torch.device:
    """Choose the device and make its arithmetic deterministic.

    On a GPU, the few operations without a deterministic kernel only issue a warning. Matrix products of float32 have
    full float32 precision (no TF32), so that distances are accurate; convolutions in float32 may use TF32.

    Args:
        name: "auto", "cpu" or "cuda".
        threads: Number of CPU threads.

    Raises:
        TrainingError: If this machine has no such device, or fewer GPUs than processes.
    """
    present = name != "cpu" and has_cuda()
    if name == "cuda" and not present:
        raise TrainingError("device: this machine has no usable CUDA device; use device=auto or device=cpu")
    device = torch.device("cuda" if present else "cpu")
    if device.type == "cuda" and processes.size() > 1:
        if processes.local_size() > torch.cuda.device_count():
            raise TrainingError(
                f"device: {processes.local_size()} processes on this machine need one GPU each, but there are "
                f"{torch.cuda.device_count()}; start fewer, or use device=cpu"
            )
        device = torch.device("cuda", processes.local_rank())
        torch.cuda.set_device(device)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by cuBLAS for deterministic results
    # torch.use_deterministic_algorithms would also import Inductor, which is not needed
    torch.set_deterministic_debug_mode("warn" if device.type == "cuda" else "error")
    # No operation here reads uninitialised memory, so it need not be filled.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True
    torch.set_num_threads(threads)
    return device


def keep_freed_memory() -> None:
    """Make glibc keep the freed memory of large tensors; requesting it again takes 30 to 40 % of each training step.

    Call this only in a process that ends after training; a server would never release the memory. Measured on one core
    with conv4 and batches of 64: a step takes 44 instead of 63 ms at 28 pixels per side, and 156 instead of 259 ms at
    56, with 470 MB of memory in each case.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # other C libraries do not have it
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def device_name(device: torch.device) -> str:
    """Return the name of the device for display."""
    if device.type == "cuda":
        name = device_model(device)
    else:
        threads = torch.get_num_threads()
        name = f"CPU, {threads} thread{'s' if threads > 1 else ''}"
    return name if processes.size() == 1 else f"{processes.size()} processes, each {name}"


def _model(spec: RunSpec, dataset: Dataset, start: bool) -> Network:
    shape, seed = dataset.inputs.shape[1:], seed_of(spec.seed, "model")
    if len(shape) == 3:
        model = networks.build(spec.model, shape, seed=seed, pool=spec.pooling)
        if spec.model.start and start:
            _load_start(model, spec.model.name, spec.model.start)
        nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)  # 1.4 times faster on a CPU
        return model
    if spec.model.start:
        raise TrainingError(
            f"model.start: only networks for images have a backbone to initialise; {spec.model.name} has none"
        )
    if np.issubdtype(dataset.inputs.dtype, np.integer):
        largest = int(dataset.inputs[dataset.splits["train"]].max())
        return networks.build(spec.model, shape, seed=seed, pool=spec.pooling, vocabulary=largest + 1)
    if not spec.data.standardize:
        return networks.build(spec.model, shape, seed=seed)
    vectors = dataset.inputs[dataset.splits["train"]]
    mean, std = float(vectors.mean()), float(vectors.std())
    return networks.build(spec.model, shape, seed=seed, mean=mean, std=std or 1.0)


def _load_start(model: nn.Module, name: str, origin: str) -> None:
    """Load the initial weights of the backbone `name`; raise TrainingError if any weight is missing.

    `origin` is "imagenet" or another name of `pretrained.CHECKPOINTS`, a file of weights, a run id, or the folder of a
    run.
    """
    backbone: Any = model.backbone
    try:
        if _is_file_of_weights(origin):
            pretrained.load(backbone, name, origin)
        else:
            pretrained.assign(backbone, _best_backbone(Path(origin).expanduser(), origin), origin)
    except (pretrained.WeightsError, RunError, checkpoint.CheckpointError) as error:
        raise TrainingError(f"model.start: {error}") from None


def _is_file_of_weights(origin: str) -> bool:
    """Return True if `origin` names a published checkpoint or a file of weights, False if it names a run."""
    path = Path(origin).expanduser()
    return path.is_file() or origin == "imagenet" or origin in pretrained.CHECKPOINTS or bool(path.suffix)


def _best_backbone(path: Path, origin: str) -> dict[str, Tensor]:
    """Return the backbone's tensors from a run: its best weights by validation if stored, else its last weights."""
    folder = path if path.is_dir() else RunStore().open(origin).path
    saved = checkpoint.load(folder)
    if saved is None:
        raise TrainingError(f"model.start: {origin} has no checkpoint yet; finish that run first")
    network = checkpoint.select_prefix(saved.tensors, "best") or checkpoint.select_prefix(saved.tensors, "model")
    return checkpoint.select_prefix(network, "backbone")
