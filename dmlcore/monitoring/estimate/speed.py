"""Speed of this machine in training steps, measured once with small networks and cached."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dmlcore import eager
from dmlcore.data.files.locate import cache_folder
from dmlcore.jobs import device_queue
from dmlcore.models import networks
from dmlcore.monitoring.estimate.flops import Cost, cost_of
from dmlcore.spec.sections import ModelSpec
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.task import spawn_detached


@dataclass(frozen=True)
class Speed:
    """Seconds per flop, per byte kept for the backward pass, per operation, per parameter, and per training step.

    The defaults are those of a laptop; they are used until this machine has been measured.

    Attributes:
        test: Additional seconds of the final test, mostly for importing the clustering library.
        base: Memory in bytes of a process with all libraries loaded.
        measured: True if the values were measured on this machine.
    """

    flop: float = 6e-12
    byte: float = 3e-10
    operation: float = 1.2e-5
    parameter: float = 1.5e-9
    step: float = 1.5e-3
    test: float = 3.0
    base: float = 420 * 2**20
    measured: bool = False


def features(net: Cost, batch: int) -> tuple[float, ...]:
    """Return the flops, bytes, operations, parameters and 1 of a training step: the factors of the costs in `Speed`."""
    return (3 * net.flops * batch, net.activation_bytes * batch, net.operations, net.parameters, 1.0)


def known_speed(device: str) -> Speed | None:
    """Return the measured speed of a device (cpu or cuda) of this machine, or None if it was not measured yet."""
    try:
        return _read(str(_file()), _file().stat().st_mtime_ns).get(device)
    except OSError:
        return None


@lru_cache(maxsize=4)
def _read(path: str, _: int) -> dict[str, Speed]:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        names = {field.name for field in fields(Speed)}
        plain: Mapping[str, Any] = json.loads(Path(path).read_text())
        return {d: Speed(**{k: v for k, v in one.items() if k in names}) for d, one in plain.items()}
    return {}


def measure_in_background() -> None:
    """Start a process that measures the speed of this machine, unless it is known or this process has tried already."""
    if known_speed("cpu") is not None or _Background.started:
        return
    _Background.started = True
    spawn_detached(["-m", "dmlcore.monitoring.estimate.speed"])


class _Background:
    started = False  # set once in this process, so that a failed measurement is not repeated


def measure() -> dict[str, Speed]:
    """Measure the speed of the CPU and of the GPU, if there is one; return the results by device.

    They are also stored in the cache folder. Takes about five seconds. Raises locks.Busy if another process is
    measuring.
    """
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with locks.ProcessLock(file.with_suffix(".lock"), wait=0.0):
        speeds = {"cpu": _fit(torch.device("cpu"))}
        if torch.cuda.is_available():
            speeds["cuda"] = _fit(torch.device("cuda"))
        atomic_files.replace_json(file, {device: asdict(speed) for device, speed in speeds.items()})
    return speeds


THREADS = torch.get_num_threads()
# Networks that are timed: name, side of the images in pixels (0: vectors instead of images), batch size.
PROBES = (("mlp", 0, 64), ("resnet20", 32, 8), ("resnet20", 32, 64), ("resnet18", 64, 4), ("resnet18", 64, 24))


def _fit(device: torch.device) -> Speed:
    """Return the non-negative costs that minimise the squared relative error of the times measured for PROBES."""
    from scipy.optimize import nnls  # imported late, as the import is slow

    rows, took, base, test = [], [], 0, 0.0
    for name, side, batch in PROBES:
        shape = (3, side, side) if side else (64,)
        spec = ModelSpec(name=name, hidden=(256, 128), embedding_dim=64)
        work = cost_of(spec, shape)
        assert work is not None
        rows.append(features(work, batch))
        took.append(_probe(spec, shape, batch, device))
        if len(took) == 1:
            start = time.process_time()
            from sklearn.cluster import KMeans  # imported here to time the import, which the final test of a run needs

            KMeans(10, n_init=1, random_state=0).fit(np.random.default_rng(0).normal(size=(900, 64)))
            test = time.process_time() - start
            base = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = np.array(rows) / np.array(took)[:, None]
    scale = table.max(0)
    costs = nnls(table / scale, np.ones(len(took)))[0] / scale
    # time of a step of the smallest network; half of it is used as a lower bound of the constant time per step
    floor = took[0] if device.type == "cpu" else 0.0
    flop, byte, operation, parameter, step = map(float, costs)
    return Speed(flop, byte, operation, parameter, max(step, floor / 2), test, base, True)


def _probe(spec: ModelSpec, shape: tuple[int, ...], batch: int, device: torch.device) -> float:
    """Return the shortest time of a training step in seconds, over several steps."""
    torch.set_num_threads(1 if spec.name == "mlp" else THREADS)  # as in a training run
    network = networks.build(spec, shape, seed=0).to(device)
    optimiser = eager.uncompiled(torch.optim.Adam)(network.parameters(), fused=True)
    inputs = torch.rand(batch, *shape, device=device)
    if len(shape) == 3:
        network = nn.utils.convert_conv2d_weight_memory_format(network, torch.channels_last)
        inputs = (255 * inputs).contiguous(memory_format=torch.channels_last)
    times: list[float] = []
    end = time.perf_counter() + 0.5
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 20):
        start, worked = time.perf_counter(), time.process_time()
        network(inputs).square().sum().backward()
        optimiser.step()
        optimiser.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize()
        # If other processes use the cores, CPU time is closer to the undisturbed time than wall time.
        took = time.perf_counter() - start
        times.append(took if device.type == "cuda" else min(took, time.process_time() - worked))
    return min(times)


def _file() -> Path:
    """Return the path of the cached speeds; its name contains the host name and everything else that affects speed."""
    cards = device_queue.visible_gpus()
    what = f"{platform.node()}-{len(os.sched_getaffinity(0))}-{len(cards)}-{torch.__version__}"
    return cache_folder() / f"speed-{what.replace('/', '-')}.json"


if __name__ == "__main__":
    with suppress(locks.Busy):
        for device, speed in measure().items():
            print(device, speed)
