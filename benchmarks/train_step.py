"""One training step of `python -m dmlcore train`, compared with a bare step of the same network on ready tensors.

The training run uses the real loop: sampling, augmentation of images held in memory, forward, loss, backward, checks,
optimiser, the row of metrics.jsonl, state.json, and every tenth step a row of measures. After each of these steps, a
copy of the network performs a bare step in the same process: forward pass on a ready batch, backward pass of a sum
instead of the loss, and a step of an equal optimiser with the same kernels. The ratio is the median over the pairs of
steps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.harness import command_line, machine
from dmlcore.bench.workloads import bare_step, trained
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.training import optimisers
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


def random_images(side: int) -> Dataset:
    """Return 640 random images in 16 classes, held in memory."""
    images = np.random.default_rng(0).integers(0, 256, (640, 3, side, side), dtype=np.uint8)
    splits = {"train": np.arange(640), "validation": np.arange(0), "test": np.arange(0, 640, 10)}
    return Dataset("random", images, np.repeat(np.arange(16), 40), tuple(map(str, range(16))), splits, None, ())


if __name__ == "__main__":
    main()
