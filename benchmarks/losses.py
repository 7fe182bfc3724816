"""Losses of the catalogue, forward and backward, compared with `torch.cdist`, with PML, and with all triplets.

    python -m benchmarks.losses [catalogue] [triplets] [sorted]

The input is random unit embeddings in float32, from which every loss uses all its tuples. All rivals of a part
alternate in every round, so that load on the machine affects them equally; a ratio is that of the medians.

catalogue: every loss compared with `torch.cdist` of the batch (128, 4 per class). Goal: at most 10 times.
triplets: every triplet loss compared with PML's TripletMarginLoss over the same triplets (512, 8 per class). `ranking`
minimises the same loss; its peak memory and that of PML are each measured in a new process.
sorted: losses that sort negatives compared with the same losses on all triplets, in processor time (512, 4 classes).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.harness import command_line, in_process, machine, memory, reset_peak, turns
from dmlcore import losses
from dmlcore.losses.engine import table

DIM = 128
CDIST, PML, ALL = "torch.cdist", "PML TripletMarginLoss", "all triplets"
# number of samples and of samples per class, rival
PARTS = {"catalogue": (128, 4, CDIST), "triplets": (512, 8, PML), "sorted": (512, 128, ALL)}
SORTED = ("ranking", "facenet_mined", "ratio")
NEVER, ALWAYS = (10**9, 0), (2, 0)  # values of table.RANKED

Task = Callable[[Tensor, Tensor], Tensor]


def task(name: str, classes: int) -> Task:
    """Return the rival or the loss of this name, as a function of embeddings (B, DIM) and labels (B,)."""
    if name == CDIST:
        return lambda x, _: torch.cdist(x, x).sum()
    if name == PML:
        from pytorch_metric_learning.losses import TripletMarginLoss

        return TripletMarginLoss(margin=0.1)
    return losses.for_training(name, classes=classes, embedding_dim=DIM)


def batch(size: int, each: int) -> tuple[Tensor, Tensor]:
    """Return unit embeddings (size, DIM) and their labels, `each` samples per class."""
    return normalize(torch.randn(size, DIM, generator=torch.Generator().manual_seed(0))), torch.arange(size) // each


def step(loss: Task, points: Tensor, labels: Tensor, ranked: tuple[int, int] = table.RANKED) -> None:
    """Perform a forward and backward pass; batches of at least the sizes `ranked` sort their negatives."""
    table.RANKED = ranked
    loss(points.clone().requires_grad_(), labels).backward()


def peak(name: str, size: int, each: int) -> float:
    """Return the peak memory in MiB of a forward and backward pass, above that before it."""
    loss, (points, labels) = task(name, size // each), batch(size, each)
    step(loss, points[:32], labels[:32])
    before = reset_peak()
    step(loss, points, labels)
    return (memory("VmHWM") - before) / 2**20


def rivals(part: str, size: int, each: int) -> dict[str, Callable[[], None]]:
    """Return the calls that a part times, by name; the rival is the first."""
    points, labels = batch(size, each)
    if part == "sorted":
        return {
            f"{name}, {words}": partial(step, losses.create(name), points, labels, ranked)
            for name in SORTED
            for words, ranked in ((ALL, NEVER), ("sorted", ALWAYS))
        }
    names = losses.LOSSES if part == "catalogue" else losses.names()
    return {name: partial(step, task(name, size // each), points, labels) for name in (PARTS[part][2], *names)}


def main() -> None:
    """Print one line per loss."""
    parser = command_line(__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [default: all]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--batch", type=int, help="number of samples [default: that of the part]")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"{machine('torch', 'pytorch-metric-learning')}; {options.threads} threads; medians of {options.rounds} rounds"
    )
    for part in options.parts or PARTS:
        size, each, rival = PARTS[part]
        size = options.batch or size
        print(f"\n{part}: batch {size} x {DIM}, {each} per class")
        clock = time.process_time if part == "sorted" else time.perf_counter
        times = turns(rivals(part, size, each), options.rounds, clock=clock)
        milliseconds = {name: statistics.median(each_of) for name, each_of in times.items()}
        used = {name: in_process(peak, name, size, each) for name in (PML, "ranking")} if part == "triplets" else {}
        for name, ms in milliseconds.items():
            against = f"{name.partition(',')[0]}, {ALL}" if part == "sorted" else rival
            words = f"{ms / milliseconds[against]:6.2f} of {rival}"
            more = f"{used[name]:7.1f} MiB, {used[name] / used[rival]:5.3f}" if name in used else ""
            print(f"  {name:28s} {ms:8.2f} ms  {words}  {more}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
