"""Estimates of a training run before it starts: its time from similar finished runs, its memory from its network."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlcore import data, losses
from dmlcore.jobs import device_queue
from dmlcore.monitoring.estimate.cost import Cost, cost_of
from dmlcore.spec import RunSpec
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.storage.runs import Run, RunError
from dmlcore.training.evaluation import MAX_SAMPLES, MAX_VALUES

MAX_SIMILAR_RUNS = 5  # maximum number of finished runs from which the time is estimated
CUDA_CONTEXT = 500 * 2**20  # bytes of GPU memory used by CUDA and its libraries
PROCESS = 420 * 2**20  # bytes of memory of a process with all libraries loaded


@dataclass(frozen=True)
class DataSize:
    """Shape of one input, number of training classes, and number of samples in each split."""

    shape: tuple[int, ...]
    classes: int
    training: int
    validation: int
    test: int


@dataclass(frozen=True)
class Estimate:
    """Estimated time and memory of a training run.

    Attributes:
        seconds: Duration of all steps and evaluations; None if there is no similar finished run.
        runs: Number of similar finished runs from which `seconds` is estimated.
        memory: Peak memory in bytes, of the GPU if one is used, otherwise of the process.
        parameters: Number of trained parameters.
        frozen_parameters: Number of network parameters that are not trained.
        gpu: True if the run uses a GPU.
        validation_share: Approximate share of validations in the time, 0..1.
    """

    seconds: float | None
    runs: int
    memory: float
    parameters: int
    frozen_parameters: int
    gpu: bool
    validation_share: float


def estimate(spec: RunSpec, size: DataSize, finished: Iterable[Run] = ()) -> Estimate | None:
    """Estimate time and memory of a training run; return None if the size of its network is unknown.

    Args:
        spec: Spec of the run; the estimate ignores early stopping.
        size: Input shape and sizes of the splits.
        finished: Finished runs, newest first, among which similar ones are looked for.
    """
    net = cost_of(spec.model, size.shape)
    whole = cost_of(spec.model.model_copy(update={"freeze": "none"}), size.shape)
    if net is None or whole is None:
        return None
    gpu = device_queue.device_of(spec) == "cuda"
    steps, validations, test = _passes(spec, size, spec.schedule.steps)
    paces = _paces(spec, size, finished)
    return Estimate(
        seconds=statistics.median(paces) * (steps + validations + test) if paces else None,
        runs=len(paces),
        memory=_memory(spec, size, net, gpu),
        parameters=net.parameters,
        frozen_parameters=whole.parameters - net.parameters,
        gpu=gpu,
        validation_share=validations / (steps + validations + test),
    )


def embedding_seconds(run: Run, size: DataSize, samples: int) -> float:
    """Return the seconds to embed `samples` inputs at the speed of a run; infinity if the run has made no step."""
    return samples * (_seconds_per_pass(run, size) or math.inf)


def _seconds_per_pass(run: Run, size: DataSize) -> float | None:
    """Return the time of a run so far, divided by its forward passes of a sample; None before its first step."""
    state = run.state()
    return state.seconds / sum(_passes(run.spec, size, state.step)) if state.step and state.seconds > 0 else None


def _passes(spec: RunSpec, size: DataSize, steps: int) -> tuple[float, float, float]:
    """Return the forward passes of a sample in `steps` steps, in their validations, and in the tests of a run.

    A backward pass counts as two forward passes. Search, loss and optimiser are not counted: in similar runs they are
    about proportional to the passes.
    """
    monitored = size.test if spec.schedule.monitor_part == "test" else size.validation
    validations = 1 + math.ceil(steps / spec.schedule.validate_every)
    return 3.0 * steps * spec.batch.classes * spec.batch.samples, float(validations * monitored), 2.0 * size.test


def _paces(spec: RunSpec, size: DataSize, finished: Iterable[Run]) -> list[float]:
    """Return the seconds per pass of the newest finished runs with the same network and data.

    If there are runs that also have the same loss, miner and batch, only these are used.
    """
    alike, same = [], []
    for run in finished:
        with suppress(RunError):  # deleted at this moment
            # the recorded time of a fork includes the time of its parent
            if run.spec.fork.run or _key(run.spec) != _key(spec) or run.state().state != "done":
                continue
            if pace := _seconds_per_pass(run, size):
                alike.append(pace)
                if (run.spec.loss, run.spec.miner, run.spec.batch) == (spec.loss, spec.miner, spec.batch):
                    same.append(pace)
    return (same or alike)[:MAX_SIMILAR_RUNS]


def _key(spec: RunSpec) -> tuple[Any, ...]:
    """Return the settings that must be equal in two runs for the time of one to predict the time of the other."""
    m, d = spec.model, spec.data
    network = (m.name, m.hidden, m.keep_classifier, m.freeze, m.gather, spec.pooling.name)
    return (*network, spec.compute, device_queue.device_of(spec), d.name, d.image_size, d.augment, d.crop)


def _memory(spec: RunSpec, size: DataSize, net: Cost, gpu: bool) -> float:
    """Return the peak memory in bytes, of the GPU if one is used, otherwise of the process."""
    batch = spec.batch.classes * spec.batch.samples
    loss, proxies = losses.describe(spec.loss.name), 0
    if getattr(loss, "proxies", False):
        of_each = {**loss.defaults, **spec.loss.parameters}
        each = max(int(of_each.get(key, 1)) for key in ("per_class", "centres"))
        proxies = size.classes * spec.model.embedding_dim * each
    parameters = net.parameters + proxies
    started = net.parameters if spec.loss.start_weight else 0
    trained = 4 * parameters * (2 + OPTIMISERS[spec.optimiser.name].values_per_parameter)
    weights = trained + 4 * started
    # bytes of the network weights before the current projection, and of the best weights since then with the proxies
    projected = 4 * (2 * net.parameters + proxies) if spec.projection.pool else 0
    weights += projected
    best = 0 if spec.data.validation == "none" and spec.schedule.monitor_part == "validation" else 4 * parameters
    # with bfloat16, activations take 60 % of the float32 memory, since batch norm and the head stay in float32
    shrunk = 0.6 if spec.compute.precision == "bfloat16" else 1.0
    step = shrunk * net.activation_bytes * batch + 4 * spec.loss.memory * batch * (spec.model.embedding_dim + batch)
    each = int(np.prod(size.shape))
    device = "cuda" if gpu else "cpu"
    look = 2 * net.largest * max(1, min(MAX_SAMPLES[device], MAX_VALUES[device] // each))
    if gpu:
        return CUDA_CONTEXT + weights + best + max(step, look)
    saving = trained + projected  # a checkpoint is assembled in memory from a copy of the weights and optimiser state
    return PROCESS + weights + best + _input_bytes(spec, size) + max(step, look, saving)


def _input_bytes(spec: RunSpec, size: DataSize) -> float:
    """Return the bytes of inputs held in memory; 0 for image data sets that are resized and memory-mapped instead."""
    info = data.describe(spec.data.name)
    number = {"images": 1, "vectors": 4, "tokens": 8}[info.kind]
    samples = size.training + size.validation + size.test
    return 0.0 if info.resizes else float(samples * np.prod(size.shape) * number)
