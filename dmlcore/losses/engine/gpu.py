"""Use of the Triton kernels: whether they support a tensor, what replaces them, and distances between points."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
_works: dict[str, bool] = {}  # maps the name of a kernel to False if it cannot be compiled on this machine


def is_interpreted() -> bool:
    """Return True if Triton interprets kernels on the CPU, for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def is_supported(points: Tensor) -> bool:
    """Return True if the kernels can evaluate these embeddings: at least two, float32 and on a CUDA device."""
    supported = points.is_cuda or is_interpreted()
    return supported and points.dtype == torch.float32 and len(points) > 1 and _has_triton()


def run_kernel(name: str, compute: Callable[[], T], other: Callable[[], T]) -> T:
    """Return `compute()`, or `other()` with a warning if the kernel cannot be compiled; later calls do not try again.

    A missing C compiler and a device that Triton does not support are possible reasons. Errors of a kernel that has
    worked before are raised.
    """
    if not _works.get(name, True):
        return other()
    try:
        result = compute()
    except Exception as error:
        if is_interpreted() or name in _works or isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        _works[name] = False
        warnings.warn(f"a loss runs without its Triton kernel: {error}", RuntimeWarning, stacklevel=2)
        return other()
    _works[name] = True
    return result


def distances(rows: Tensor, columns: Tensor) -> Tensor:
    """Return the distances (R, C) between points `rows` (D, R) and `columns` (D, C), from differences of coordinates.

    The last axis of both tensors must be contiguous.
    """
    from dmlcore import kernels

    (dim, height), width = rows.shape, columns.shape[1]
    out = torch.empty(height, width, device=rows.device)
    grid = -(-height // kernels.ROWS), -(-width // kernels.COLUMNS)
    with torch.cuda.device_of(rows):
        kernels.distance_kernel[grid](
            *(rows, columns, out, height, width, rows.stride(0), columns.stride(0), dim),
            ROWS=kernels.ROWS,
            COLUMNS=kernels.COLUMNS,
        )
    return out


def sort_by_label(labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sort samples by label without waiting for the device.

    Returns:
        Sample at each position, position of each sample, and first and last + 1 position of the class at each position.
        The first two are int64, the others int32, all of shape (B,).
    """
    from dmlcore import kernels

    size = len(labels)
    order, inverse = (torch.empty(size, dtype=torch.int64, device=labels.device) for _ in range(2))
    first, last = (torch.empty(size, dtype=torch.int32, device=labels.device) for _ in range(2))
    with torch.cuda.device_of(labels):
        kernels.sort_kernel[(-(-size // 32),)](labels.contiguous(), order, inverse, first, last, size, 32, 128)
    return order, inverse, first, last
