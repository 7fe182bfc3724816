"""Validation of the arguments of losses and miners, and control of the numerical precision of their computations.

The arguments are the embeddings and labels of a batch, index tuples, and reference embeddings.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

Forward = TypeVar("Forward", bound=Callable[..., Any])
HALF = (torch.float16, torch.bfloat16)
Index = tuple[Tensor, ...]  # triplets (a, p, n) or pairs (a1, p, a2, n)


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


class LossInputs(NamedTuple):
    """Validated arguments of a batch loss.

    Attributes:
        embeddings: Shape (B, D), float32 or wider.
        labels: Shape (B,), on the device where the caller put them, or None if the caller gave index tuples.
        reference: Embeddings to compare the batch with, shape (R, D), or None if the batch is compared with itself.
        reference_labels: Shape (R,), or None.
        indices: Triplets (a, p, n), pairs (a1, p, a2, n), or None. Anchors are indices into the batch. Positives and
            negatives are indices into the reference, or into the batch if there is no reference.
    """

    embeddings: Tensor
    labels: Tensor | None
    reference: Tensor | None
    reference_labels: Tensor | None
    indices: Index | None

    @property
    def columns(self) -> Tensor:
        """Embeddings that the batch is compared with, shape (R, D); the batch itself if there is no reference."""
        return self.embeddings if self.reference is None else self.reference

    @property
    def column_labels(self) -> Tensor | None:
        """Labels of `columns`, shape (R,), or None if not known."""
        return self.labels if self.reference is None else self.reference_labels


def read_inputs(
    embeddings: Tensor,
    labels: Tensor | None,
    indices_tuple: Index | None,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
    *,
    unbounded: bool = False,
) -> LossInputs:
    """Validate the arguments of a pair or triplet loss and convert all embeddings to a common dtype.

    Args:
        embeddings: Shape (B, D).
        labels: Shape (B,); may be None if `indices_tuple` is given.
        indices_tuple: Triplets or pairs, or None for all valid ones.
        ref_emb: Embeddings (R, D) to compare the batch with, or None for the batch itself.
        ref_labels: Shape (R,); may be None if `indices_tuple` is given.
        unbounded: True to accept finite embeddings even if their squares overflow.

    Raises:
        TypeError: If an argument has the wrong type or dtype; the message names it.
        ValueError: If an argument is missing or has an invalid shape or value; the message names it.
    """
    if labels is None and indices_tuple is None:
        raise ValueError("labels or indices_tuple must be given")
    if ref_labels is not None and ref_emb is None:
        raise ValueError("ref_labels need ref_emb; give both or neither")
    if ref_emb is not None and ref_labels is None and indices_tuple is None:
        raise ValueError("ref_emb needs ref_labels or indices_tuple")
    embeddings, labels = _checked(embeddings, labels, "embeddings", "labels", unbounded)
    columns = len(embeddings)
    if ref_emb is not None:
        ref_emb, ref_labels = _checked(ref_emb, ref_labels, "ref_emb", "ref_labels", unbounded)
        if ref_emb.shape[1] != embeddings.shape[1]:
            raise ValueError(f"ref_emb must have {embeddings.shape[1]} columns like embeddings")
        dtype, columns = torch.promote_types(embeddings.dtype, ref_emb.dtype), len(ref_emb)
        embeddings, ref_emb = embeddings.to(dtype), ref_emb.to(dtype)
    indices = (
        None if indices_tuple is None else check_indices(indices_tuple, len(embeddings), columns, embeddings.device)
    )
    return LossInputs(embeddings, labels, ref_emb, ref_labels, indices)


def check_batch(embeddings: Tensor, labels: Tensor | None, *, unbounded: bool = False) -> tuple[Tensor, Tensor]:
    """Validate a batch and return its embeddings, as float32 or wider, and its labels on the same device.

    Args:
        embeddings: Shape (B, D).
        labels: Shape (B,); None raises ValueError.
        unbounded: True to accept finite embeddings even if their squares overflow.

    Raises:
        TypeError: If an argument has the wrong type or dtype; the message names it.
        ValueError: If an argument is missing or has an invalid shape or value; the message names it.
    """
    if labels is None:
        raise ValueError("labels: this loss requires labels")
    embeddings, _ = _checked(embeddings, labels, "embeddings", "labels", unbounded)
    return embeddings, labels.to(embeddings.device, non_blocking=True)


def _checked(
    embeddings: Tensor, labels: Tensor | None, name: str, labels_name: str, unbounded: bool
) -> tuple[Tensor, Tensor | None]:
    # widen to float32 before the check, so that only values whose squares overflow float32 are refused
    embeddings = widen(embeddings)
    check_embeddings(embeddings, name, unbounded=unbounded)
    if labels is not None:
        check_labels(labels, embeddings, (labels_name, name))
    return embeddings, labels


def check_indices(indices_tuple: Index, rows: int, columns: int, device: torch.device) -> Index:
    """Return triplets (a, p, n) or pairs (a1, p, a2, n) as int64 tensors on `device`.

    Args:
        indices_tuple: Three or four index tensors of shape (T,).
        rows: Number of samples that anchors index.
        columns: Number of samples that positives and negatives index.
        device: Device of the result. Ranges are checked only if this is the CPU.

    Raises:
        ValueError: If an index tensor has an invalid shape or value; the message names it.
    """
    names = ("anchors", "positives", "negatives") if len(indices_tuple) == 3 else ("a1", "positives", "a2", "negatives")
    if len(indices_tuple) not in (3, 4):
        raise ValueError(f"indices_tuple must have 3 (triplets) or 4 (pairs) index tensors, got {len(indices_tuple)}")
    indices = tuple(torch.as_tensor(x, dtype=torch.int64, device=device) for x in indices_tuple)
    for name, index in zip(names, indices, strict=True):
        size = rows if name in ("anchors", "a1", "a2") else columns
        known = index.device.type == "cpu" and index.ndim == 1 and len(index) > 0
        if index.ndim != 1 or (known and not 0 <= int(index.min()) <= int(index.max()) < size):
            raise ValueError(f"indices_tuple: {name} must be (T,) indices in 0..{size - 1}")
    for together in (indices,) if len(indices) == 3 else (indices[:2], indices[2:]):
        if len({len(x) for x in together}) > 1:
            raise ValueError(f"indices_tuple: lengths differ: {', '.join(str(len(x)) for x in together)}")
    return indices
