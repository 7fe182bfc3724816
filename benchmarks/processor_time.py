"""Scores against a bare faiss search, and triplet losses by sorted negatives against all triplets: processor time.

    python -m benchmarks.processor_time [--rounds 9] [--threads 1]

Scores: the embeddings of benchmarks/retrieval.py at its stages; goal at most 1.15 times the search. Losses: forward and
backward of unit embeddings, for batches of many and few classes; goal: what is chosen (marked) is never more than 1.4
times the other. The rivals take turns within every round; a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import median

import faiss
import torch
from threadpoolctl import threadpool_limits
from torch.nn.functional import normalize

from benchmarks.harness import command_line, machine, ratios, turns
from benchmarks.retrieval import SIZES, STAGES, TARGET, bare_search, embeddings
from dmlcore import losses
from dmlcore.losses.engine import table
from dmlcore.metrics import retrieval

LOSSES = ("ranking", "facenet_mined", "ratio")
BATCHES = ((64, 8), (128, 8), (128, 32), (256, 4), (256, 16), (512, 8), (512, 16), (512, 128))  # samples, of each class
WORST = 1.4
NEVER, ALWAYS = (10**9, 0), (2, 0)


def step(loss: torch.nn.Module, points: torch.Tensor, labels: torch.Tensor, from_size: tuple[int, int]) -> None:
    """Forward and backward, with classes sorted from that size on."""
    table.RANKED = from_size
    loss(points.clone().requires_grad_(), labels).backward()


def compare(rivals: dict[str, Callable[[], object]], count: int) -> tuple[float, float, float]:
    """Milliseconds of both, and how many times the first the second takes."""
    one, other = turns(rivals, count).values()
    return median(one), median(other), median(ratios(other, one))


def main() -> None:
    """Print a line for each; exit 1 where a goal is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    print(f"{machine('faiss-cpu', 'torch')}, {options.threads} threads; medians of {options.rounds} rounds\n")
    missed = 0
    print(f"{'scores':<26}{'bare ms':>9}{'ours ms':>9}{'ratio':>7}")
    with threadpool_limits(options.threads):
        for stage, noise in STAGES.items():
            points, labels = embeddings(noise)
            rivals = {"bare": partial(bare_search, points, max(SIZES)), "ours": partial(retrieval, points, labels)}
            bare, ours, ratio = compare(rivals, options.rounds)
            missed += ratio > TARGET
            print(f"{stage:<26}{bare:9.1f}{ours:9.1f}{ratio:7.2f}{'' if ratio <= TARGET else '  MISSED'}", flush=True)
    chosen = table.RANKED
    print(f"\n{'loss':<16}{'batch':>6}{'classes':>9}{'all ms':>9}{'sorted ms':>11}{'all / sorted':>14}")
    for name in LOSSES:
        for batch, of_each in BATCHES:
            loss = losses.create(name)
            points = normalize(torch.randn(batch, 64, generator=torch.Generator().manual_seed(0)))
            labels = torch.arange(batch) // of_each
            task = partial(step, loss, points, labels)
            one, other, ratio = compare({"sorted": partial(task, ALWAYS), "all": partial(task, NEVER)}, options.rounds)
            table.RANKED = chosen
            is_sorted = any(block.ranked for block in table.valid_blocks(labels, separable=True))
            bad = (1 / ratio if is_sorted else ratio) > WORST
            missed += bad
            choice = f"{'sorted' if is_sorted else 'all'} chosen{'  MISSED' if bad else ''}"
            print(f"{name:<16}{batch:6}{batch // of_each:9}{other:9.1f}{one:11.1f}{ratio:14.2f}   {choice}", flush=True)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
