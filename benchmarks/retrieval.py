"""Processor time of retrieval scores, compared with a bare faiss search of equal k and with PML's AccuracyCalculator.

    python -m benchmarks.retrieval [--rounds 9] [--threads 2]

The input is 5,924 x 128 float32 embeddings of unit length in 100 classes of 41 to 60 samples, the sizes of the
CUB-200-2011 test half, generated from a seed at several stages of training. The three methods alternate in every round.
Target: at most 1.15x the time of the bare search.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from statistics import median

import faiss
import numpy as np
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from threadpoolctl import threadpool_limits

from benchmarks.harness import command_line, machine, ratios, turns, verdict
from dmlcore.metrics import retrieval

TARGET = 1.15
DIMENSIONS = 128
SIZES = [60] * 94 + [41, 43, 45, 50, 52, 53]  # sums to 5,924
STAGES = {"untrained": np.inf, "half-way": 2.5, "trained": 0.9, "nearly collapsed classes": 0.05}


def embeddings(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (5924, 128) around class means, and their labels.

    `noise` is the length of the noise relative to the length of a mean.
    """
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(SIZES)), SIZES)
    means = rng.normal(size=(len(SIZES), DIMENSIONS)) / np.sqrt(DIMENSIONS)
    scatter = rng.normal(size=(len(labels), DIMENSIONS)) / np.sqrt(DIMENSIONS)
    points = scatter if np.isinf(noise) else means[labels] + noise * scatter
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32), labels


def bare_search(points: np.ndarray, k: int) -> None:
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(points)
    index.search(points, k)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="timed rounds per stage (default 9)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every rival (default 2)")
    options = parser.parse_args()
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")

    logging.getLogger().setLevel(logging.ERROR)  # PML logs every search to the root logger
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    print(machine("faiss-cpu", "torch", "numpy", "pytorch-metric-learning"))
    print(f"{sum(SIZES):,} x {DIMENSIONS} float32, k = {max(SIZES)} with the query itself; {options.threads} threads")
    print(f"medians of {options.rounds} rounds in ms; ratios are medians of the rounds' ratios (lowest to highest)\n")
    print(f"{'embeddings':<26}{'MAP@R':>7}{'bare faiss':>12}{'ours':>8}{'PML':>8}   ours / bare          PML / ours")

    scores = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
    calculator = AccuracyCalculator(include=scores, k="max_bin_count", device=torch.device("cpu"))
    with threadpool_limits(options.threads):
        for stage, noise in STAGES.items():
            points, labels = embeddings(noise)
            tensors = torch.from_numpy(points), torch.from_numpy(labels)
            ours, theirs = retrieval(points, labels), calculator.get_accuracy(*tensors)
            pairs = zip((ours.recall_at[1], ours.r_precision, ours.map_at_r), scores, strict=True)
            assert all(abs(mine - theirs[name]) < 1e-4 for mine, name in pairs), f"{ours} but PML {theirs}"
            rivals: dict[str, Callable[[], object]] = {
                "bare": lambda points=points: bare_search(points, max(SIZES)),
                "ours": lambda points=points, labels=labels: retrieval(points, labels),
                "PML": lambda tensors=tensors: calculator.get_accuracy(*tensors),
            }
            times = turns(rivals, options.rounds)
            ratio, faster = ratios(times["ours"], times["bare"]), ratios(times["PML"], times["ours"])
            print(
                f"{stage:<26}{ours.map_at_r:7.3f}{median(times['bare']):12.1f}{median(times['ours']):8.1f}"
                f"{median(times['PML']):8.1f}   {median(ratio):.2f} ({ratio[0]:.2f} to {ratio[-1]:.2f})  "
                f"{median(faster):.1f} ({faster[0]:.1f} to {faster[-1]:.1f})"
                f"  at most {TARGET}x: {verdict(median(ratio) <= TARGET)}"
            )


if __name__ == "__main__":
    main()
