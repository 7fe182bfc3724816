"""Scores of a test split as large as that of Stanford Online Products, compared with a bare faiss search.

    python -m benchmarks.evaluation [--queries 60502] [--rounds 1] [--threads 2] [--pml]

The input is 60,502 x 128 float32 embeddings of unit length in 11,316 classes of 2 to 12 samples, generated from a seed.
R@K is computed for K = 1, 10, 100, 1000, so the search has k = 1001 including the query itself. With fewer --queries,
the other samples are the gallery, k = 1000, and the time is proportionally shorter. Each method runs in its own
process; its memory is the peak above the memory held before the call. On a machine with other load, CPU seconds are the
fairer measure. Targets: at most 1.1x the time of the bare search, and 200 MB. --pml also runs AccuracyCalculator of
pytorch-metric-learning, which needs about 7 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

import numpy as np

from benchmarks.harness import ROOT, command_line, machine, memory, ratios, reset_peak, verdict

RATIO, MEGABYTES = 1.1, 200
SAMPLES, CLASSES, DIMENSIONS = 60_502, 11_316, 128
KS = (1, 10, 100, 1000)
NOISE = 1.3  # length of the noise relative to a class mean; gives an R@1 typical of good networks


def embeddings() -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (60502, 128) around class means, in random order, and their labels."""
    rng = np.random.default_rng(0)
    sizes = np.full(CLASSES, 2)
    while left := SAMPLES - int(sizes.sum()):
        growing = np.flatnonzero(sizes < 12)
        sizes[rng.choice(growing, min(left, len(growing) // 2), replace=False)] += 1
    labels = rng.permutation(np.repeat(np.arange(CLASSES), sizes))
    means = rng.normal(size=(CLASSES, DIMENSIONS)).astype(np.float32)
    points = means[labels] + NOISE * rng.normal(size=(SAMPLES, DIMENSIONS)).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True), labels


def measure(rival: str, queries: int) -> dict[str, float]:
    """Run the method `rival` in this process; return its seconds, memory in MB and R@1."""
    import faiss

    points, labels = embeddings()
    whole = queries == SAMPLES
    own, others = (points[:queries], labels[:queries]), (points[queries:], labels[queries:])
    if whole:
        others = points, labels
    if rival == "bare":
        index = faiss.IndexFlatL2(DIMENSIONS)

        def score() -> float:
            index.add(others[0])
            _, neighbours = index.search(own[0], max(KS) + whole)
            known = np.isin(own[1], others[1])
            return float((others[1][neighbours[:, int(whole)]] == own[1])[known].mean())

    elif rival == "ours":
        from dmlcore.metrics import retrieval

        def score() -> float:
            searched = {} if whole else {"gallery": others[0], "gallery_labels": others[1]}
            return retrieval(*own, **searched, ks=KS).recall_at[1]

    else:
        import torch
        from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

        names = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
        calculator = AccuracyCalculator(include=names, k=max(KS), device=torch.device("cpu"))
        tensors = [torch.from_numpy(array) for array in (*own, *others)]

        def score() -> float:
            return calculator.get_accuracy(*tensors, ref_includes_query=whole)["precision_at_1"]

    held, start, busy = reset_peak(), time.perf_counter(), time.process_time()
    recall = score()
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - busy,
        "megabytes": (memory("VmHWM") - held) / 1e6,
        "recall_at_1": recall,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument(
        "--queries", type=int, default=SAMPLES, help=f"number of queries, the first of {SAMPLES:,} samples"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="rounds, in each of which every rival runs once (default 1)"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of every rival (default 2)")
    parser.add_argument("--pml", action="store_true", help="also run AccuracyCalculator of pytorch-metric-learning")
    parser.add_argument("--rival", choices=["bare", "ours", "pml"], help=argparse.SUPPRESS)  # used by child processes
    options = parser.parse_args()
    if not 1 <= options.queries <= SAMPLES or options.rounds < 1 or options.threads < 1:
        parser.error(f"--queries must be in 1..{SAMPLES}, --rounds and --threads at least 1")
    if options.rival:
        print(json.dumps(measure(options.rival, options.queries)))
        return
    rivals = ["bare", "ours", *(["pml"] if options.pml else [])]
    k = max(KS) + (options.queries == SAMPLES)
    print(f"{options.queries:,} queries, {SAMPLES:,} x {DIMENSIONS}, {CLASSES:,} classes, k = {k}; ", end="")
    print(f"{options.threads} threads of {machine('faiss-cpu', 'numpy')}\n")
    print(f"{'':8}{'seconds':>10}{'CPU s':>10}{'peak MB':>10}{'R@1':>8}{'load':>8}")
    measured: dict[str, list[dict[str, float]]] = {rival: [] for rival in rivals}
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads), "OMP_WAIT_POLICY": "PASSIVE"}
    for _ in range(options.rounds):
        for rival in rivals:
            command = ["-m", "benchmarks.evaluation", "--rival", rival, "--queries", str(options.queries)]
            done = subprocess.run(
                [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )
            one = json.loads(done.stdout)
            measured[rival].append(one)
            print(f"{rival:8}{one['seconds']:10.1f}{one['cpu']:10.1f}{one['megabytes']:10.0f}", end="")
            print(f"{one['recall_at_1']:8.3f}{one['load']:8.1f}", flush=True)
    print()
    for rival in rivals[1:]:
        ratio, cpu = (
            median(ratios([one[time] for one in measured[rival]], [one[time] for one in measured["bare"]]))
            for time in ("seconds", "cpu")
        )
        most = max(one["megabytes"] for one in measured[rival])
        goal = f": {verdict(ratio <= RATIO and most < MEGABYTES)}" if rival == "ours" else ""
        print(f"{rival}: {ratio:.2f}x the bare search (at most {RATIO}; {cpu:.2f}x its CPU time), ", end="")
        print(f"{most:.0f} MB (below {MEGABYTES}){goal}")


if __name__ == "__main__":
    main()
