"""What the losses of a whole batch share that are no sum over catalogued triplets: entry, pair tables, proxies.

A loss enters the catalogue by `batch_loss`, before its class or the function that makes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.catalogue import Choice, Values, declared
from dmlcore.losses.engine.distances import DISTANCES, distance_table, unit
from dmlcore.losses.engine.formula import LOSSES, LossEntry
from dmlcore.losses.engine.table import Counts, Indices
from dmlcore.losses.engine.triplet_loss import check_batch, check_indices

Pick = tuple[Tensor, ...]
Build = TypeVar("Build", bound=Callable[..., nn.Module])
DIVISORS = ("nonzero", "pairs", "anchors", "one")
Divisor = Annotated[
    str,
    Choice(DIVISORS, "N", "What a sum is divided by: its terms above 0, all its terms, the anchors, or nothing (one)"),
]
Distance = Annotated[
    str,
    Choice(
        DISTANCES, "d", "Distance: Euclidean, its square, 1 - cosine, or Euclidean in the unit ball (long vectors cut)"
    ),
]
NOTHING = -1e30  # log of an empty sum: exp(NOTHING) is 0 in every precision, and unlike -inf it has a gradient


@dataclass(frozen=True, kw_only=True)
class BatchFormula(LossEntry):
    """A loss of a whole batch: what a form and a page need of it, and `build`, which makes the module.

    sizes: which of `classes`, `embedding_dim` and `pooled_dim` it is made for, beside its hyper-parameters.
    """

    build: Callable[..., nn.Module]
    sizes: frozenset[str]

    @property
    def pairs(self) -> bool:
        """Whether the loss compares rows with a reference, as a memory of earlier batches needs."""
        return bool(getattr(self.build, "pairs", False))

    @property
    def proxies(self) -> bool:
        """Whether it learns vectors as long as an embedding."""
        return "embedding_dim" in self.sizes

    @property
    def proxies_are_places(self) -> bool:
        """Whether its proxies, several of each class, lie among the samples, so that samples can replace them."""
        return "per_class" in self.parameters

    def complete(self, given: Values, reduction: str = "mean_valid", **surroundings: Any) -> dict[str, Any]:
        """As of every entry; also ValueError for another reduction than its own."""
        if reduction != "mean_valid":
            raise ValueError(f"reduction: {self.name} has its own; leave it at mean_valid, got {reduction}")
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
    """Enter a loss of batches into the catalogue: its class, or a function that makes it.

    Each hyper-parameter of the constructor is `Annotated` with its Slider or Choice and has a default; `classes`,
    `embedding_dim` and `pooled_dim` (of what the embedding layer takes) are given to what asks for them. rule: as of
    `catalogue.Entry`. shared: a function whose hyper-parameters it has too, as keywords, declared there for several.
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


# ---- sums over masked entries


def masked_lse(values: Tensor, mask: Tensor, dim: int = 1) -> Tensor:
    """log Σ exp over the entries in `mask`; NOTHING, without a gradient, where there are none."""
    return torch.logsumexp(values.masked_fill(~mask, NOTHING), dim)


def log1p_exp(x: Tensor) -> Tensor:
    """log(1 + e^x), exact to rounding in float64 too."""
    return F.softplus(x, threshold=40.0)


def mean(total: Tensor, count: Tensor) -> Tensor:
    """total / count, and total where the count is 0."""
    return total / count.clamp(min=1)


def reduced(terms: Tensor, valid: Tensor, divisor: str) -> Tensor:
    """Sum of the terms (B, ...), 0 where not valid, over what `divisor` names (DIVISORS)."""
    total = terms.sum()
    if divisor == "nonzero":
        return mean(total, (terms > 0).sum())
    if divisor == "pairs":
        return mean(total, valid.sum())
    return total / max(len(terms), 1) if divisor == "anchors" else total


# ---- pairs


@dataclass(frozen=True)
class BatchPairs:
    """Rows (B, D) against columns (R, D), and which pairs (B, R) are positive or negative.

    listed: the triplets (a, p, n) that the caller gave, (T,) each; else every positive pair meets every negative of
    its row.
    """

    rows: Tensor
    columns: Tensor
    labels: Tensor
    column_labels: Tensor
    positive: Tensor
    negative: Tensor
    listed: Indices | None

    def distances(self, kind: str) -> Tensor:
        """Distances (B, R), as `distances.distance_table` names them."""
        return distance_table(kind, self.rows, self.columns)

    def cosines(self) -> Tensor:
        """Cosine similarities (B, R)."""
        rows = unit(self.rows)
        return rows @ (rows if self.columns is self.rows else unit(self.columns)).mT


class PairLoss(nn.Module):
    """A loss of the pairs (row, column) of a batch, or of a batch against a reference such as a memory.

    forward(embeddings (B, D), labels (B,), indices_tuple=None, *, reference=None, reference_labels=None) -> scalar.
    indices_tuple: None for all pairs; (a1, p, a2, n) of a miner, or triplets (a, p, n); a pair listed twice counts
    once. Rows are samples of the batch, columns those of the reference (R, D) where there is one; then a sample that
    lies in the reference too is its own positive. After a forward pass `counts` holds the terms of the batch: all,
    and those above 0. Nothing waits for the device until it is read.
    """

    pairs: ClassVar[bool] = True
    unbounded: bool = False  # whether embeddings of any length will do, as where only their direction counts

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts.none()

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        indices_tuple: Pick | None = None,
        *,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch."""
        embeddings, labels = ready(embeddings, labels, unbounded=self.unbounded)
        alone = reference is None
        if (reference is None) != (reference_labels is None):
            raise ValueError("reference and reference_labels go together; give both or neither")
        if reference is None or reference_labels is None:
            reference, reference_labels = embeddings, labels
        else:
            reference, reference_labels = ready(reference, reference_labels, "reference", unbounded=self.unbounded)
            reference = reference.to(embeddings.dtype)
            if reference.shape[1] != embeddings.shape[1]:
                raise ValueError(f"reference must have {embeddings.shape[1]} columns like embeddings")
        return self.of(_pairs(embeddings, labels, indices_tuple, reference, reference_labels, alone))

    def of(self, pairs: BatchPairs) -> Tensor:
        """The loss of these pairs."""
        raise NotImplementedError

    def note(self, terms: Tensor, valid: Tensor) -> None:
        """Remember how many terms (any shape, masked by `valid`) there are, and how many are above 0."""
        above = ((terms > 0) & valid).sum()
        self.counts = Counts.of(valid.sum(), above, above)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles do not carry the counts of the last batch."""
        return {**self.__dict__, "counts": Counts.none()}


def ready(
    embeddings: Tensor, labels: Tensor, name: str = "embeddings", *, unbounded: bool = False
) -> tuple[Tensor, Tensor]:
    """Checked embeddings, float32 at least, and labels on their device; raises what names the argument.

    unbounded: accept values whose squares overflow.
    """
    if isinstance(embeddings, Tensor) and embeddings.dtype in (torch.float16, torch.bfloat16):
        embeddings = embeddings.float()  # before the check: squares that overflow float16 do not matter here
    check_batch(embeddings, labels, name, unbounded=unbounded)
    return embeddings, labels.to(embeddings.device, non_blocking=True)


def _pairs(
    rows: Tensor, labels: Tensor, indices: Pick | None, columns: Tensor, column_labels: Tensor, alone: bool
) -> BatchPairs:
    same = labels[:, None] == column_labels
    if indices is None:
        positive, negative = same, ~same
        if alone:
            positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=same.device)
        return BatchPairs(rows, columns, labels, column_labels, positive, negative, None)
    indices = check_indices(indices, len(labels), len(column_labels), rows.device)
    a1, p, a2, n = indices if len(indices) == 4 else (indices[0], indices[1], indices[0], indices[2])
    positive, negative = torch.zeros_like(same), torch.zeros_like(same)
    positive[a1, p] = True
    negative[a2, n] = True
    listed = (indices[0], indices[1], indices[2]) if len(indices) == 3 else None
    return BatchPairs(rows, columns, labels, column_labels, positive, negative, listed)


# ---- proxies


class ProxyLoss(nn.Module):
    """A loss of samples against `proxies` (classes x per_class, D), learned, class after class.

    forward(embeddings (B, D), labels (B,) in 0..classes-1, indices_tuple=None) -> scalar; indices_tuple is not used,
    since every sample meets every proxy. `trained` holds the classes whose proxies take part, (K,) int64, where a loss
    can leave out those without a sample (`proxy_pairs`); None: all.
    """

    pairs: ClassVar[bool] = False
    unbounded: bool = True
    trained: Tensor | None = None

    def __init__(self, classes: int, embedding_dim: int, per_class: int = 1) -> None:
        super().__init__()
        self.classes, self.per_class = classes, per_class
        self.proxies = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes * per_class, embedding_dim)))

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: Pick | None = None) -> Tensor:
        """The loss of a batch."""
        embeddings, labels = ready(embeddings, labels, unbounded=self.unbounded)
        dimension = self.proxies.shape[1]
        if embeddings.shape[1] != dimension:
            raise ValueError(f"embeddings must have {dimension} columns like the proxies, got {embeddings.shape[1]}")
        if (
            labels.device.type == "cpu"
            and len(labels)
            and not 0 <= int(labels.min()) <= int(labels.max()) < self.classes
        ):
            raise ValueError(f"labels must be in 0..{self.classes - 1}, one proxy each, got {labels.unique().tolist()}")
        return self.of(embeddings, labels.long())

    def of(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a checked batch."""
        raise NotImplementedError

    def own(self, labels: Tensor) -> Tensor:
        """(B, classes), whether a class is that of the sample."""
        return labels[:, None] == torch.arange(self.classes, device=labels.device)
