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
from dmlcore.geometry.batches import full_precision
from dmlcore.losses.engine.distances import DISTANCES, distance_table, unit
from dmlcore.losses.engine.formula import LOSSES, LossEntry
from dmlcore.losses.engine.inputs import LossInputs, read_inputs, ready, refuse_reference, zero_loss
from dmlcore.losses.engine.table import Counts, Index, Indices

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

    labels (B,) and column_labels (R,): None where the caller gave index tuples instead. listed: the triplets (a, p, n)
    that the caller gave, (T,) each; else every positive pair meets every negative of its row.
    """

    rows: Tensor
    columns: Tensor
    labels: Tensor | None
    column_labels: Tensor | None
    positive: Tensor
    negative: Tensor
    listed: Indices | None

    def known_labels(self) -> tuple[Tensor, Tensor]:
        """Return the labels of rows and columns; raises ValueError where the caller gave none."""
        if self.labels is None or self.column_labels is None:
            raise ValueError("labels: this loss needs them, beside indices_tuple and for ref_emb, too")
        return self.labels, self.column_labels

    def distances(self, kind: str) -> Tensor:
        """Distances (B, R), as `distances.distance_table` names them."""
        return distance_table(kind, self.rows, self.columns)

    def cosines(self) -> Tensor:
        """Cosine similarities (B, R)."""
        rows = unit(self.rows)
        return rows @ (rows if self.columns is self.rows else unit(self.columns)).mT


class PairLoss(nn.Module):
    """A loss of the pairs (row, column) of a batch, or of a batch against a reference such as a memory.

    forward(embeddings (B, D), labels (B,), indices_tuple=None, ref_emb=None, ref_labels=None) -> scalar.
    indices_tuple: None for all pairs; (a1, p, a2, n) of a miner, or triplets (a, p, n); a pair listed twice counts
    once; labels may then be None, unless the loss needs them. Rows are samples of the batch, columns those of ref_emb
    (R, D) where it is given; then a sample that lies in both is its own positive. After a forward pass `counts` holds
    the terms of the batch: all, and those above 0. Nothing waits for the device until it is read.
    """

    pairs: ClassVar[bool] = True
    unbounded: bool = False  # whether embeddings of any length will do, as where only their direction counts

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
        """Return the loss of a batch."""
        batch = read_inputs(embeddings, labels, indices_tuple, ref_emb, ref_labels, unbounded=self.unbounded)
        if not len(batch.embeddings) or not len(batch.columns):
            return zero_loss(self, batch.embeddings)
        return self.of(_pairs(batch))

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
    """A loss of samples against `proxies` (classes x per_class, D), learned, class after class.

    forward(embeddings (B, D), labels (B,) in 0..classes-1, indices_tuple=None, ref_emb=None, ref_labels=None) ->
    scalar; indices_tuple is not used, since every sample meets every proxy, and a reference is refused. `trained` holds
    the classes whose proxies take part, (K,) int64, where a loss can leave out those without a sample (`proxy_pairs`);
    None: all.
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
        """Return the loss of a batch."""
        refuse_reference(self, ref_emb, ref_labels)
        embeddings, labels = ready(embeddings, labels, unbounded=self.unbounded)
        dimension = self.proxies.shape[1]
        if embeddings.shape[1] != dimension:
            raise ValueError(f"embeddings must have {dimension} columns like the proxies, got {embeddings.shape[1]}")
        if not len(labels):
            return zero_loss(self, embeddings)
        if labels.device.type == "cpu" and not 0 <= int(labels.min()) <= int(labels.max()) < self.classes:
            raise ValueError(f"labels must be in 0..{self.classes - 1}, one proxy each, got {labels.unique().tolist()}")
        dtype = torch.promote_types(embeddings.dtype, self.proxies.dtype)
        return self.of(embeddings.to(dtype), labels.long(), self.proxies.to(dtype))

    def of(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Return the loss of a checked batch; `proxies` are `self.proxies` in the dtype of the embeddings."""
        raise NotImplementedError

    def own(self, labels: Tensor) -> Tensor:
        """(B, classes), whether a class is that of the sample."""
        return labels[:, None] == torch.arange(self.classes, device=labels.device)
