"""Shared parts of losses that are not sums over triplets: catalogue entry, base classes for pair and proxy losses.

The decorator `batch_loss` registers a loss, given as a class or as a function that creates a module.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.catalogue import Choice, Values, declared
from dmlcore.geometry.batches import Index, LossInputs, check_batch, full_precision, read_inputs
from dmlcore.losses.engine.distances import DISTANCES, distance_table, unit
from dmlcore.losses.engine.formula import LOSSES, LossEntry
from dmlcore.losses.engine.table import Counts, Indices

Build = TypeVar("Build", bound=Callable[..., nn.Module])
DIVISORS = ("nonzero", "pairs", "anchors", "one")
Divisor = Annotated[
    str,
    Choice(DIVISORS, "N", "Divisor of a sum: its terms above 0, all its terms, the anchors, or none (one)"),
]
Distance = Annotated[
    str,
    Choice(
        DISTANCES, "d", "Distance: Euclidean, its square, 1 - cosine, or Euclidean in the unit ball (long vectors cut)"
    ),
]
# result for an empty sum in place of log(0); exp(NOTHING) is 0 and, unlike exp(-inf), has no NaN gradients
NOTHING = -1e30


@dataclass(frozen=True, kw_only=True)
class BatchFormula(LossEntry):
    """Catalogue entry of a loss that is defined on a whole batch, not on single triplets.

    Attributes:
        build: Class or function that creates the module.
        sizes: Sizes that `build` takes in addition to the hyper-parameters, from `classes`, `embedding_dim` and
            `pooled_dim`.
    """

    build: Callable[..., nn.Module]
    sizes: frozenset[str]

    @property
    def pairs(self) -> bool:
        """True if the loss can compare a batch with other embeddings, as a cross-batch memory requires."""
        return bool(getattr(self.build, "pairs", False))

    @property
    def proxies(self) -> bool:
        """True if the loss learns class vectors of the same dimension as the embeddings."""
        return "embedding_dim" in self.sizes

    @property
    def proxies_are_places(self) -> bool:
        """True if the loss learns several proxies per class that are points of the embedding space, like samples."""
        return "per_class" in self.parameters

    def complete(self, given: Values, reduction: str = "mean_valid", **surroundings: Any) -> dict[str, Any]:
        """Complete the given hyper-parameters with defaults, see `Entry.complete`.

        Raises:
            ValueError: If a value is invalid, or if `reduction` is not the default, because these losses have a
                reduction of their own.
        """
        if reduction != "mean_valid":
            raise ValueError(f"reduction: {self.name} defines its own; leave it at mean_valid, got {reduction}")
        return super().complete(given, **surroundings)


def batch_loss(
    name: str,
    *,
    title: str,
    latex: str,
    source: str,
    sentence: str,
    rule: Callable[[Values], str] | None = None,
    shared: Callable[..., Any] | None = None,
) -> Callable[[Build], Build]:
    """Register a batch loss, given as a class or as a function that creates the module.

    Each hyper-parameter of the constructor is `Annotated` with its Slider or Choice and has a default. A constructor
    that has parameters named `classes`, `embedding_dim` or `pooled_dim` (dimension of the features before the embedding
    layer) receives these sizes.

    Args:
        name: Name in the catalogue.
        title: Title on screen.
        latex: Formula in LaTeX.
        source: Citation.
        sentence: One-sentence description.
        rule: Function that checks a combination of values and returns an error message or "", see `catalogue.Entry`.
        shared: Function whose parameters declare hyper-parameters that several losses share. The constructor receives
            them as keyword arguments.
    """

    def enter(build: Build) -> Build:
        sizes = frozenset({"classes", "embedding_dim", "pooled_dim"} & inspect.signature(build).parameters.keys())
        own, of_all = declared(build), declared(shared) if shared else {}
        entry = BatchFormula(
            name=name,
            title=title,
            latex=latex,
            source=source,
            sentence=sentence,
            rule=rule,
            build=build,
            sizes=sizes,
            **{part: own[part] | of_all.get(part, {}) for part in own},
        )
        LOSSES.enter(name, entry)
        return build

    return enter


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


# ---- sums over masked entries


def masked_lse(values: Tensor, mask: Tensor, dim: int = 1) -> Tensor:
    """Compute log(sum(exp(values))) over the entries in `mask`.

    Rows without an entry in `mask` give NOTHING, a large negative constant, with zero gradient.
    """
    return torch.logsumexp(values.masked_fill(~mask, NOTHING), dim)


def log1p_exp(x: Tensor) -> Tensor:
    """Compute log(1 + e^x) with full float64 accuracy, which the default threshold of softplus would limit."""
    return F.softplus(x, threshold=40.0)


def mean(total: Tensor, count: Tensor) -> Tensor:
    """Return total / count, or total where the count is 0."""
    return total / count.clamp(min=1)


def reduce_terms(terms: Tensor, valid: Tensor, divisor: str) -> Tensor:
    """Divide the sum of the terms by the count that `divisor` names.

    Args:
        terms: Terms >= 0 of shape (B, ...), 0 where not valid.
        valid: Mask of the valid terms.
        divisor: "nonzero" for the number of terms above 0, "pairs" for the number of valid terms, "anchors" for B, or
            "one" to return the sum.
    """
    total = terms.sum()
    if divisor == "nonzero":
        return mean(total, (terms > 0).sum())
    if divisor == "pairs":
        return mean(total, valid.sum())
    return total / max(len(terms), 1) if divisor == "anchors" else total


reduced = reduce_terms  # deprecated alias


def _deprecated_of(loss: nn.Module) -> Callable[..., Tensor]:
    """Return the deprecated method `of` of a plug-in loss that does not define `compute`, and warn.

    Raises:
        NotImplementedError: If the loss defines neither method.
    """
    method: Callable[..., Tensor] | None = getattr(type(loss), "of", None)
    if method is None:
        raise NotImplementedError(f"{type(loss).__name__} must define compute")
    warnings.warn(f"{type(loss).__name__}.of: rename this method to compute", DeprecationWarning, stacklevel=3)
    return functools.partial(method, loss)


# ---- pairs


@dataclass(frozen=True)
class BatchPairs:
    """Pairs between samples of a batch (rows) and other samples (columns), with masks of positive and negative pairs.

    Attributes:
        rows: Embeddings of the batch, shape (B, D).
        columns: Embeddings that the batch is compared with, shape (R, D).
        labels: Labels of the rows, shape (B,), or None if the caller gave index tuples instead.
        column_labels: Labels of the columns, shape (R,), or None if the caller gave index tuples instead.
        positive: Mask of positive pairs, shape (B, R).
        negative: Mask of negative pairs, shape (B, R).
        listed: Triplets (a, p, n) given by the caller, each of shape (T,). If None, every positive pair is combined
            with every negative pair of the same row.
    """

    rows: Tensor
    columns: Tensor
    labels: Tensor | None
    column_labels: Tensor | None
    positive: Tensor
    negative: Tensor
    listed: Indices | None

    def known_labels(self) -> tuple[Tensor, Tensor]:
        """Return the labels of rows (B,) and columns (R,).

        Raises:
            ValueError: If labels of rows or columns are missing.
        """
        if self.labels is None or self.column_labels is None:
            raise ValueError("labels: this loss needs labels in addition to indices_tuple, and ref_labels for ref_emb")
        return self.labels, self.column_labels

    def distances(self, kind: str) -> Tensor:
        """Compute the distances (B, R) between rows and columns; `kind` is one of `distances.DISTANCES`."""
        return distance_table(kind, self.rows, self.columns)

    def cosines(self) -> Tensor:
        """Compute the cosine similarities (B, R) between rows and columns."""
        rows = unit(self.rows)
        return rows @ (rows if self.columns is self.rows else unit(self.columns)).mT


class PairLoss(nn.Module):
    """Base class of losses over pairs within a batch, or over pairs between a batch and reference embeddings.

    `forward` maps embeddings (B, D) and labels (B,) to a scalar. Each sample of the batch is compared with the samples
    of `ref_emb` (R, D), or with the batch itself if `ref_emb` is None. A sample that is in both the batch and the
    reference counts as its own positive.

    `indices_tuple` is None for all pairs, (a1, p, a2, n) as returned by a miner, or triplets (a, p, n). A pair that is
    listed twice counts once. With index tuples, labels may be None unless the loss needs them.

    After a forward pass `counts` holds the number of terms and the number of terms above 0. Counting does not
    synchronise with the device until the numbers are read.
    """

    pairs: ClassVar[bool] = True
    # True if embeddings with overflowing squares are accepted, for example because only their direction counts
    unbounded: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts.none()

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Index | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar loss of a batch; the class docstring describes the arguments."""
        batch = read_inputs(embeddings, labels, indices_tuple, ref_emb, ref_labels, unbounded=self.unbounded)
        if not len(batch.embeddings) or not len(batch.columns):
            return zero_loss(self, batch.embeddings)
        return self.compute(_pairs(batch))

    def compute(self, pairs: BatchPairs) -> Tensor:
        """Compute the scalar loss over the given pairs. Subclasses override this method."""
        return _deprecated_of(self)(pairs)

    def record_counts(self, terms: Tensor, valid: Tensor) -> None:
        """Record the number of terms in the mask `valid` and the number of those above 0 in `counts`."""
        above = ((terms > 0) & valid).sum()
        self.counts = Counts.of(valid.sum(), above, above)

    note = record_counts  # deprecated alias

    def measured(self) -> dict[str, Tensor]:
        """Return values that the loss learns, scalars by name, for the metrics of a training run; none by default."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, without the counts of the last batch."""
        return {**self.__dict__, "counts": Counts.none()}


def _pairs(batch: LossInputs) -> BatchPairs:
    rows, columns = batch.embeddings, batch.columns
    labels, column_labels = (
        None if x is None else x.to(rows.device, non_blocking=True) for x in (batch.labels, batch.column_labels)
    )
    if batch.indices is None:
        assert labels is not None
        assert column_labels is not None
        same = labels[:, None] == column_labels
        positive, negative = same, ~same
        if batch.reference is None:
            positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=same.device)
        return BatchPairs(rows, columns, labels, column_labels, positive, negative, None)
    a1, p, a2, n = (
        batch.indices if len(batch.indices) == 4 else (*batch.indices[:2], batch.indices[0], batch.indices[2])
    )
    positive, negative = torch.zeros(2, len(rows), len(columns), dtype=torch.bool, device=rows.device)
    positive[a1, p] = True
    negative[a2, n] = True
    listed = (a1, p, n) if len(batch.indices) == 3 else None
    return BatchPairs(rows, columns, labels, column_labels, positive, negative, listed)


# ---- proxies


class ProxyLoss(nn.Module):
    """Base class of losses of samples against learned proxies.

    `proxies` has shape (classes * per_class, D), ordered by class. `forward` maps embeddings (B, D) and labels (B,) in
    0..classes-1 to a scalar. `indices_tuple` is ignored because every sample is compared with every proxy. A reference
    (`ref_emb`) raises ValueError.

    `trained` holds the classes whose proxies take part in the loss, shape (K,) int64, or None for all classes. Only
    losses that can leave out the proxies of classes without a sample in the batch use it (see `proxy_pairs`).
    """

    pairs: ClassVar[bool] = False
    unbounded: bool = True
    trained: Tensor | None = None

    def __init__(self, classes: int, embedding_dim: int, per_class: int = 1) -> None:
        super().__init__()
        self.classes, self.per_class = classes, per_class
        self.proxies = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes * per_class, embedding_dim)))

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Index | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar loss of a batch; the class docstring describes the arguments."""
        refuse_reference(self, ref_emb, ref_labels)
        embeddings, labels = check_batch(embeddings, labels, unbounded=self.unbounded)
        dimension = self.proxies.shape[1]
        if embeddings.shape[1] != dimension:
            raise ValueError(f"embeddings must have {dimension} columns like the proxies, got {embeddings.shape[1]}")
        if not len(labels):
            return zero_loss(self, embeddings)
        if labels.device.type == "cpu" and not 0 <= int(labels.min()) <= int(labels.max()) < self.classes:
            raise ValueError(f"labels must be in 0..{self.classes - 1}, one proxy each, got {labels.unique().tolist()}")
        dtype = torch.promote_types(embeddings.dtype, self.proxies.dtype)
        return self.compute(embeddings.to(dtype), labels.long(), self.proxies.to(dtype))

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated arguments. Subclasses override this method.

        Args:
            embeddings: Shape (B, D).
            labels: Shape (B,).
            proxies: `self.proxies`, shape (classes * per_class, D), in the dtype of the embeddings.
        """
        return _deprecated_of(self)(embeddings, labels, proxies)

    def own(self, labels: Tensor) -> Tensor:
        """Return a mask (B, classes) that is True at the class of each sample."""
        return labels[:, None] == torch.arange(self.classes, device=labels.device)
