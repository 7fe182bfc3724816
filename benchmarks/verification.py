"""Time and memory of the verification of all pairs, compared with scikit-learn's roc_curve where that fits in memory.

    python -m benchmarks.verification [--samples 60502] [--dimensions 512] [--classes 11316] [--threads 2] [--rounds 5]

The input is unit vectors around the centres of classes, generated from a seed; the default size is that of the test
half of Stanford Online Products. Time and memory of that size are measured in a new process, which has the embeddings
in memory before. The rival is `sklearn.metrics.roc_curve` on the similarities of all pairs, which a matrix product and
`numpy.triu_indices` provide, at the size of the CUB-200-2011 test half; it has no histograms for intervals.
Targets: at most 60 s and 1 GB more than the embeddings, of two threads.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_curve
from threadpoolctl import threadpool_limits

from benchmarks.harness import (
    command_line,
    in_process,
    machine,
    memory,
    points_in_classes,
    ratios,
    report,
    reset_peak,
    turns,
    verdict,
)
from dmlcore import metrics

SECONDS, BYTES = 60.0, 1e9
SMALL = 5924, 128, 100  # samples, dimensions and classes of the comparison
NOISE = 3.0  # length of the noise relative to that of a centre


class Cost(NamedTuple):
    """Elapsed time and processor time in seconds, memory peak above the start in bytes, and the equal error rate."""

    seconds: float
    processor: float
    memory: int
    eer: float


def samples(count: int, dimensions: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (count, dimensions) and labels of classes whose sizes differ by at most one."""
    points = np.empty((count, dimensions), np.float32)
    points_in_classes(points, -(-count // classes), NOISE)
    return points, np.arange(count) * classes // count


def measure(count: int, dimensions: int, classes: int, threads: int) -> Cost:
    """Verify all pairs once; the first call on a few samples loads what is imported late."""
    torch.set_num_threads(threads)
    metrics.verification(*samples(100, 8, 10))
    points, labels = samples(count, dimensions, classes)
    before, started, processor = reset_peak(), time.perf_counter(), time.process_time()
    curve = metrics.verification(points, labels)
    seconds, used = time.perf_counter() - started, time.process_time() - processor
    return Cost(seconds, used, memory("VmHWM") - before, curve.eer)


def rival(points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return false match and true positive rates of all pairs from scikit-learn."""
    upper = np.triu_indices(len(labels), 1)
    same = (labels[:, None] == labels)[upper]
    fmr, tpr, _ = roc_curve(same, (points @ points.T)[upper], drop_intermediate=False)
    return fmr, tpr


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--samples", type=int, default=60_502)
    parser.add_argument("--dimensions", type=int, default=512)
    parser.add_argument("--classes", type=int, default=11_316)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the comparison (default 5)")
    options = parser.parse_args()
    print(machine("torch", "numpy", "scikit-learn"))

    cost = in_process(measure, options.samples, options.dimensions, options.classes, options.threads)
    pairs = options.samples * (options.samples - 1) // 2
    print(
        f"{options.samples:,} x {options.dimensions}, {options.classes:,} classes, {pairs:,} pairs, {options.threads} "
        f"threads: EER {cost.eer:.4f}\n"
        f"time   {cost.seconds:7.1f} s (processor {cost.processor:.1f} s), at most {SECONDS:g} s: "
        f"{verdict(cost.seconds <= SECONDS)}\n"
        f"memory {cost.memory / 1e6:7.0f} MB above the embeddings, at most {BYTES / 1e6:,.0f} MB: "
        f"{verdict(cost.memory <= BYTES)}\n"
    )

    torch.set_num_threads(options.threads)
    points, labels = samples(*SMALL)
    curve, (fmr, tpr) = metrics.verification(points, labels), rival(points, labels)
    area = float(np.trapezoid(tpr, fmr))
    assert abs(curve.auc - area) < 1e-4, f"area {curve.auc} but scikit-learn {area}"
    with threadpool_limits(options.threads):
        times = turns(
            {"ours": lambda: metrics.verification(points, labels), "scikit-learn": lambda: rival(points, labels)},
            options.rounds,
        )
    print("{:,} x {}, {} classes; processor time".format(*SMALL))
    for name, milliseconds in times.items():
        report(name, milliseconds)
    faster = ratios(times["scikit-learn"], times["ours"])
    print(f"scikit-learn / ours: {faster[len(faster) // 2]:.2f} ({faster[0]:.2f} to {faster[-1]:.2f})")


if __name__ == "__main__":
    main()
