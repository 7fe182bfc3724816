"""Training step of ResNet-50 on a GPU, launched in three ways, compared with a bare step launched kernel by kernel.

227 px, batch 28 x 4, bfloat16, Adam, a checkpoint every 50 steps, distance-sensitive loss. The training run is the real
loop: batches of photograph size from memory, random resized crops, rows of metrics, measures, checkpoints. A bare step
is the forward pass, the backward pass of a sum and an equal optimiser, on one batch that stays on the device. Blocks of
50 training steps, each with one checkpoint, and of bare steps alternate; each is timed from an idle to an idle device,
after two blocks for warm-up. Each mode runs in a process of its own with a time limit; rows are printed as soon as they
are measured. Equal losses of step 100 say that two modes compute the same.

    python -m dmlcore.bench.step [--mode eager compiled graphs] [--limit 100] [--small]

`--small` tries the code without a GPU; its times mean nothing.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import batches, loop, optimisers, starts
from dmlcore.training.build import build
from dmlcore.training.checkpoint_writer import CheckpointWriter
from dmlcore.training.state import TrainingState

MODES = ("eager", "compiled", "graphs")
RESERVED = 22.0  # seconds left for each later mode
HEADING = (
    "per checkpoint: training waits",
    "until written",
    "first step s",
    "GiB",
    "loss of step 100",
    "blocks, ms a step",
)
CUDA = torch.cuda.is_available()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--limit", type=float, default=100.0, help="seconds for all modes together")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="for example pooling.name=gsp")
    arguments, _ = parser.parse_known_args()
    if not CUDA and not arguments.small:
        print("this machine has no usable CUDA device: nothing was measured (--small tries the code)")
        return
    if arguments.here:
        measure(arguments.mode[0], arguments.small, arguments.overrides)
        return
    end = time.monotonic() + arguments.limit
    row("mode", "training ms", "bare ms", "bare / training", "of which: next batch", "finishing it", *HEADING)
    row("---", *["--:"] * 11)
    for later, mode in zip(reversed(range(len(arguments.mode))), arguments.mode, strict=True):
        limit = max(5.0, end - time.monotonic() - RESERVED * later)
        command = [sys.executable, "-m", str(__spec__ and __spec__.name), "--here", "--mode", mode]
        command += ["--small"] if arguments.small else []
        try:
            done = subprocess.run([*command, "--", *arguments.overrides], timeout=limit)
            if done.returncode:
                row(mode, f"failed with exit status {done.returncode}")
        except subprocess.TimeoutExpired:
            row(mode, f"not finished within {limit:.0f} s")


def row(*cells: object) -> None:
    """Print one row of a Markdown table at once."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def measure(mode: str, small: bool, overrides: list[str]) -> None:
    """Train in one mode, print a row with the times per step, and in eager mode the parts of a step."""
    block, blocks, warm = (3, 2, 1) if small else (50, 3, 2)
    tiny = ["model.name=conv4_32", "batch.classes=2", "batch.samples=4", "compute.workers=1"] if small else []
    spec = RunSpec().with_overrides(
        [
            *("model.name=resnet50", "model.embedding_dim=512", "loss.name=distance_sensitive", "batch.classes=28"),
            *("batch.samples=4", "compute.precision=bfloat16", "data.crop=resized", "data.validation=none"),
            *("schedule.steps=10000", "schedule.validate_every=10000", f"schedule.checkpoint_every={block}"),
            *(f"compute.mode={mode}", *tiny, *overrides),
        ]
    )
    times: list[tuple[float, float]] = []
    spent: dict[str, list[float]] = defaultdict(list)
    bare: Callable[[], None] | None = None
    began, first, peak, steps = idle(), 0.0, 0, 0
    states: list[TrainingState] = []

    def stop() -> bool:
        nonlocal bare, began, first, peak, steps
        state, steps = states[0], steps + 1
        if steps == 1:
            first = idle() - began
        if steps % block:
            return False
        whole = idle() - began
        if steps < block * warm:  # memory is allocated, also for the first checkpoint, and kernels are chosen
            pass
        elif bare is None:
            peak = torch.cuda.max_memory_allocated() if CUDA else 0
            bare = bare_step(state)
            spent.clear()
        else:
            start = idle()
            for _ in range(block):
                bare()
            times.append((whole / block, (idle() - start) / block))
        began = idle()
        return steps == block * (blocks + warm)

    def counted(state: TrainingState, number: int) -> torch.Tensor:
        nonlocal began
        if number == 1:
            began = idle()
        return step(state, number)

    def keep(*options: Any, **more: Any) -> TrainingState:
        states.append(build(*options, **more))
        return states[0]

    step = loop.step
    data = photographs(max(16, spec.batch.classes), 32 if small else 227)
    with timed(spent), tempfile.TemporaryDirectory() as folder:
        run = RunStore(folder).create(spec)
        with run.lock(), mock.patch.object(starts, "build", keep), mock.patch.object(loop, "step", counted):
            final = loop.train(run, dataset=data, stop=stop)
        if final.state != "cancelled":
            sys.exit(final.message)
        losses = [step_row["loss"] for step_row in run.metrics()[0] if step_row["kind"] == "step"]
    whole, plain = (statistics.mean(column) for column in zip(*times, strict=True))
    ratios = sorted(b / a for a, b in times)
    count = block * blocks
    row(
        mode if states[0].mode == mode else f"{mode}, but ran in mode {states[0].mode}",
        f"{1e3 * whole:.1f}",
        f"{1e3 * plain:.1f}",
        f"{plain / whole:.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        *(f"{1e3 * sum(spent[name]) / count:.2f}" for name in ("read", "finish")),
        *(f"{1e3 * statistics.mean(spent[name] or [float('nan')]):.1f}" for name in ("wait", "write")),
        f"{first:.1f}",
        f"{peak / 2**30:.2f}",
        repr(losses[min(100, len(losses)) - 1]),
        " ".join(f"{1e3 * a:.1f}" for a, _ in times),
    )
    if mode == "eager":
        parts(states[0], 2 if small else 10)


def parts(state: TrainingState, count: int) -> None:
    """Print the milliseconds of a step without its components, and what the device computes in a step."""
    numbers = iter(range(1, 10_000))

    def milliseconds(call: Callable[[], object]) -> float:
        for _ in range(count // 2):
            call()
        began = idle()
        for _ in range(count):
            call()
        return 1e3 * (idle() - began) / count

    def plain(embeddings: torch.Tensor, *_: object) -> torch.Tensor:
        return embeddings.sum()

    step = loop.step
    batch = state.batches.make(next(numbers), never)
    row("one part, in this process only", "ms")
    row("---", "--:")
    row("reading a batch", f"{milliseconds(lambda: state.batches._gather(next(numbers))):.2f}")
    read = state.batches._read(1)
    row("finishing a batch", f"{milliseconds(lambda: state.batches._upload(1, *read)):.2f}")
    with mock.patch.object(state.batches, "make", return_value=batch):
        row("step with a ready batch", f"{milliseconds(lambda: step(state, next(numbers))):.2f}")
        row("also without a loss", f"{milliseconds(lambda: step(state, next(numbers), plain)):.2f}")
        check = mock.Mock()
        if CUDA:
            state.optimiser.found_inf = None  # type: ignore[attr-defined]
        with mock.patch.object(state, "finite_check", check):
            row("also without the NaN check", f"{milliseconds(lambda: step(state, next(numbers), plain)):.2f}")
        row("bare step", f"{milliseconds(bare_step(state)):.2f}")
        if not CUDA:
            return
        with torch.profiler.profile(activities=[*torch.profiler.supported_activities()]) as profile:
            for _ in range(5):
                step(state, next(numbers))
            idle()
    events = profile.key_averages()
    kernels = [event for event in events if event.device_type.name != "CPU"]
    row("device computes, with a ready batch", f"{sum(k.self_device_time_total for k in kernels) / 5e3:.2f}")
    row("kernels", f"{sum(k.count for k in kernels) / 5:.0f}")
    for event in sorted(kernels, key=lambda event: -event.self_device_time_total)[:8]:
        row(event.key[:60], f"{event.self_device_time_total / 5e3:.2f}")


def bare_step(state: TrainingState) -> Callable[[], None]:
    """Return a function that performs a bare step: forward pass, backward pass of a sum, and optimiser step.

    It is launched kernel by kernel.
    """
    model = copy.deepcopy(state.model).train()
    optimiser = optimisers.create(state.spec, model, torch.nn.Module())
    size = state.spec.batch.classes * state.spec.batch.samples
    inputs = state.batches.prepared(np.arange(size), 1)
    direction = torch.randn(size, state.spec.model.embedding_dim, device=inputs.device)

    def step() -> None:
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=state.spec.compute.precision == "bfloat16"):
            embeddings = model(inputs)
        loss = (embeddings.float() * direction).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for _ in range(3):
        step()
    return step


@contextmanager
def timed(spent: dict[str, list[float]]) -> Iterator[None]:
    """Record the seconds of each call on the host: reading and finishing batches, saving and writing checkpoints."""
    places = {
        "read": (batches.Batches, "_next"),
        "finish": (batches.Batches, "_upload"),
        "wait": (CheckpointWriter, "save"),
        "write": (CheckpointWriter, "_write"),
    }

    def clocked(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*options: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*options)
            finally:
                spent[name].append(time.perf_counter() - began)

        return run

    patches = [mock.patch.object(kind, name, clocked(key, getattr(kind, name))) for key, (kind, name) in places.items()]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def idle() -> float:
    """Wait until the device is idle; return the current time in seconds."""
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


class RandomPhotographs:
    """Random images in memory with a short side as in the image store, and a long side of up to 1.5 times that."""

    def __init__(self, count: int, side: int) -> None:
        draw, high = np.random.default_rng(0), round(side * 256 / 227)
        widths = draw.integers(high, high * 3 // 2, count)
        self.images = [draw.integers(0, 256, (high, width, 3), dtype=np.uint8) for width in widths]
        self.shape, self.dtype = (count, 3, side, side), np.dtype(np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Any:
        side, rows = self.shape[-1], np.arange(len(self.images))[index]
        return np.stack([self.images[row][:side, :side] for row in rows]).transpose(0, 3, 1, 2)

    def uncut(self, indices: Any) -> list[Any]:
        """Return the full images (h, w, 3) for some indices."""
        return [self.images[row] for row in indices]


def photographs(classes: int, side: int) -> Dataset:
    """Return a data set of random photographs, 32 per class."""
    labels = np.repeat(np.arange(classes), 32)
    everything = np.arange(len(labels))
    splits = {"train": everything, "validation": everything[:0], "test": everything[::16]}
    return Dataset(
        "random", RandomPhotographs(len(labels), side), labels, tuple(map(str, range(classes))), splits, None, ()
    )


def never(_: Any) -> Any:
    raise AssertionError("the sampler needs no table")


if __name__ == "__main__":
    main()
