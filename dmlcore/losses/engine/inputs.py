"""Validation of the arguments of batch losses: embeddings, labels, index tuples and reference embeddings."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dmlcore.geometry.batches import check_embeddings, check_labels, widen
from dmlcore.losses.engine.table import Counts, Index


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


def refuse_reference(loss: nn.Module, ref_emb: Tensor | None, ref_labels: Tensor | None) -> None:
    """Raise ValueError if the caller passed reference embeddings to a loss that cannot use them."""
    if ref_emb is not None or ref_labels is not None:
        raise ValueError(
            f"ref_emb: {type(loss).__name__} does not support a reference set; omit ref_emb and ref_labels"
        )


def zero_loss(loss: nn.Module, embeddings: Tensor) -> Tensor:
    """Return the loss 0 for an empty batch, with zero gradients for the embeddings and all parameters.

    Also resets the recorded counts of the loss and its submodules.
    """
    for module in loss.modules():
        if "counts" in vars(module):
            vars(module)["counts"] = Counts.none()
    zero = (embeddings * 0).sum()
    for parameter in loss.parameters():
        zero = zero + (parameter * 0).sum().to(zero.dtype)
    return zero


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
