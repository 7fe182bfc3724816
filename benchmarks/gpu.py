"""Images per second of a whole training run on a GPU, compared with bare steps of the same network on ready tensors.

ResNet-50, 227 px, batch 112, bfloat16, channels last. The training run uses the real loop: images of at least 256
pixels per side in main memory (noise of unequal sizes, stored and padded as in the image store), random resized crops
on the device, rows of metrics, measures, and checkpoints at the usual interval (`--no-checkpoints` omits them). The
bare step is the forward pass, the backward pass of a sum and an equal optimiser, on one batch that remains on the
device. --free allows the bare step to use non-deterministic kernels and to search for the fastest ones. Blocks of
training steps and of bare steps alternate, each timed from idle to idle after a warm-up block; the ratio is the median
over the blocks, printed with its spread.

Requires CUDA. --device cpu tests the code path with sizes suitable for a CPU; its times are not meaningful:

    python -m benchmarks.gpu --device cpu --image-size 64 --blocks 2 --block 2 model.name=resnet18 batch.classes=4
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.harness import command_line
from benchmarks.train_step import bare_step, trained
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.training import optimisers
from dmlcore.training.build import device_name
from dmlcore.training.state import TrainingState
from dmlcore.typing import Bytes, Ints


class Stored:
    """Random images with the interface of `dmlcore.data.files.image_store`.

    Indexing returns square crops; `uncut` returns the full images, from which random crops are cut.
    """

    def __init__(self, count: int, side: int) -> None:
        draw, high = np.random.default_rng(0), round(side * 256 / 227)
        # like photographs with a short side of `high` pixels and a long side of up to 1.5 times that
        widths = draw.integers(high, high * 3 // 2, count)
        self.images = [draw.integers(0, 256, (high, width, 3), dtype=np.uint8) for width in widths]
        self.shape, self.dtype = (count, 3, side, side), np.dtype(np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Bytes:
        side = self.shape[-1]
        rows = np.arange(len(self.images))[index]
        cuts = np.stack([self.images[row][:side, :side] for row in np.ravel(rows)])
        return cuts.reshape(*np.shape(rows), side, side, 3).swapaxes(-1, -2).swapaxes(-2, -3)

    def uncut(self, indices: Ints) -> list[Bytes]:
        """Return the full images (h, w, 3) for some indices."""
        return [self.images[row] for row in indices]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--image-size", type=int, default=227)
    parser.add_argument("--blocks", type=int, default=12, help="number of blocks of training steps, and of bare steps")
    parser.add_argument("--block", type=int, default=20, help="steps per block")
    parser.add_argument("--no-checkpoints", action="store_true")
    parser.add_argument("--free", action="store_true", help="allow non-deterministic kernels in the bare step")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="for example compute.compile=true")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("this machine has no usable CUDA device: nothing was measured (--device cpu tries the code path)")
        return
    spec = RunSpec().with_overrides(
        [
            *("model.name=resnet50", "model.embedding_dim=512", "loss.name=distance_sensitive", "batch.classes=28"),
            *("batch.samples=4", "compute.precision=bfloat16", "data.crop=resized", "data.validation=none"),
            *(f"device={arguments.device}", f"schedule.steps={arguments.block * (arguments.blocks + 1)}"),
            *(["schedule.checkpoint_every=1000000"] if arguments.no_checkpoints else []),
            *arguments.overrides,
        ]
    )
    state, times, memory = measure(spec, arguments.image_size, arguments.block, free=arguments.free)
    images = spec.batch.classes * spec.batch.samples * arguments.block
    whole, bare = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = sorted(b / a for a, b in times)
    ratio = statistics.median(ratios)
    fused = " (fused)" if optimisers.is_fused(state.optimiser) else ""
    kernels = f"{fused}{', compiled' if spec.compute.compile else ''}"
    print(
        f"{device_name(state.device)}, torch {torch.__version__}; {spec.model.name}, {arguments.image_size} px, "
        f"batch {spec.batch.classes} x {spec.batch.samples}, {spec.compute.precision}, {spec.loss.name}, "
        f"{spec.optimiser.name}{kernels}, {len(times)} blocks of {arguments.block} steps"
    )
    print(f"training  {images / whole:9.1f} images/s   {1e3 * whole / arguments.block:8.2f} ms per step")
    print(f"bare step {images / bare:9.1f} images/s   {1e3 * bare / arguments.block:8.2f} ms per step")
    every = "none" if arguments.no_checkpoints else f"every {spec.schedule.checkpoint_every} steps"
    print(f"checkpoints {every}; bare step with {'any' if arguments.free else 'deterministic'} kernels")
    spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f} over the blocks"
    print(f"training / bare {ratio:.3f} (goal on a GPU: at least 0.95), {spread}")
    if memory:
        print(f"GPU memory of the training run: {memory / 2**30:.2f} GiB at its peak")


def measure(
    spec: RunSpec, image_size: int, block: int, *, free: bool = False
) -> tuple[TrainingState, list[tuple[float, float]], int]:
    """Train, and run `block` bare steps after every `block` training steps.

    If `free`, bare steps may use non-deterministic kernels.

    Returns:
        The trained state, the seconds of each pair of blocks (training, bare), and the peak GPU memory in bytes, 0
        without a GPU.
    """
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
            peak = torch.cuda.max_memory_allocated() if state.device.type == "cuda" else 0
            bare = bare_step(state, plain=False)
            with kernels(free):
                bare()
        else:
            with kernels(free):
                start = idle()
                for _ in range(block):
                    bare()
                times.append((whole, idle() - start))
        began = idle()

    return trained(spec, stored(max(32, spec.batch.classes), image_size), after_step), times, peak


@contextlib.contextmanager
def kernels(free: bool) -> Iterator[None]:
    """Allow non-deterministic kernels in the context if `free`, and let cuDNN search for the fastest kernels."""
    before = torch.get_deterministic_debug_mode(), torch.backends.cudnn.benchmark
    if free:
        torch.set_deterministic_debug_mode("default")
        torch.backends.cudnn.benchmark = True
    yield
    torch.set_deterministic_debug_mode(before[0])
    torch.backends.cudnn.benchmark = before[1]


def idle() -> float:
    """Wait until the device is idle; return the current time in seconds."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def stored(classes: int, image_size: int) -> Dataset:
    """Return a data set of random images in memory, 32 per class."""
    labels = np.repeat(np.arange(classes), 32)
    everything = np.arange(len(labels))
    splits = {"train": everything, "validation": everything[:0], "test": everything[::16]}
    return Dataset("random", Stored(len(labels), image_size), labels, tuple(map(str, range(classes))), splits, None, ())


if __name__ == "__main__":
    main()
