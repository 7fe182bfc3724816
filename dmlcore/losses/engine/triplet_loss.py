"""The one batch adaptor of all triplet losses: margin, clamp window, reduction, indices_tuple."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from dmlcore.geometry import Triplet
from dmlcore.geometry.triplet import FLOOR
from dmlcore.losses.engine.distances import check_finite
from dmlcore.losses.engine.formula import LOSSES, TripletFormula, check_points
from dmlcore.losses.engine.table import Counts, Indices, Window, pair_tables, table_energy

Reduction = Literal["mean_valid", "mean_nonzero", "mean_raw"]
REDUCTIONS: tuple[Reduction, ...] = ("mean_valid", "mean_nonzero", "mean_raw")


class TripletLoss(nn.Module):
    """A triplet loss of the catalogue, on points (`core`, `raw`, `clamped`) and on batches (`forward`).

    raw = core + margin, clamped = min(m2, max(0, raw)); a triplet is active, that is, has a gradient, where
    0 < raw < m2. Batch reductions over the T valid triplets (a != p of one class, n of another): `mean_valid` =
    sum of clamped / T, `mean_nonzero` = sum of clamped / number above 0, `mean_raw` = mean of raw, no clamp.
    After a forward pass `counts` holds the triplets of that batch.

    Shapes: points (..., D) x3, which broadcast, -> (...); embeddings (B, D), labels (B,) -> scalar.
    Raises: TypeError for an unknown hyper-parameter, ValueError for an invalid value, both naming it.
    Source: Karaman 2021, Sec. 2.1 and 3.2.

    Example:
        >>> import torch
        >>> from dmlcore import losses
        >>> loss = losses.create("ranking", m=0.5, m2=1.0)
        >>> a, p, n = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> loss.core(a, p, n), loss.raw(a, p, n), loss.clamped(a, p, n)
        (tensor(-0.2500), tensor(0.2500), tensor(0.2500))
        >>> loss.raw(a, p, 4 * n), loss.clamped(a, p, 4 * n)
        (tensor(-3.5000), tensor(0.))
    """

    counts = Counts.none()  # of the last forward pass

    def __init__(self, formula: TripletFormula, reduction: Reduction = "mean_valid", **hyper: float | str) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
        self.formula, self.reduction = formula, reduction
        self.hyper = formula.resolve(hyper)
        self.margin = float(self.hyper[formula.margin.name]) if formula.margin else 0.0
        self.m2 = float(self.hyper[formula.clamp.to or "m2"])
        self._own = {k: self.hyper[k] for k in formula.own}
        self.floor = FLOOR if math.isinf(self.m2) or reduction == "mean_raw" else 0.0

    @property
    def difference_window(self) -> tuple[float, float] | None:
        """(m, m2) where a triplet is active while 0 < d_ap - d_an + m < m2; None for other energies."""
        return (self.margin, self.m2) if self.formula.difference else None

    def core(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy without margin and clamp; points (..., D) x3 -> (...)."""
        return self._energy(Triplet.of_points(*check_points(anchor, positive, negative), floor=self.floor))

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy with margin, before the clamp; points (..., D) x3 -> (...). +inf where a diverging push meets d = 0
        under a finite m2."""
        return self.core(anchor, positive, negative) + self.margin

    def raw_of(self, triplet: Triplet) -> Tensor:
        """Energy with margin, before the clamp, from edge lengths and squared norms."""
        return self._energy(triplet) + self.margin

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """min(m2, max(0, raw)), with a gradient only where 0 < raw < m2; points (..., D) x3 -> (...)."""
        raw = self.raw(anchor, positive, negative)
        active = (raw > 0) & (raw < self.m2)
        return torch.where(active, raw, raw.detach().clamp(0.0, self.m2))

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """Scalar loss of a batch: embeddings (B, D) floating, labels (B,) integer.

        indices_tuple: None for all valid triplets; (anchors, positives, negatives), (T,) each; or the pairs
        (anchors1, positives, anchors2, negatives) of a PML miner, joined on the anchor. A batch without a triplet
        gives 0 with zero gradients. Raises ValueError or TypeError naming the argument.
        """
        if isinstance(embeddings, Tensor) and embeddings.dtype in (torch.float16, torch.bfloat16):
            embeddings = embeddings.float()  # before the check: squares that overflow float16 do not matter here
        check_batch(embeddings, labels)
        return self.of_tables(*pair_tables(embeddings), labels, indices_tuple)

    def of_tables(
        self, distances: Tensor, norms: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None
    ) -> Tensor:
        """`forward` on the distances (B, B) and squared norms (B,) of a batch (`table.pair_tables`), labels (B,).

        The gradient with respect to the distances tells pull (entries of one class) from push (of two).
        """
        triplets = None if indices_tuple is None else as_triplets(indices_tuple, labels)
        window = Window(self.margin, self.m2, clamped=self.reduction != "mean_raw")
        half = triplets is None and self.formula.symmetric
        separable = triplets is None and self.formula.separable
        total, self.counts = table_energy(
            distances, norms, labels, self._energy, window, self.floor, triplets, half, separable
        )
        divisor = self.counts.tally[1 if self.reduction == "mean_nonzero" else 0]
        return total / divisor.clamp(min=1)

    def extra_repr(self) -> str:
        """Name and hyper-parameters, for print."""
        return ", ".join([self.formula.name, *(f"{k}={v}" for k, v in self.hyper.items()), self.reduction])

    def _energy(self, t: Triplet) -> Tensor:
        return self.formula.core(t, **self._own)


def check_batch(embeddings: Tensor, labels: Tensor, name: str = "embeddings", *, unbounded: bool = False) -> None:
    """Raise an error that names the argument unless embeddings are finite (B, D) and labels integer (B,).

    Values are looked at on the CPU alone: elsewhere that would wait for the device. unbounded: let pass what is finite
    though its squares are not.
    """
    if not isinstance(embeddings, Tensor) or embeddings.device.type == "cpu":
        check_finite(name, embeddings, squares=not unbounded)
    elif not embeddings.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {embeddings.dtype}")
    if embeddings.ndim != 2:
        raise ValueError(f"{name} must have shape (B, D), got {tuple(embeddings.shape)}")
    labels_name = "labels" if name == "embeddings" else f"{name}_labels"
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"{labels_name} must be an integer tensor, got {_kind(labels)}")
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(f"{labels_name} must have shape ({len(embeddings)},) like {name}, got {tuple(labels.shape)}")


def _kind(value: object) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else type(value).__name__


def check_indices(
    indices_tuple: tuple[Tensor, ...], rows: int, columns: int, device: torch.device
) -> tuple[Tensor, ...]:
    """Triplets (a, p, n) or pairs (a1, p, a2, n) as int64 on `device`; raises ValueError naming what does not fit.

    Anchors index the rows, the others the columns. Ranges are checked on the CPU alone.
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


def as_triplets(indices_tuple: tuple[Tensor, ...], labels: Tensor) -> Indices:
    """(anchors, positives, negatives), (T,) each, from triplets or from the pairs of a miner."""
    indices = check_indices(indices_tuple, len(labels), len(labels), labels.device)
    if len(indices) == 4:
        a1, positives, a2, negatives = indices
        pair, other = (a1[:, None] == a2[None, :]).nonzero(as_tuple=True)
        indices = (a1[pair], positives[pair], negatives[other])
    return cast(Indices, indices)


# ---- those of the catalogue


def names() -> list[str]:
    """Every triplet loss of the catalogue, in the order of the reference: those that have a force field.

    Example:
        >>> from dmlcore import losses
        >>> losses.names()[:4]
        ['hoffer', 'ranking', 'facenet', 'facenet_mined']
    """
    return [name for name, entry in LOSSES.items() if isinstance(entry, TripletFormula)]


def formula(name: str) -> TripletFormula:
    """Title, LaTeX, source, hyper-parameters and pure function of a triplet loss.

    Raises: KeyError that lists the known names.

    Example:
        >>> from dmlcore import losses
        >>> losses.formula("ranking").latex
        'd_{ap}-d_{an}'
    """
    entry = LOSSES[name]
    if not isinstance(entry, TripletFormula):
        raise KeyError(f"{name} is a loss of batches, without a force field; triplet losses: {', '.join(names())}")
    return entry


def create(name: str, **hyper: Any) -> TripletLoss:
    """The triplet loss as a module, on batches and, as `core`, `raw` and `clamped`, on points.

    hyper: the loss's own parameters, its margin (m or m1), the upper clamp m2 (None or inf = open), and
    reduction = "mean_valid" | "mean_nonzero" | "mean_raw", as `TripletLoss` says.

    Shapes: forward(embeddings (B, D), labels (B,), indices_tuple=None) -> scalar; points (..., D) x3 -> (...).
    Raises: KeyError, TypeError or ValueError naming the culprit.
    Source: that of each loss, `formula(name).source`.

    Example, with three of eight triplets above 0, which are 0.5, 0.5 and 1.5:
        >>> import torch
        >>> from dmlcore import losses
        >>> embeddings, labels = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
        >>> losses.create("ranking", m=0.5)(embeddings, labels)
        tensor(0.3125)
        >>> losses.create("ranking", m=0.5, reduction="mean_nonzero")(embeddings, labels)
        tensor(0.8333)
        >>> losses.create("ranking", q=1)
        Traceback (most recent call last):
        TypeError: ranking has no hyper-parameter q; it has: m, m2
    """
    return TripletLoss(formula(name), **hyper)
