"""Processor time of triplet losses that sort negatives, compared with losses that evaluate all triplets.

    python -m benchmarks.processor_time [--rounds 9] [--threads 1]

Forward and backward pass on unit embeddings, for batches with many and with few classes. Goal: the method that the
library selects (marked in the output) never takes more than 1.4 times as long as the other. Both alternate in every
round; a ratio is the median of the rounds' ratios. For the processor time of scores see benchmarks/retrieval.py.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import median

import torch
from torch.nn.functional import normalize

from benchmarks.harness import command_line, machine, ratios, turns
from dmlcore import losses
from dmlcore.losses.engine import table

LOSSES = ("ranking", "facenet_mined", "ratio")
# (samples, samples per class)
BATCHES = ((64, 8), (128, 8), (128, 32), (256, 4), (256, 16), (512, 8), (512, 16), (512, 128))
WORST = 1.4
NEVER, ALWAYS = (10**9, 0), (2, 0)


def step(loss: torch.nn.Module, points: torch.Tensor, labels: torch.Tensor, from_size: tuple[int, int]) -> None:
    """Perform a forward and backward pass in which batches of at least `from_size` sort their negatives."""
    table.RANKED = from_size
    loss(points.clone().requires_grad_(), labels).backward()


def main() -> None:
    """Print one line per case; exit with 1 if a goal is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{machine('torch')}, {options.threads} threads; medians of {options.rounds} rounds\n")
    missed = 0
    chosen = table.RANKED
    print(f"{'loss':<16}{'batch':>6}{'classes':>9}{'all ms':>9}{'sorted ms':>11}{'all / sorted':>14}")
    for name in LOSSES:
        for batch, of_each in BATCHES:
            loss = losses.create(name)
            points = normalize(torch.randn(batch, 64, generator=torch.Generator().manual_seed(0)))
            labels = torch.arange(batch) // of_each
            task = partial(step, loss, points, labels)
            sort, all_ = turns({"sorted": partial(task, ALWAYS), "all": partial(task, NEVER)}, options.rounds).values()
            ratio = median(ratios(all_, sort))
            table.RANKED = chosen
            is_sorted = any(block.ranked for block in table.valid_blocks(labels, separable=True))
            bad = (1 / ratio if is_sorted else ratio) > WORST
            missed += bad
            choice = f"{'sorted' if is_sorted else 'all'} chosen{'  MISSED' if bad else ''}"
            print(f"{name:<16}{batch:6}{batch // of_each:9}{median(all_):9.1f}{median(sort):11.1f}", end="")
            print(f"{ratio:14.2f}   {choice}", flush=True)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
