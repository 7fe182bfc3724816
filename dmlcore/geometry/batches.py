"""Validation of the embeddings and labels of a batch, and control of the numerical precision of loss computations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Forward = TypeVar("Forward", bound=Callable[..., Any])
HALF = (torch.float16, torch.bfloat16)


def widen(x: Tensor) -> Tensor:
    """Return `x` as float32 if it is float16 or bfloat16, and unchanged otherwise."""
    return x.float() if isinstance(x, Tensor) and x.dtype in HALF else x


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context manager that disables autocast on `device`; it does nothing if autocast is already off."""
    kind = device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def full_precision(forward: Forward) -> Forward:
    """Decorate a method `forward(self, embeddings, ...)` so that autocast is off while it runs."""

    @functools.wraps(forward)
    def in_full_precision(self: Any, embeddings: Tensor, *args: Any, **options: Any) -> Any:
        with without_autocast(embeddings.device) if isinstance(embeddings, Tensor) else nullcontext():
            return forward(self, embeddings, *args, **options)

    return cast(Forward, in_full_precision)


def check_finite(name: str, x: Tensor, squares: bool = True) -> None:
    """Check that `x` is a floating-point tensor with finite values.

    Args:
        name: Name of the argument for error messages.
        x: Tensor to check.
        squares: True to also check that the sum of squares along the last axis cannot overflow the dtype.

    Raises:
        TypeError: If `x` is not a floating-point tensor.
        ValueError: If the last axis is missing or empty, a value is not finite or, with `squares`, a sum of squares may
            overflow.
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {getattr(x, 'dtype', type(x).__name__)}")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; needs at least one dimension of size 1 or more")
    if x.numel() == 0:
        return
    largest = float(x.detach().abs().max())
    if not math.isfinite(largest):
        raise ValueError(f"{name} contains NaN or infinity")
    if squares and largest > math.sqrt(torch.finfo(x.dtype).max / x.shape[-1]) / 4:
        raise ValueError(f"{name} reaches {largest:g}: its squares overflow {x.dtype}; normalise it first")


def check_embeddings(embeddings: Tensor, name: str = "embeddings", *, unbounded: bool = False) -> None:
    """Check that embeddings are finite floating-point numbers of shape (B, D).

    Values are checked on the CPU only, because reading them from another device would force a synchronisation.

    Args:
        embeddings: Shape (B, D).
        name: Name of the argument for error messages.
        unbounded: True to accept finite values even if their squares overflow.

    Raises:
        TypeError: If `embeddings` is not a floating-point tensor.
        ValueError: If the shape is not (B, D) or a value is not finite.
    """
    if not isinstance(embeddings, Tensor) or embeddings.device.type == "cpu":
        check_finite(name, embeddings, squares=not unbounded)
    elif not embeddings.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {embeddings.dtype}")
    if embeddings.ndim != 2:
        raise ValueError(f"{name} must have shape (B, D), got {tuple(embeddings.shape)}")


def check_labels(labels: Tensor, embeddings: Tensor, names: tuple[str, str] = ("labels", "embeddings")) -> None:
    """Check that labels are integers of shape (B,), one for each row of the embeddings.

    Args:
        labels: Tensor to check.
        embeddings: Embeddings, shape (B, D).
        names: Names of both arguments for error messages.

    Raises:
        TypeError: If `labels` is not an integer tensor.
        ValueError: If the shape of `labels` is not (B,).
    """
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
        kind = str(labels.dtype) if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"{names[0]} must be an integer tensor, got {kind}")
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(f"{names[0]} must have shape ({len(embeddings)},) like {names[1]}, got {tuple(labels.shape)}")
