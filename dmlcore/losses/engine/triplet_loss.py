"""PyTorch module for all triplet losses on batches, with margin, clamp window, reduction and index tuples."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from dmlcore.catalogue import FROM_DATA
from dmlcore.geometry import Triplet
from dmlcore.geometry.batches import Index, LossInputs, check_indices, full_precision, read_inputs
from dmlcore.geometry.margins import margin_from_data
from dmlcore.geometry.triplet import FLOOR
from dmlcore.losses.engine import fused, gpu
from dmlcore.losses.engine.entangled import entangled_mean
from dmlcore.losses.engine.formula import LOSSES, TripletFormula, check_points
from dmlcore.losses.engine.table import (
    Blocks,
    Counts,
    Indices,
    Window,
    given_blocks,
    mean_pair_distance,
    pair_tables,
    reference_blocks,
    table_energy,
    valid_blocks,
)

Reduction = Literal["mean_valid", "mean_nonzero", "mean_raw", "entangled"]
REDUCTIONS: tuple[Reduction, ...] = ("mean_valid", "mean_nonzero", "mean_raw", "entangled")


class TripletLoss(nn.Module):
    """Triplet loss of the catalogue, defined on points (`core`, `raw`, `clamped`) and on batches (`forward`).

    The core is the value of the loss formula. Margin and clamp give the energies raw = core + margin and clamped =
    min(m2, max(0, raw)). A triplet is active, that is, has a gradient, if 0 < raw < m2. A batch has T valid triplets: a
    and p are two samples of one class, n is of another. After a forward pass `counts` holds the numbers of valid,
    nonzero and active triplets.

    Points have shape (..., D) and are broadcast to energies (...). `forward` maps embeddings (B, D) and labels (B,) to
    a scalar.

    Args:
        formula: Catalogue entry of the loss.
        reduction: "mean_valid" divides the sum of the clamped energies by T, "mean_nonzero" divides it by the number of
            energies above 0, and "mean_raw" is the mean of the raw energies, without a clamp. "entangled" is the mean
            over pairs (a, p) of log(1 + sum_n exp(raw)), see `entangled_mean`, without a clamp.
        hyper: Hyper-parameters of the loss. With the margin "data" the first batch sets it (`margin_from_data`), and
            the state dict stores it; before, energies at points are NaN.

    Raises:
        TypeError: If the loss has no such hyper-parameter; the message names it.
        ValueError: If a value is invalid; the message names it.

    Example:
        >>> import torch
        >>> from dmlcore import losses
        >>> loss = losses.create("ranking", m=0.5, m2=1.0)
        >>> a, p, n = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> loss.core(a, p, n), loss.raw(a, p, n), loss.clamped(a, p, n)
        (tensor(-0.2500), tensor(0.2500), tensor(0.2500))
        >>> loss.raw(a, p, 4 * n), loss.clamped(a, p, 4 * n)
        (tensor(-3.5000), tensor(0.))

    Reference:
        Karaman 2021, Sec. 2.1 and 3.2.
    """

    counts = Counts.none()  # counts of the last forward pass
    pair_distance: Tensor

    def __init__(self, formula: TripletFormula, reduction: Reduction = "mean_valid", **hyper: float | str) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
        self.formula, self.reduction = formula, reduction
        self.hyper = formula.resolve(hyper)
        self._margin = self.hyper[formula.margin.name] if formula.margin else 0.0
        if self._margin == FROM_DATA:
            # mean distance within classes in the first batch, which determines the margin; infinite before that batch
            self.register_buffer("pair_distance", torch.tensor(math.inf, dtype=torch.float64))
            self._read_distance: tuple[Tensor, int, float] | None = None
        self.m2 = float(self.hyper[formula.clamp.to or "m2"])
        self._own = {k: self.hyper[k] for k in formula.own}
        self.floor = FLOOR if math.isinf(self.m2) or not self.clamps else 0.0

    @property
    def margin(self) -> float:
        """Margin of the energy; NaN until the first batch if it is chosen from the data."""
        if self._margin != FROM_DATA:
            return float(self._margin)
        d = self._known_distance()
        if math.isinf(d) or not (self.formula.margin and self.formula.margin.exponents):
            return math.nan
        return margin_from_data(d, *self.formula.margin.exponents(self.hyper))

    def chosen_margin(self) -> dict[str, float]:
        """Return the margin chosen from the data and the mean distance that determines it; {} for a given margin."""
        return {} if self._margin != FROM_DATA else {"margin": self.margin, "pair_distance": self._known_distance()}

    def _known_distance(self) -> float:
        """Return `pair_distance` as a number, which is read from the device only if it has changed."""
        tensor, read = self.pair_distance, self._read_distance
        if read is None or read[0] is not tensor or read[1] != tensor._version:
            self._read_distance = read = tensor, tensor._version, float(tensor)
        return read[2]

    def _choose_margin(self, distances: Tensor, blocks: Blocks) -> None:
        """Set the margin from the mean distance of the pairs (a, p) of a batch; a batch without pairs changes nothing.

        Raises:
            ValueError: If the positives coincide.
        """
        d = mean_pair_distance(distances.detach(), blocks)
        if d == 0:
            raise ValueError(
                f"{self.formula.name}: the positives of the first batch coincide, so a margin from the data does not "
                "exist; give a number"
            )
        self.pair_distance.fill_(d)

    @property
    def clamps(self) -> bool:
        """True if the reduction clamps energies to [0, m2]; otherwise every triplet has a gradient."""
        return self.reduction in ("mean_valid", "mean_nonzero")

    @property
    def difference_window(self) -> tuple[float, float] | None:
        """Pair (m, m2) if the loss is active exactly for 0 < d_ap - d_an + m < m2; None for any other loss."""
        return (self.margin, self.m2) if self.formula.difference else None

    def core(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the value (...) of the loss formula at points (..., D), without margin and clamp."""
        return self._energy(Triplet.of_points(*check_points(anchor, positive, negative), floor=self.floor))

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the energy (...) at points (..., D), including the margin, before the clamp.

        The energy is +inf at distance 0 if the push diverges there and m2 is finite.
        """
        return self.core(anchor, positive, negative) + self.margin

    def raw_of(self, triplet: Triplet) -> Tensor:
        """Compute the energy, including the margin, before the clamp, from edge lengths and squared norms."""
        return self._energy(triplet) + self.margin

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the clamped energy min(m2, max(0, raw)), shape (...), at points (..., D).

        The gradient is nonzero only for 0 < raw < m2.
        """
        raw = self.raw(anchor, positive, negative)
        active = (raw > 0) & (raw < self.m2)
        return torch.where(active, raw, raw.detach().clamp(0.0, self.m2))

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Index | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """Compute the scalar loss of a batch; a batch without triplets has loss 0 and zero gradients.

        Args:
            embeddings: Shape (B, D), floating-point.
            labels: Shape (B,), integers; may be None if `indices_tuple` is given.
            indices_tuple: None for all valid triplets; (anchors, positives, negatives), each of shape (T,); or the
                pairs (anchors1, positives, anchors2, negatives) of a miner, which are joined on equal anchors.
            ref_emb: Embeddings (R, D) from which positives and negatives are taken; None for the batch itself. The
                distances between all B + R samples are held in memory, (B + R)^2 numbers.
            ref_labels: Labels of `ref_emb`, shape (R,).

        Raises:
            TypeError: If an argument has the wrong type or dtype; the message names it.
            ValueError: If an argument is missing or has an invalid shape or value; the message names it.
        """
        batch = read_inputs(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        formula = self._fused_formula(batch)
        if formula is not None:
            labels, window = cast(Tensor, batch.labels), self._window()
            energy = fused.fused_energy(batch.embeddings, labels, formula, window, lambda: self._table_energy(batch))
            return self._reduce(*energy)
        points = batch.embeddings if batch.reference is None else torch.cat([batch.embeddings, batch.reference])
        return self._of_blocks(*pair_tables(points), self._blocks(batch))

    def of_tables(self, distances: Tensor, norms: Tensor, labels: Tensor, indices_tuple: Index | None = None) -> Tensor:
        """Compute the scalar loss from the distances (B, B) and squared norms (B,) that `table.pair_tables` returns.

        The gradient with respect to the distances shows which pairs pull (same class) and which push (different
        classes).
        """
        indices = None if indices_tuple is None else check_indices(indices_tuple, len(norms), len(norms), norms.device)
        return self._of_blocks(distances, norms, self._blocks(LossInputs(norms, labels, None, None, indices)))

    def _blocks(self, batch: LossInputs) -> Blocks:
        """Return the function that yields blocks of the listed triplets, or of all valid ones if none are listed."""
        device, size = batch.embeddings.device, len(batch.embeddings)
        if batch.indices is not None:
            a, p, n = list_triplets(batch.indices)
            shift = 0 if batch.reference is None else size  # positions of reference samples follow those of the batch
            return lambda _: given_blocks((a, p + shift, n + shift))
        labels, column_labels = cast(Tensor, batch.labels), cast(Tensor, batch.column_labels)
        if batch.reference is not None:
            return lambda _: reference_blocks(labels, column_labels, device)
        symmetric = self.formula.symmetric
        # sorting was not measured on accelerators
        separable = self.formula.separable and device.type == "cpu"
        return lambda ranked: valid_blocks(labels, symmetric, device, ranked and separable)

    def _fused_formula(self, batch: LossInputs) -> fused.FusedFormula | None:
        """Return the formula for the fused kernels, or None if this batch needs the tables."""
        needs_tables = batch.indices is not None or batch.reference is not None or self.reduction == "entangled"
        if needs_tables or not gpu.is_supported(batch.embeddings) or self._needs_margin():
            return None
        return fused.translate(self.formula.core, self._own, self.floor, self.formula.symmetric)

    def _needs_margin(self) -> bool:
        return self._margin == FROM_DATA and math.isinf(self._known_distance())

    def _window(self) -> Window:
        return Window(self.margin, self.m2, clamped=self.clamps)

    def _of_blocks(self, distances: Tensor, norms: Tensor, blocks: Blocks) -> Tensor:
        if self._needs_margin():
            self._choose_margin(distances, blocks)
        if self.reduction == "entangled":
            value, self.counts = entangled_mean(distances, norms, blocks, self._energy, self.margin, self.floor)
            return value
        return self._reduce(*table_energy(distances, norms, blocks, self._energy, self._window(), self.floor))

    def _table_energy(self, batch: LossInputs) -> tuple[Tensor, Counts]:
        """Return the sum of the energies of all valid triplets of a batch, and their counts, without fused kernels."""
        tables = pair_tables(batch.embeddings)
        return table_energy(*tables, self._blocks(batch), self._energy, self._window(), self.floor)

    def _reduce(self, total: Tensor, counts: Counts) -> Tensor:
        """Record the counts and divide the sum of the energies as the reduction defines."""
        self.counts = counts
        divisor = self.counts.tally[1 if self.reduction == "mean_nonzero" else 0]
        return total / divisor.clamp(min=1)

    def extra_repr(self) -> str:
        """Return the name, hyper-parameters and reduction for `repr`."""
        return ", ".join([self.formula.name, *(f"{k}={v}" for k, v in self.hyper.items()), self.reduction])

    def _energy(self, t: Triplet) -> Tensor:
        return self.formula.core(t, **self._own)


def list_triplets(indices: Index) -> Indices:
    """Return index tensors (anchors, positives, negatives) of shape (T,) from triplets or pairs.

    Pairs (a1, p, a2, n) are joined where a1 = a2.
    """
    if len(indices) == 3:
        return indices
    a1, positives, a2, negatives = indices
    a2, order = a2.sort(stable=True)
    first, last = (torch.searchsorted(a2, a1, right=right) for right in (False, True))
    pair = torch.arange(len(a1), device=a1.device).repeat_interleave(last - first)
    ends = (last - first).cumsum(0)
    other = order[torch.arange(len(pair), device=a1.device) + (last - ends)[pair]]
    return a1[pair], positives[pair], negatives[other]


# ---- entries of the catalogue


def names() -> list[str]:
    """Return the names of all triplet losses in catalogue order.

    Example:
        >>> from dmlcore import losses
        >>> losses.names()[:4]
        ['hoffer', 'ranking', 'facenet', 'facenet_mined']
    """
    return [name for name, entry in LOSSES.items() if isinstance(entry, TripletFormula)]


def formula(name: str) -> TripletFormula:
    """Return the catalogue entry of a triplet loss: title, LaTeX, source, hyper-parameters and pure function.

    Args:
        name: Name of a triplet loss.

    Raises:
        KeyError: If the name is unknown; the message lists the known names.

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
    """Create a triplet loss as a module that evaluates batches and single points.

    Args:
        name: Name of a triplet loss.
        hyper: Hyper-parameters of the loss: those of its formula, its margin (m or m1), the upper clamp m2 (None or inf
            for no upper clamp), and `reduction`, see `TripletLoss`.

    Returns:
        Module whose `forward(embeddings, labels, indices_tuple=None)` maps embeddings (B, D) and labels (B,) to a
        scalar.

    Raises:
        KeyError: If the name is unknown.
        TypeError: If the loss has no such hyper-parameter.
        ValueError: If a value is invalid.

    Example:
        Three of the eight triplets have an energy above 0, namely 0.5, 0.5 and 1.5.

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

    Reference:
        `formula(name).source` cites the source of each loss.
    """
    return TripletLoss(formula(name), **hyper)
