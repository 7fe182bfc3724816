"""Simulation steps per second on the charges page in headless Chromium, compared with naive steps on the same points.

The page plays 300 points of five classes with all 4,248,000 triplets per step, as fast as possible. The server computes
and sends every new step, and the page paints it with trails, curves and phase portrait. A step counts once its frame is
painted. The server's processor time per step is reported as well, because other load on the machine affects it less.
The baselines run on the same points without server, browser, scores or drawing. One is a step that gathers every
triplet as (T, 2) copies and differentiates by autograd; the other is a step of pytorch-metric-learning's
TripletMarginLoss (margin 0.1, all triplets). Each baseline may use all cores.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.browser import WINDOW, chromium, played, served
from benchmarks.harness import command_line, machine, report


def rivals(repeats: int) -> dict[str, list[float]]:
    """Return the milliseconds of repeated naive steps on the page's initial points, by name of the baseline."""
    import torch
    from pytorch_metric_learning.losses import TripletMarginLoss

    from dmlcore import losses
    from dmlcore.simulation import start_points

    points, labels = start_points("random", 5, 60, 0)
    x, y = torch.from_numpy(points).float(), torch.from_numpy(labels)
    same = y[:, None] == y
    positive = same & ~torch.eye(len(y), dtype=torch.bool)
    a, p, n = (positive[:, :, None] & ~same[:, None, :]).nonzero(as_tuple=True)
    metu, margin = losses.create("distance_sensitive"), TripletMarginLoss(margin=0.1)

    def timed(energy: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
        times = []
        for _ in range(repeats):
            leaf = x.clone().requires_grad_()
            began = time.perf_counter()
            energy(leaf).backward()
            times.append(1e3 * (time.perf_counter() - began))
        return times[1:]

    return {
        "gathered triplets, same loss": timed(lambda leaf: metu.clamped(leaf[a], leaf[p], leaf[n]).mean()),
        "PML TripletMarginLoss": timed(lambda leaf: margin(leaf, y)),
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="seconds that each page plays")
    parser.add_argument("--repeats", type=int, default=6, help="timed steps of each rival")
    arguments = parser.parse_args()
    print(f"{machine('streamlit', 'torch', 'pytorch-metric-learning')}; 300 points, 5 classes, 4,248,000 triplets")
    pages = {"page, distance-sensitive": "start=random", "page, ranking": "loss=ranking&rate=0.01"}
    ours = []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "runs") as (server,), chromium() as browser:
        for name, query in pages.items():
            context = browser.new_context(**WINDOW)
            url = f"{server.url}/charges?{query}"
            times, rate, processor = played(context.new_page(), url, "canvas", arguments.seconds, server)
            ours.append(report(name, times, f"{rate:.1f} steps/s; {processor}"))
            context.close()
    for (name, times), own in zip(rivals(arguments.repeats).items(), ours, strict=True):
        report(name, times, f"{float(np.median(times)) / own:.1f} x the time of a played step")


if __name__ == "__main__":
    main()
