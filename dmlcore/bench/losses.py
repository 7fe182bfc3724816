"""Triplet losses, forward and backward, compared with PML's TripletMarginLoss and with `torch.cdist`.

Unit embeddings in float32, 128 dimensions, 8 samples per class. Peak memory is that above the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.bench.measuring import DEVICE, heading, is_small, peak_mebibytes, row, seconds

FLOOR, RIVAL = "torch.cdist", "PML TripletMarginLoss"
Loss = Callable[[Tensor, Tensor], Tensor]


def main() -> None:
    for batch in (32, 64) if is_small() else (128, 512, 2048):
        points = torch.nn.functional.normalize(torch.randn(batch, 128, generator=torch.Generator().manual_seed(0)))
        points, labels = points.to(DEVICE), torch.arange(batch, device=DEVICE) // 8
        heading(f"batch {batch}", "ms", "of PML", "of cdist", "MiB", "of PML")
        measured: dict[str, tuple[float, float]] = {}
        unknown = (float("nan"), float("nan"))
        for name, loss in candidates().items():
            call = partial(forward_and_backward, loss, points, labels)
            measured[name] = seconds(call, 7), peak_mebibytes(call)
            (time, memory), (floor, _) = measured[name], measured.get(FLOOR, unknown)
            rival, most = measured.get(RIVAL, unknown)
            row(
                *(name, f"{1e3 * time:.2f}", f"{time / rival:.2f}", f"{time / floor:.1f}"),
                *(f"{memory:.0f}", f"{memory / most:.2f}"),
            )


def candidates() -> dict[str, Loss]:
    """Return the measured functions by name: the floor, the rival if it is installed, and all triplet losses."""
    candidates_by_name: dict[str, Loss] = {}
    try:
        from pytorch_metric_learning.losses import TripletMarginLoss
    except ImportError:
        print("pytorch-metric-learning is not installed: no ratio to it")
    else:
        candidates_by_name[RIVAL] = TripletMarginLoss(margin=0.1)
    candidates_by_name[FLOOR] = lambda x, _: torch.cdist(x, x).sum()
    return candidates_by_name | {name: losses.create(name).to(DEVICE) for name in losses.names()}


def forward_and_backward(loss: Loss, points: Tensor, labels: Tensor) -> None:
    """Compute a loss of embeddings (B, D) with labels (B,) and its gradient."""
    loss(points.clone().requires_grad_(), labels).backward()


if __name__ == "__main__":
    main()
