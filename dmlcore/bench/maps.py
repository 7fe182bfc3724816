"""t-SNE and UMAP of 10,000 points, on the GPU by cuML if it is installed, compared with the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from dmlcore import projection
from dmlcore.bench.measuring import heading, is_small, row


def main() -> None:
    """Time both projections on the CPU and, if cuML is installed, on the GPU, and print a table."""
    small = is_small()
    points = torch.randn(200 if small else 10_000, 64, generator=torch.Generator().manual_seed(0)).numpy()
    heading(f"map of {len(points):,} points", "CPU, seconds", "GPU, seconds")
    maps: dict[str, Callable[..., object]] = {"t-SNE": projection.tsne}
    maps |= {} if small else {"UMAP": projection.umap}  # which numba compiles for a minute
    for name, draw in maps.items():
        cells = []
        for device in ("cpu", "cuda"):
            began = time.perf_counter()
            try:
                draw(points, device=device)
                cells.append(f"{time.perf_counter() - began:.1f}")
            except (ImportError, projection.Missing) as error:
                cells.append(f"not run: {error}")
        row(name, *cells)


if __name__ == "__main__":
    main()
