"""What a training works with, made from its spec: device, data, network, losses, optimiser; how one step is made."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from dmlcore import data
from dmlcore.data import Dataset
from dmlcore.models import backbones, networks
from dmlcore.spec import RunSpec
from dmlcore.training import initial_weights, objective, optimisers, stored_features
from dmlcore.training.batches import Batches
from dmlcore.training.errors import StepError, TrainingError
from dmlcore.training.finite_check import FiniteCheck
from dmlcore.training.forks.training_part import edited
from dmlcore.training.objective import Objective, seed_of
from dmlcore.training.state import TrainingState

__all__ = ["Objective", "StepError", "TrainingError", "build", "seed_of"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h


def build(spec: RunSpec, dataset: Dataset, device: torch.device, *, start: bool = True) -> TrainingState:
    """Network, losses and optimiser, initialised as a function of the seed; raises TrainingError or ModelError.

    start: False leaves out `model.start`, which a resume does not need any more.
    """
    model = _model(spec, dataset, start).to(device)
    loss = objective.create(spec, classes_of(dataset), model).to(device)
    optimiser = optimisers.create(spec, model, loss)
    dataset = edited(dataset, spec.fork)  # network and loss are made as they were for the run that is forked
    if isinstance(model, networks.ImageNetwork) and model.frozen and dataset.features is None:
        dataset = replace(dataset, features=stored_features.KeptFeatures(model, spec, dataset, device))
    # Where the optimiser can skip an update by itself, no step waits for the device.
    deferred = device.type == "cuda" and optimisers.is_fused(optimiser)
    return TrainingState(
        spec,
        dataset,
        device,
        model,
        loss,
        optimiser,
        Batches(spec, dataset, device),
        optimisers.WarmUp(spec.schedule.warm_up, model),
        FiniteCheck(device, deferred),
        torch.compile(model) if spec.compute.compile else model,
    )


def classes_of(dataset: Dataset) -> int:
    """One more than the largest training label: how many proxies or label embeddings a loss needs."""
    return int(dataset.labels[dataset.parts["train"]].max()) + 1


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
            f"model.start: only networks for images have a backbone to start; {spec.model.name} has none"
        )
    if np.issubdtype(dataset.inputs.dtype, np.integer):
        largest = int(dataset.inputs[dataset.parts["train"]].max())
        return networks.build(spec.model, shape, seed=seed, pool=spec.pooling, vocabulary=largest + 1)
    if not spec.data.standardize:
        return networks.build(spec.model, shape, seed=seed)
    vectors = dataset.inputs[dataset.parts["train"]]
    mean, std = float(vectors.mean()), float(vectors.std())
    return networks.build(spec.model, shape, seed=seed, mean=mean, std=std or 1.0)
