"""Estimates of a training run's time and memory, from similar finished runs or from the measured speed of this machine.

The time of a step is a weighted sum of flops, bytes kept for the backward pass, operations, updated parameters and a
constant 1, plus the measured time of the loss. The weights are the costs of each of these on this machine (`speed`).
The sum is multiplied by the median ratio of actual to estimated time in finished runs with the same network and data.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from dmlcore import data, losses, mining
from dmlcore.jobs import device_queue
from dmlcore.monitoring.estimate.flops import Cost, cost_of
from dmlcore.monitoring.estimate.speed import Speed, features, known_speed
from dmlcore.spec import RunSpec
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.storage.runs import Run, RunError
from dmlcore.training.evaluation import MAX_SAMPLES, MAX_VALUES

# largest batch for which a loss is timed; the time of larger batches is extrapolated quadratically
MAX_TIMED_BATCH = 256
MAX_SIMILAR_RUNS = 5  # maximum number of finished runs used for calibration
CUDA_CONTEXT = 500 * 2**20  # bytes of GPU memory used by CUDA and its libraries


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
        seconds: Duration of all steps and evaluations.
        memory: Peak memory in bytes, of the GPU if one is used, otherwise of the process.
        parameters: Number of trained parameters.
        flops: Floating-point operations per step.
        basis: Description of what the estimate is based on, for display.
    """

    seconds: float
    memory: float
    parameters: int
    flops: float
    basis: str
    runs: int  # number of finished runs used for calibration; 0: the estimate uses only the speed of this machine
    gpu: bool
    validation_share: float = 0.0  # share of the estimated time that validations take, 0..1
    frozen_parameters: int = 0  # number of network parameters that are not trained


def estimate(
    spec: RunSpec, size: DataSize, finished: Iterable[Run] = (), speed: Speed | None = None
) -> Estimate | None:
    """Estimate time and memory of a training run; return None if the cost of its network is unknown.

    Args:
        spec: Spec of the run; the estimate ignores early stopping.
        size: Input shape and sizes of the splits.
        finished: Finished runs, newest first, used to calibrate the estimate.
        speed: Speed of the device. None: the speed measured on this machine or, if it was not measured yet, a default.
    """
    gpu = device_queue.device_of(spec) == "cuda"
    speed = speed or known_speed("cuda" if gpu else "cpu") or Speed()
    net = cost_of(spec.model, size.shape)
    if net is None:
        return None
    seconds = _seconds(spec, size, net, speed)
    ratios = _ratios(spec, size, finished, net, speed)
    if ratios:
        seconds *= statistics.median(ratios)
        basis = f"from {len(ratios)} finished run{'s' if len(ratios) > 1 else ''} like it"
    else:
        basis = (
            "from this machine's speed"
            if speed.measured
            else "for a typical laptop, while this machine is being measured"
        )
    batch = spec.batch.classes * spec.batch.samples
    memory = _memory(spec, size, net, speed, gpu)
    validating = _validation_seconds(spec, size, net, speed) / max(_seconds(spec, size, net, speed), 1e-9)
    trained, whole = round(net.parameters), _unfrozen_cost(spec, size)
    frozen = round(whole.parameters) - trained if whole else 0
    return Estimate(seconds, memory, trained, 3 * batch * net.flops, basis, len(ratios), gpu, validating, frozen)


def _seconds(spec: RunSpec, size: DataSize, net: Cost, speed: Speed) -> float:
    """Return the estimated seconds for all steps, validations and tests, before calibration with finished runs."""
    batch = spec.batch.classes * spec.batch.samples
    costs = (speed.flop, speed.byte, speed.operation, speed.parameter, speed.step)
    step = sum(c * f for c, f in zip(costs, features(net, batch), strict=True))
    step += loss_seconds(spec, size.classes)
    look, search = _embedding_seconds(net, speed), 2 * speed.flop * spec.model.embedding_dim
    looks = _validation_seconds(spec, size, net, speed) + 2 * (size.test * look + size.test**2 * search)
    whole = _unfrozen_cost(spec, size)
    if spec.model.freeze != "none" and whole:
        views = spec.data.views * (size.training + size.validation)
        # A frozen backbone computes its feature maps only once, after which they are read from the cache.
        looks += (size.training + size.validation + size.test + views) * whole.flops * speed.flop
    if spec.batch.sampler in ("mined", "neighbourhood"):
        tabled = max(0, spec.schedule.steps - spec.batch.balanced_steps)
        tables = math.ceil(tabled / (spec.batch.refresh or max(1, tabled)))
        looks += tables * (size.training * look + size.training**2 * search)
    if spec.loss.start_weight:  # the initial network embeds each batch too, as a reference for the loss
        step += batch * look
    return spec.schedule.steps * step + looks + speed.test


def _unfrozen_cost(spec: RunSpec, size: DataSize) -> Cost | None:
    """Return the cost of the network if no part of it were frozen."""
    return cost_of(spec.model.model_copy(update={"freeze": "none"}), size.shape)


def _embedding_seconds(net: Cost, speed: Speed) -> float:
    """Return the seconds per sample of a forward pass over a large batch."""
    return (net.flops * speed.flop + net.activation_bytes * speed.byte / 3) + speed.operation * net.operations / 3 / 256


def embedding_seconds(spec: RunSpec, shape: tuple[int, ...], samples: int) -> float:
    """Return the seconds to embed `samples` inputs of this shape; infinity for an unknown network."""
    net = cost_of(spec.model.model_copy(update={"freeze": "none"}), shape)
    if net is None:
        return math.inf
    return samples * _embedding_seconds(net, known_speed(device_queue.device_of(spec)) or Speed())


def _validation_seconds(spec: RunSpec, size: DataSize, net: Cost, speed: Speed) -> float:
    """Return the seconds that embedding and neighbour search take in all validations together."""
    monitored = size.test if spec.schedule.monitor_part == "test" else size.validation
    validations = 1 + math.ceil(spec.schedule.steps / spec.schedule.validate_every)
    search = 2 * speed.flop * spec.model.embedding_dim
    return validations * (monitored * _embedding_seconds(net, speed) + monitored**2 * search)


def loss_seconds(spec: RunSpec, classes: int) -> float:
    """Return the seconds that loss and miner take per step, forward and backward, timed on the CPU.

    Returns 0 if their parameters are invalid.
    """
    batch = spec.batch.classes * spec.batch.samples
    timed = min(batch, MAX_TIMED_BATCH)
    key = (spec.loss.model_dump_json(), spec.miner.model_dump_json())
    seconds = _timed(
        *key, timed, max(1, min(spec.batch.samples, timed // 2)), spec.model.embedding_dim, min(classes, 2000)
    )
    return seconds * (batch / timed) ** 2 * (1 + spec.loss.memory)


@lru_cache(maxsize=256)
def _timed(loss: str, miner: str, batch: int, samples: int, dimension: int, classes: int) -> float:
    """Return the time of a loss and its miner in one thread, in seconds of CPU time, which excludes other processes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _time(loss, miner, batch, samples, dimension, classes)
    finally:
        torch.set_num_threads(threads)


def _time(loss: str, miner: str, batch: int, samples: int, dimension: int, classes: int) -> float:
    loss_spec, miner_spec = json.loads(loss), json.loads(miner)
    try:
        made = losses.for_training(
            loss_spec["name"],
            classes=max(classes, batch // samples + 1),
            embedding_dim=dimension,
            pooled_dim=dimension,
            reduction=loss_spec["reduction"],
            **loss_spec["parameters"],
        )
        choose = mining.create(miner_spec["name"], **miner_spec["parameters"]) if miner_spec["name"] != "all" else None
        labels = torch.arange(batch) // samples
        generator = torch.Generator().manual_seed(0)
        times = []
        for _ in range(3):
            points = torch.nn.functional.normalize(torch.randn(batch, dimension, generator=generator)).requires_grad_()
            start = time.thread_time()
            more: dict[str, Any] = {"indices_tuple": choose(points, labels, generator=generator)} if choose else {}
            if getattr(made, "reads_pooled", False):
                more["pooled"] = points
            made(points, labels, **more).backward()
            times.append(time.thread_time() - start)
    # the parameters of the loss or miner are invalid; the page that shows the estimate reports this itself
    except Exception:
        return 0.0
    return min(times)


def _ratios(spec: RunSpec, size: DataSize, finished: Iterable[Run], net: Cost, speed: Speed) -> list[float]:
    """Return the ratios of actual to estimated time in finished runs with the same network and data.

    If there are runs that also have the same loss, miner and batch, only these are used.
    """
    alike: list[tuple[bool, Run]] = []
    for run in finished:
        with suppress(RunError):
            # the recorded time of a fork includes the time of its parent, so it would overestimate
            if run.spec.fork.run:
                continue
            if _cost_key(run.spec) == _cost_key(spec) and run.state().state == "done":
                other = (run.spec.loss, run.spec.miner, run.spec.batch) != (spec.loss, spec.miner, spec.batch)
                alike.append((other, run))
    alike.sort(key=lambda pair: pair[0])
    if alike and not alike[0][0]:
        alike = [pair for pair in alike if not pair[0]]
    ratios = []
    for _, run in alike[:MAX_SIMILAR_RUNS]:
        state = run.state()
        estimated = _seconds(run.spec, size, net, speed) * state.step / max(1, run.spec.schedule.steps)
        if state.seconds > 0 and estimated > 0:
            ratios.append(state.seconds / estimated)
    return ratios


def _cost_key(spec: RunSpec) -> tuple[Any, ...]:
    """Return the settings that must be equal in two runs for the time of one to predict the time of the other."""
    m, d = spec.model, spec.data
    network = (
        m.name,
        m.hidden,
        m.keep_classifier,
        m.freeze,
        m.gather,
        spec.pooling.name,
        spec.compute,
        device_queue.device_of(spec),
    )
    return (*network, d.name, d.image_size, d.augment, d.crop)


def _memory(spec: RunSpec, size: DataSize, net: Cost, speed: Speed, gpu: bool) -> float:
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
    return speed.base + weights + best + _input_bytes(spec, size) + max(step, look, saving)


def _input_bytes(spec: RunSpec, size: DataSize) -> float:
    """Return the bytes of inputs held in memory; 0 for image data sets that are resized and memory-mapped instead."""
    info = data.describe(spec.data.name)
    number = {"images": 1, "vectors": 4, "tokens": 8}[info.kind]
    samples = size.training + size.validation + size.test
    return 0.0 if info.resizes else float(samples * np.prod(size.shape) * number)
