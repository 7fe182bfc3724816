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
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from dmlcore.bench.measuring import DEVICE, heading, idle, row
from dmlcore.bench.workloads import bare_step, random_photographs, step_spec, trained
from dmlcore.training import batches, loop
from dmlcore.training.checkpoint_writer import CheckpointWriter
from dmlcore.training.state import TrainingState

# overrides of each mode; the first one measured is the most important
MODES = {"eager": (), "compiled": ("compute.compile=true",), "graphs": ("compute.graphs=true",)}
RESERVED = 22.0  # seconds left for each later mode
HEADING = (
    "per checkpoint: training waits",
    "until written",
    "first step s",
    "GiB",
    "loss of step 100",
    "blocks, ms a step",
)
CUDA = DEVICE.type == "cuda"


def main() -> None:
    """Measure each mode in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", nargs="+", choices=MODES, default=[*MODES])
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
    heading("mode", "training ms", "bare ms", "bare / training", "of which: next batch", "finishing it", *HEADING)
    failed = False
    for later, mode in zip(reversed(range(len(arguments.mode))), arguments.mode, strict=True):
        limit = max(5.0, end - time.monotonic() - RESERVED * later)
        command = [sys.executable, "-m", str(__spec__ and __spec__.name), "--here", "--mode", mode]
        command += ["--small"] if arguments.small else []
        try:
            done = subprocess.run([*command, "--", *arguments.overrides], timeout=limit)
            if done.returncode:
                failed = True
                row(mode, f"failed with exit status {done.returncode}")
        except subprocess.TimeoutExpired:
            row(mode, f"not finished within {limit:.0f} s")
    sys.exit(failed)


def measure(mode: str, small: bool, overrides: list[str]) -> None:
    """Train in one mode, print a row with the times per step, and in eager mode the parts of a step."""
    block, blocks, warm = (3, 2, 1) if small else (50, 3, 2)
    longer = ("schedule.steps=10000", "schedule.validate_every=10000", f"schedule.checkpoint_every={block}")
    workers = ("compute.workers=1",) if small else ()
    spec = step_spec(small, [*longer, *workers, *MODES[mode], *overrides])
    times: list[tuple[float, float]] = []
    spent: dict[str, list[float]] = defaultdict(list)
    bare: Callable[[], None] | None = None
    began, first, peak, steps = idle(), 0.0, 0, 0
    losses: list[torch.Tensor] = []

    def after_step(state: TrainingState) -> bool:
        nonlocal bare, began, first, peak, steps
        steps += 1
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
        losses.append(step(state, number))
        return losses[-1]

    step = loop.step
    data = random_photographs(max(16, spec.batch.classes), 32 if small else 227)
    with timed(spent), mock.patch.object(loop, "step", counted):
        state = trained(spec, data, after_step)
    whole, plain = (statistics.mean(column) for column in zip(*times, strict=True))
    ratios = sorted(b / a for a, b in times)
    count = block * blocks
    row(
        mode if state.mode == mode else f"{mode}, but ran in mode {state.mode}",
        f"{1e3 * whole:.1f}",
        f"{1e3 * plain:.1f}",
        f"{plain / whole:.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        *(f"{1e3 * sum(spent[name]) / count:.2f}" for name in ("read", "finish")),
        *(f"{1e3 * statistics.mean(spent[name] or [float('nan')]):.1f}" for name in ("wait", "write")),
        f"{first:.1f}",
        f"{peak / 2**30:.2f}",
        repr(losses[:100][-1].item()),
        " ".join(f"{1e3 * a:.1f}" for a, _ in times),
    )
    if mode == "eager":
        parts(state, 2 if small else 10)


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
    heading("one part, in this process only", "ms")
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


def never(_: Any) -> Any:
    """Raise AssertionError: embed samples for a table of neighbours, which balanced batches do not need."""
    raise AssertionError("the sampler needs no table")


if __name__ == "__main__":
    main()
