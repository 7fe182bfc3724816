"""Training step of ResNet-50 compared with a bare step of the same network, with checkpoints; goal 0.95.

227 px, batch 28 x 4, bfloat16, Adam, a checkpoint every 50 steps. Blocks of training steps and of bare steps alternate;
each block is timed from an idle to an idle device, after a block that selects kernels. The bare step is the forward
pass, the backward pass of a sum and an equal optimiser, on one batch that stays on the device.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from dmlcore.bench.measuring import DEVICE, heading, idle, is_small, row
from dmlcore.bench.workloads import bare_step, random_photographs, step_spec, trained
from dmlcore.training.state import TrainingState

CASES = {"plain": (), "GSP pooling": ("pooling.name=gsp",), "float32": ("compute.precision=float32",)}


def main() -> None:
    small = is_small()
    block, blocks = (2, 2) if small else (20, 5)
    heading("case", "training, images/s", "ms", "bare, images/s", "ms", "bare / training", "peak, GiB")
    for name, overrides in CASES.items():
        times, peak = measure(overrides, block, blocks, small=small)
        images = step_spec(small).batch.classes * step_spec(small).batch.samples
        whole, bare = (statistics.median(column) / block for column in zip(*times, strict=True))
        ratios = sorted(b / a for a, b in times)
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        cells = (f"{images / whole:,.0f}", f"{1e3 * whole:.1f}", f"{images / bare:,.0f}", f"{1e3 * bare:.1f}", spread)
        row(name, *cells, f"{peak / 2**30:.1f}")


def measure(
    overrides: tuple[str, ...], block: int, blocks: int, *, small: bool
) -> tuple[list[tuple[float, float]], int]:
    """Train, and perform `block` bare steps after every `block` training steps.

    Returns:
        Seconds of each pair of blocks (training, bare), and the peak GPU memory in bytes, 0 without a GPU.
    """
    spec = step_spec(small, (*overrides, f"schedule.steps={block * (blocks + 1)}"))
    bare: Callable[[], None] | None = None
    times: list[tuple[float, float]] = []
    began, steps, peak = idle(), 0, 0

    def after_step(state: TrainingState) -> None:
        nonlocal bare, began, steps, peak
        steps += 1
        if steps % block:
            return
        whole = idle() - began
        if bare is None:  # exclude the first block, in which kernels are selected and memory is allocated
            peak = torch.cuda.max_memory_allocated() if DEVICE.type == "cuda" else 0
            bare = bare_step(state, plain=False)
        else:
            start = idle()
            for _ in range(block):
                bare()
            times.append((whole, idle() - start))
        began = idle()

    trained(spec, random_photographs(4 if small else 32, 32 if small else 227), after_step)
    return times, peak


if __name__ == "__main__":
    main()
