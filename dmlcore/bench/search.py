"""Exact search of 60,502 x 512 (Stanford Online Products), compared with an unproven search of the device.

The rival is a product of float32 matrices and `topk`, whose ranks depend on rounding. The exact search also computes
all retrieval scores.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from dmlcore.bench.measuring import DEVICE, heading, is_small, row, seconds
from dmlcore.metrics import retrieval


def main() -> None:
    """Measure the search for two values of k and print a table."""
    small = is_small()
    count, dimensions, ks = (1500, 32, (10, 100)) if small else (60_502, 512, (10, 1000))
    points = torch.nn.functional.normalize(torch.randn(count, dimensions, generator=torch.Generator().manual_seed(0)))
    labels = np.arange(count) // 5
    there = points.to(DEVICE)
    heading(f"exact search {count:,} x {dimensions}", "seconds", "product and topk, seconds", "ratio")
    for k in ks:
        ours = seconds(partial(retrieval, points, labels, ks=(1, k), device=DEVICE), 2)
        rival = seconds(partial(unproven, there, k), 2)
        row(f"k = {k:,}", f"{ours:.2f}", f"{rival:.2f}", f"{ours / rival:.1f}")


def unproven(points: torch.Tensor, k: int) -> None:
    """List the k + 1 nearest points of each point by a float32 product and `topk`, in tiles of 1,024 queries."""
    squares = points.square().sum(1)
    for queries in points.split(1024):
        torch.addmm(squares[None], queries, points.T, alpha=-2).topk(k + 1, largest=False).indices.cpu()


if __name__ == "__main__":
    main()
