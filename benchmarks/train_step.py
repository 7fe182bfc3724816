"""One training step of `python -m dmlcore train`, compared with a bare step of the same network on ready tensors.

The training run uses the real loop: sampling, augmentation of images held in memory, forward, loss, backward, checks,
optimiser, the row of metrics.jsonl, state.json, and every tenth step a row of measures. After each of these steps, a
copy of the network performs a bare step in the same process: forward pass on a ready batch, backward pass of a sum
instead of the loss, and a step of an equal optimiser with the same kernels. The ratio is the median over the pairs of
steps.
"""

from __future__ import annotations

import copy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.harness import command_line, machine
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import batches, loop, optimisers, starts
from dmlcore.training.state import TrainingState


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="let torch choose the kernels of the bare step")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="for example loss.name=ranking")
    arguments = parser.parse_args()

    spec = RunSpec().with_overrides(
        [
            *("model.name=resnet18", "loss.name=distance_sensitive", "batch.classes=4", "batch.samples=8"),
            *("data.validation=none", f"schedule.steps={arguments.steps}", "schedule.checkpoint_every=1000000"),
            *arguments.overrides,
        ]
    )
    state, times = measure(spec, arguments.threads, plain=arguments.plain)
    whole, bare = zip(*times, strict=True)
    ratio = statistics.median(a / b for a, b in times)
    b = spec.batch
    print(
        f"{machine('torch')}, {arguments.threads} threads; "
        f"{spec.model.name}, {state.data.inputs.shape[-1]} px, batch {b.classes} x {b.samples}, {spec.loss.name}, "
        f"{spec.optimiser.name}{' (fused)' if optimisers.is_fused(state.optimiser) else ''}, {spec.compute.precision}, "
        f"median of {len(times)} pairs"
    )
    print(f"training step {1e3 * statistics.median(whole):8.1f} ms   fastest {1e3 * min(whole):8.1f} ms")
    print(f"bare step     {1e3 * statistics.median(bare):8.1f} ms   fastest {1e3 * min(bare):8.1f} ms")
    print(f"ratio {ratio:.3f} (goal: at most 1.05); ratio of the fastest {min(whole) / min(bare):.3f}")


def measure(spec: RunSpec, threads: int, *, plain: bool) -> tuple[TrainingState, list[tuple[float, float]]]:
    """Train, and run a bare step after each training step; if `plain`, with an optimiser that is not fused.

    Returns:
        The trained state, and the seconds of each pair of steps (training, bare), without the first five pairs, which
        allocate memory.
    """
    bare: Callable[[], None] | None = None
    times: list[tuple[float, float]] = []
    began = time.perf_counter()

    def after_step(state: TrainingState) -> None:
        nonlocal bare, began
        whole = time.perf_counter() - began
        if bare is None:
            torch.set_num_threads(threads)
            bare = bare_step(state, plain=plain)
        began = time.perf_counter()
        bare()
        times.append((whole, time.perf_counter() - began))
        began = time.perf_counter()

    return trained(spec, random_images(spec.data.image_size or 64), after_step), times[5:]


def trained(spec: RunSpec, dataset: Dataset, after_step: Callable[[TrainingState], None]) -> TrainingState:
    """Train with the loop of the command line and call `after_step` after each step; return the trained state."""
    states: list[TrainingState] = []
    build = starts.build

    def keep(*args: Any, **options: Any) -> TrainingState:
        states.append(build(*args, **options))
        return states[0]

    def stop() -> bool:
        after_step(states[0])
        return False

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(starts, "build", keep):
        run = RunStore(folder).create(spec)
        with run.lock():
            state = loop.train(run, dataset=dataset, stop=stop)
    if state.state != "done":
        sys.exit(state.message)
    return states[0]


def random_images(side: int) -> Dataset:
    """Return 640 random images in 16 classes, held in memory."""
    images = np.random.default_rng(0).integers(0, 256, (640, 3, side, side), dtype=np.uint8)
    splits = {"train": np.arange(640), "validation": np.arange(0), "test": np.arange(0, 640, 10)}
    return Dataset("random", images, np.repeat(np.arange(16), 40), tuple(map(str, range(16))), splits, None, ())


def bare_step(state: TrainingState, *, plain: bool) -> Callable[[], None]:
    """Return a function that performs a bare step: forward pass, backward pass of a sum, and optimiser step.

    If `plain`, the optimiser is not fused.
    """
    model = copy.deepcopy(state.model).train()
    optimiser = optimisers.create(state.spec, model, torch.nn.Module())
    if plain:
        optimisers.disable_fused(optimiser)
    forward = torch.compile(model) if state.spec.compute.compile else model
    embed = lambda indices: batches.embed(model, state.data, indices, state.device)  # noqa: E731
    inputs = state.batches.make(1, embed).inputs
    direction = torch.randn(len(inputs), state.spec.model.embedding_dim, device=inputs.device)
    bfloat16 = state.spec.compute.precision == "bfloat16"

    def step() -> None:
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=bfloat16):
            embeddings = forward(inputs)
        loss = (embeddings.float() * direction).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    step()
    return step


if __name__ == "__main__":
    main()
