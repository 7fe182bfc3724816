"""Checks of correctness on this device: resumed runs, runs moved from the CPU, kernels, and waits of the host.

resume: a run that is stopped and resumed ends with the same bytes as two uninterrupted runs. moved: a run that was
started on the CPU continues on the device. strict: losses, miners and poolings that lack a deterministic kernel. waits:
synchronisations of host and device per step, and the lines that cause them.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from dmlcore import losses, mining, pooling
from dmlcore.bench.measuring import DEVICE, heading, is_small, row
from dmlcore.bench.workloads import TINY, random_photographs
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import build, loop

SPEC = RunSpec().with_overrides(
    [
        *("model.name=resnet18", "model.embedding_dim=128", "loss.name=distance_sensitive", "batch.classes=8"),
        *("batch.samples=4", "data.validation=none", "schedule.steps=24", "schedule.checkpoint_every=10"),
        *("data.crop=resized", "compute.precision=bfloat16"),
    ]
)
SMALL = (*TINY, "schedule.steps=8", "schedule.checkpoint_every=3")
VARIANTS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "GSP": ("pooling.name=gsp", "pooling.prototypes=8", "pooling.memory=32"),
    "semi-hard miner": ("miner.name=semi_hard",),
    "proxies": ("loss.name=proxy_nca",),
    "RMSprop": ("optimiser.name=rmsprop",),
    "SGD with warm-up": ("optimiser.name=sgd", "schedule.warm_up=4"),
}


def main() -> None:
    """Run all checks and print their results."""
    small = is_small()
    variants = dict(list(VARIANTS.items())[:2]) if small else VARIANTS
    for optimiser in ("adam",) if small else ("adam", "sgd", "rmsprop"):
        print(f"started on the CPU, continued here, {optimiser}: {moved(optimiser)}", flush=True)
    for name, error in without_deterministic_kernel().items():
        print(f"no deterministic kernel: {name}: {error}", flush=True)
    count = len(losses.LOSSES) + len(mining.names()) + len(pooling.names())
    print(f"{count} losses, miners and poolings were checked for deterministic kernels", flush=True)
    heading("run", "repeated: same bytes", "resumed: same bytes", "waits per step", "lines")
    for name, overrides in variants.items():
        spec = SPEC.with_overrides([*(SMALL if small else ()), *overrides])
        row(name, *resumed(spec), *waits(spec))


def resumed(spec: RunSpec) -> tuple[bool, bool]:
    """Return two comparisons of the last checkpoint: repeated run, and stopped and resumed run, with the first run."""
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(folder)
        first, again = (digest(train(store, spec)) for _ in range(2))
        stopped = train(store, spec, stop_at=spec.schedule.steps // 2)
        return first == again, first == digest(train(store, spec, stopped))


def moved(optimiser: str) -> str:
    """Return the final state of a run that was started on the CPU and resumed on the device."""
    spec = SPEC.with_overrides([*SMALL, f"optimiser.name={optimiser}", "compute.precision=float32"])
    with tempfile.TemporaryDirectory() as folder:
        threads, has_cuda = torch.get_num_threads(), torch.cuda.is_available
        torch.cuda.is_available = lambda: False  # simulate a machine without a GPU
        try:
            run = train(RunStore(folder), spec, stop_at=3)
        finally:
            torch.cuda.is_available = has_cuda
            torch.set_num_threads(threads)
        train(RunStore(folder), spec, run)
        return run.state().message


def without_deterministic_kernel() -> dict[str, str]:
    """Return the losses, miners and poolings without a deterministic kernel on this device, with the error message."""
    build.prepare_device("auto", torch.get_num_threads())
    labels = torch.arange(32, device=DEVICE) // 4
    refused: dict[str, str] = {}

    def attempt(name: str, compute: Callable[[], object]) -> None:
        try:
            compute()
        except RuntimeError as error:
            refused[name] = str(error).partition("\n")[0][:160]

    def points() -> torch.Tensor:
        return torch.randn(32, 24, device=DEVICE, requires_grad=True)

    def backward(module: torch.nn.Module, *inputs: torch.Tensor) -> None:
        module(*inputs).sum().backward()

    torch.use_deterministic_algorithms(True)
    for name in losses.LOSSES:
        loss: Any = losses.for_training(name, classes=8, embedding_dim=24).to(DEVICE)
        attempt(f"loss {name}", partial(backward, loss, points(), labels))
    for name in mining.names():
        attempt(f"miner {name}", partial(mining.create(name), points(), labels, generator=torch.Generator()))
    for name in pooling.names():
        layer = pooling.create(name, 64).to(DEVICE)
        maps = torch.randn(16, 64, 7, 7, device=DEVICE, requires_grad=True)
        attempt(f"pooling {name}", partial(backward, layer, maps))
    torch.use_deterministic_algorithms(False)
    return refused


def waits(spec: RunSpec) -> tuple[float, str]:
    """Return the waits per step that PyTorch's debug mode reports on a GPU, and the lines that cause most of them."""
    spec = spec.with_overrides(["schedule.measure_every=1000", "schedule.checkpoint_every=1000"])
    state = build.build(spec, images_of(spec), build.prepare_device("auto", torch.get_num_threads()))
    state.model.train()
    steps = range(1, spec.schedule.steps + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in steps:
            if step == steps[-1] // 2 and DEVICE.type == "cuda":
                torch.cuda.set_sync_debug_mode("warn")
            loop.step(state, step)
    if DEVICE.type == "cuda":
        torch.cuda.set_sync_debug_mode("default")
    lines = Counter(f"{w.filename.rpartition('/')[2]}:{w.lineno}" for w in caught if "synchroniz" in str(w.message))
    often = ", ".join(f"{line} {count}" for line, count in lines.most_common(4))
    return round(sum(lines.values()) / (len(steps) - steps[-1] // 2 + 1), 2), often


def images_of(spec: RunSpec) -> Any:
    """Return the images of a run: of 227 px, or of 32 px for the small network."""
    return _images(32 if spec.model.name.startswith("conv") else 227)


@cache
def _images(side: int) -> Any:
    return random_photographs(8, side)


def train(store: RunStore, spec: RunSpec, run: Run | None = None, stop_at: int = 0) -> Run:
    """Train a new run, or resume `run`, and stop it at step `stop_at` unless that is 0; RuntimeError if it fails."""
    run = run or store.create(spec)
    steps = iter(range(1, 10_000))
    with run.lock():
        run.update(state="queued")
        state = loop.train(run, dataset=images_of(spec), stop=lambda: next(steps) == stop_at)
    if state.state == "failed":
        raise RuntimeError(state.message)
    return run


def digest(run: Run) -> str:
    """Return the digest of the last checkpoint of a run."""
    saved = checkpoint.load(run.path)
    assert saved is not None
    return saved.digest


if __name__ == "__main__":
    main()
