"""Approximate and exact nearest-neighbour search: recall, time and memory, with forecasts for 10^7 and 10^8 points.

`python -m benchmarks.approximate_search [POINTS [DIMENSIONS]]`. The default, 1,000,000 x 128, takes 15 minutes.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness import points_in_classes
from dmlcore.metrics.approximate import BREADTH, PROBE, TITLES, ApproximateSearch, estimate_costs, index_bytes, recall

CLASS = 50  # number of points per class, scattered around the class centre like embeddings
QUERIES = 1000
GB = 1e9
BROADER = (1, 4)  # multiples of the default search breadth at which each index is searched
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def main() -> None:
    """Print one line per index and search breadth, followed by forecasts of time and memory for larger sets."""
    count, dimensions = (int(word) for word in (sys.argv[1:] + ["1000000", "128"][len(sys.argv) - 1 :]))
    print(f"{count:,} x {dimensions}, classes of {CLASS}, {QUERIES} queries; load {os.getloadavg()[0]:.1f}", flush=True)
    with TemporaryDirectory() as folder:
        points = np.lib.format.open_memmap(Path(folder) / "points.npy", "w+", np.float32, (count, dimensions))
        points_in_classes(points, CLASS, 0.6)
        print("index        breadth  build s      MB  ms/query exact/it  recall@1 recall@100")
        exact = _measure("exact", points, (1,), None)
        for kind in list(TITLES)[1:]:
            _measure(kind, points, tuple(BREADTH[kind] * times for times in BROADER), exact)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GB
    print(f"peak memory {peak:.1f} GB; load {os.getloadavg()[0]:.1f}\n")
    print(f"Forecast, not measured, from an index of {PROBE:,} points built now; this machine has {MEMORY / GB:.0f} GB")
    for n in (count, 10**7, 10**8):
        for cost in estimate_costs(n, dimensions):
            fits = "" if cost.bytes < 0.8 * MEMORY else "  does not fit"
            times = f"build {cost.build / 3600:8.2f} h {cost.thousand:9.2f} ms per query"
            print(f"{n:12,} {cost.kind:8} {cost.bytes / GB:8.1f} GB  {times}{fits}")


def _measure(kind: str, points: np.ndarray, breadths: tuple[int, ...], exact: float | None) -> float:
    """Build an index of type `kind`, search it with each breadth and print recall, time and memory.

    `exact` is the time of the exact search in milliseconds per query, to which the times are compared; None for the
    exact search itself. Returns the milliseconds per query at the first breadth.
    """
    begin = time.perf_counter()
    search = ApproximateSearch(points, kind)
    built = time.perf_counter() - begin
    rows = np.random.default_rng(1).choice(len(points), QUERIES, replace=False)
    first = None
    for breadth in breadths:
        search.breadth = breadth
        begin = time.perf_counter()
        search.nearest(points[rows], 100)
        each = (time.perf_counter() - begin) * 1000 / QUERIES
        first = first or each
        shares = [1.0 if kind == "exact" else recall(search, points, k, queries=QUERIES).share for k in (1, 100)]
        ratio = f"{exact / each:7.1f}x" if exact else ""
        print(
            f"{kind:12} {breadth:7} {built:8.1f} {index_bytes(kind, *points.shape) / 1e6:7.0f} {each:9.2f} {ratio:>8} "
            f"{shares[0]:9.4f} {shares[1]:10.4f}",
            flush=True,
        )
    return first


if __name__ == "__main__":
    main()
