"""Every loss of the catalogue, forward and backward, compared with forward and backward of `torch.cdist` on the batch.

The input is random unit embeddings in float32, from which every loss uses all its tuples. All losses and `cdist` are
timed in one process, in a new random order each round, so that load on the machine affects all of them equally; a ratio
is that of the medians. Goal: a ratio of at most 10 for every loss at batch 128.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.harness import command_line, machine
from dmlcore import losses

RIVAL = "torch.cdist"
GOAL = 10.0

Task = Callable[[Tensor], Tensor]


def tasks(classes: int, dim: int, labels: Tensor, only: list[str]) -> dict[str, Task]:
    """Return the timed functions by name; each maps embeddings (B, dim) to a scalar."""
    tasks_of: dict[str, Task] = {RIVAL: lambda x: torch.cdist(x, x).sum()}
    for name in only or list(losses.LOSSES):
        loss = losses.for_training(name, classes=classes, embedding_dim=dim).to(labels.device)
        tasks_of[name] = lambda x, loss=loss: loss(x, labels)
    return tasks_of


def seconds(task: Task, points: Tensor, clock: Callable[[], float]) -> float:
    """Return the seconds of one forward and backward pass, measured with the given clock."""
    leaf = points.clone().requires_grad_()
    if points.is_cuda:
        torch.cuda.synchronize()
    began = clock()
    task(leaf).backward()
    if points.is_cuda:
        torch.cuda.synchronize()
    return clock() - began


def main() -> None:
    """Print one line per loss, the slowest last; exit with 1 if a loss misses the goal."""
    parser = command_line(__doc__)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--per-class", type=int, default=4)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--losses", nargs="*", default=[], help="measure only these losses")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="measure processor time instead of wall-clock time, for a busy machine",
    )
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor_time else time.perf_counter
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    labels = (torch.arange(arguments.batch) // arguments.per_class).to(arguments.device)
    points = torch.nn.functional.normalize(torch.randn(arguments.batch, arguments.dim)).to(arguments.device)
    rivals = tasks(int(labels.max()) + 1, arguments.dim, labels, arguments.losses)
    times: dict[str, list[float]] = {name: [] for name in rivals}
    order, draw = list(rivals), random.Random(0)
    for repeat in range(-3, arguments.rounds):
        draw.shuffle(order)
        for name in order:
            passed = seconds(rivals[name], points, clock)
            if repeat >= 0:
                times[name].append(passed)
    median = {name: statistics.median(values) for name, values in times.items()}
    device = f"{torch.cuda.get_device_name()}, " if points.is_cuda else ""
    print(
        f"{device}{machine('torch')}, {arguments.threads} threads; batch {arguments.batch}, "
        f"{arguments.per_class} per class, dim {arguments.dim}; median of {arguments.rounds}"
        f"{', processor time' if arguments.processor_time else ''}"
    )
    for name in sorted(median, key=lambda name: median[name]):
        ratio = median[name] / median[RIVAL]
        print(f"  {name:24s} {median[name] * 1e3:8.3f} ms  {ratio:6.1f} x cdist{'' if ratio <= GOAL else '  over'}")
    missed = [name for name in median if median[name] > GOAL * median[RIVAL]]
    print(f"{len(median) - 1 - len(missed)} of {len(median) - 1} within {GOAL:g} x {RIVAL}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
