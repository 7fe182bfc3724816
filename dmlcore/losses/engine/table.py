"""Sums of a triplet energy over a batch, on (positive pair) x (negative) tables instead of gathered triplets.

Every triplet loss is a function of edge lengths and squared norms, so a batch of B embeddings needs one (B, B) distance
table; energies are evaluated block by block, and only the gradient with respect to that table is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dmlcore.geometry import Triplet
from dmlcore.losses.engine.distances import euclidean, weighted_gradients
from dmlcore.losses.engine.ranked import ranked_sum

DENSE = 512  # samples up to which an accelerator evaluates all B^3 triples rather than wait for the labels
DENSE_BLOCK = 1 << 23  # of them at once: 32 MB per float32 intermediate
BLOCK = 1 << 17  # triplets evaluated at once: half a megabyte per float32 intermediate, so that they stay in the cache
RANKED = 12, 3000  # samples of a class and triplets of an anchor from which sorting its negatives is cheaper

Energy = Callable[[Triplet], Tensor]
Indices = tuple[Tensor, Tensor, Tensor]
Index = tuple[Tensor, ...]


class Counts:
    """Terms of a batch (triplets, pairs): valid (or given), with a loss above 0, and with a gradient (0 < raw < m2).

    They stay on the device until one of them is read.
    """

    def __init__(self, tally: Tensor) -> None:
        self.tally = tally  # (3,) int64
        self._read: tuple[int, int, int] | None = None

    @classmethod
    def of(cls, valid: Tensor, nonzero: Tensor, active: Tensor) -> Counts:
        """From three scalars."""
        return cls(torch.stack([valid, nonzero, active]))

    @classmethod
    def none(cls) -> Counts:
        """Before the first batch."""
        return cls(torch.zeros(3, dtype=torch.int64))

    @property
    def numbers(self) -> tuple[int, int, int]:
        """valid, nonzero, active; waits for the device."""
        if self._read is None:
            valid, nonzero, active = self.tally.tolist()
            self._read = valid, nonzero, active
        return self._read

    @property
    def valid(self) -> int:
        """All terms."""
        return self.numbers[0]

    @property
    def nonzero(self) -> int:
        """Terms above 0."""
        return self.numbers[1]

    @property
    def active(self) -> int:
        """Terms with a gradient."""
        return self.numbers[2]

    def shares(self) -> dict[str, float | Tensor]:
        """Shares of the terms that are "nonzero" and "active", of a batch that has any.

        On a GPU these are tensors, 0 / 0 for a batch without terms, so that nobody waits for the device.
        """
        if self.tally.device.type != "cpu":
            nonzero, active = self.tally[1:].double() / self.tally[0]
            return {"nonzero": nonzero, "active": active}
        return {"nonzero": self.nonzero / self.valid, "active": self.active / self.valid} if self.valid else {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self.numbers == other.numbers

    def __hash__(self) -> int:
        return hash(self.numbers)

    def __repr__(self) -> str:
        return "Counts(valid={}, nonzero={}, active={})".format(*self.numbers)


@dataclass(frozen=True)
class Window:
    """The clamp [0, m2] of raw = core + margin; `clamped` False leaves raw as it is (for the mean_raw reduction)."""

    margin: float
    m2: float
    clamped: bool


@dataclass(frozen=True)
class TripletBlock:
    """Triplets evaluated together: where each edge and norm stands in the tables, in shapes that broadcast."""

    edges: dict[str, Index]  # "ap", "an", "pn" -> indices into the (B, B) distances
    vertices: dict[str, Index]  # "a", "p", "n" -> indices into the (B,) squared norms
    valid: Tensor  # bool, broadcasts to the block; False where a pair is a point with itself
    repeats: bool  # whether an edge may occur twice in one index
    copies: int = 1  # 2 where (a, p, n) also stands for (p, a, n)
    ranked: bool = False  # whether to sort the negatives rather than evaluate each triplet


def pair_tables(embeddings: Tensor) -> tuple[Tensor, Tensor]:
    """Distances (B, B) and squared norms (B,) of embeddings (B, D): all a triplet loss may depend on."""
    return euclidean(embeddings, embeddings), embeddings.square().sum(1)


def table_energy(
    distances: Tensor,
    norms: Tensor,
    labels: Tensor,
    energy: Energy,
    window: Window,
    floor: float,
    triplets: Indices | None,
    symmetric: bool = False,
    separable: bool = False,
) -> tuple[Tensor, Counts]:
    """Sum of the energies of all valid triplets (or of the given ones) and their counts.

    distances (B, B) and norms (B,) of `pair_tables`, labels (B,); triplets: None, or indices of anchors, positives,
    negatives, (T,) each; symmetric: whether the energy of (p, a, n) is that of (a, p, n), which halves the work;
    separable: whether `ranked.ranked_sum` may sum it.
    """
    if triplets is not None:
        blocks = given_blocks(triplets)
    elif labels.device.type != "cpu" and len(labels) <= DENSE:
        blocks = dense_blocks(labels, symmetric)
    else:
        # Sorting was measured on processors only.
        separable &= labels.device.type == "cpu"
        blocks = valid_blocks(labels.cpu(), symmetric, distances.device, separable)
    tally = torch.zeros(3, dtype=torch.int64, device=distances.device)
    total = _TableSum.apply(distances, norms, blocks, energy, window, floor, tally)
    return total, Counts(tally)


def valid_blocks(
    labels: Tensor, symmetric: bool = False, device: torch.device | str | None = None, separable: bool = False
) -> Iterator[TripletBlock]:
    """All (a, p, n) with a != p of one class and n of another; classes of equal size share a block.

    labels (B,), best on the CPU: their layout decides the shapes; device: of the indices. A block has shape
    (classes, anchors, positives, negatives); of symmetric energies only pairs in one order are evaluated, and count
    twice; of separable ones large classes are ranked.
    """
    device = labels.device if device is None else device
    classes, class_of, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    # Samples class after class: class c lies at starts[c] .. starts[c] + sizes[c].
    by_class = torch.argsort(class_of, stable=True)
    starts = sizes.cumsum(0) - sizes
    for size in sizes.unique().tolist():
        others = len(labels) - size
        if size < 2 or others == 0:
            continue
        same_size = (sizes == size).nonzero()[:, 0]
        ranked = separable and size >= RANKED[0] and size * others >= RANKED[1]

        def held(pairs: int, others: int = others, ranked: bool = ranked) -> int:
            """Numbers at once for an anchor of so many pairs."""
            return pairs + others if ranked else pairs * others

        per_block = max(1, BLOCK // (size * held(size)))
        # Several small classes share a block; a large class is cut into anchors first..last.
        for chosen in same_size.split(per_block):
            members = by_class[starts[chosen][:, None] + torch.arange(size, device=labels.device)]
            negatives = (classes[chosen][:, None] != labels).nonzero()[:, 1].view(len(chosen), others)
            first = 0
            while first < size - symmetric:
                low = first + 1 if symmetric else 0
                last = min(size, first + max(1, BLOCK // held(size - low)))
                rank = torch.arange(size, device=labels.device)
                anchor, positive = rank[first:last, None, None], rank[None, low:, None]
                a, p, n = members[:, first:last, None, None], members[:, None, low:, None], negatives[:, None, None, :]
                a, p, n = (index.to(device, non_blocking=True) for index in (a, p, n))
                valid = (positive > anchor if symmetric else positive != anchor)[None]
                yield TripletBlock(
                    {"ap": (a, p), "an": (a, n), "pn": (p, n)},
                    {"a": (a,), "p": (p,), "n": (n,)},
                    valid.to(device, non_blocking=True),
                    False,
                    1 + symmetric,
                    ranked,
                )
                first = last


def dense_blocks(labels: Tensor, symmetric: bool = False) -> Iterator[TripletBlock]:
    """All (a, p, n) of a batch, those masked that are no triplet: more work, but shapes that no label decides.

    On an accelerator, where waiting for the labels would cost more than a few million idle entries.
    """
    size = len(labels)
    each = torch.arange(size, device=labels.device)
    same = labels[:, None] == labels
    positive = same & (each[:, None] < each if symmetric else each[:, None] != each)
    rows = max(1, DENSE_BLOCK // max(size * size, 1))
    for anchors in each.split(rows):
        a, p, n = anchors[:, None, None], each[None, :, None], each[None, None, :]
        valid = positive[anchors][:, :, None] & ~same[anchors][:, None, :]
        yield TripletBlock(
            {"ap": (a, p), "an": (a, n), "pn": (p, n)}, {"a": (a,), "p": (p,), "n": (n,)}, valid, False, 1 + symmetric
        )


def given_blocks(triplets: Indices) -> Iterator[TripletBlock]:
    """The listed triplets, indices (T,) each."""
    for a, p, n in zip(*(x.split(BLOCK) for x in triplets), strict=True):
        valid = torch.ones_like(a, dtype=torch.bool)
        yield TripletBlock({"ap": (a, p), "an": (a, n), "pn": (p, n)}, {"a": (a,), "p": (p,), "n": (n,)}, valid, True)


class _Leaves:
    """The entries of both tables that the energy of one block asks for, as leaves of a small graph."""

    def __init__(self, distances: Tensor, norms: Tensor, block: TripletBlock) -> None:
        self.taken: list[tuple[bool, Index, Tensor]] = []
        self._tables, self._block = (norms, distances), block

    def edge(self, pair: str) -> Tensor:
        return self._take(True, self._block.edges[pair])

    def square_norm(self, vertex: str) -> Tensor:
        return self._take(False, self._block.vertices[vertex])

    def _take(self, is_edge: bool, index: Index) -> Tensor:
        leaf = self._tables[is_edge][index].requires_grad_()
        self.taken.append((is_edge, index, leaf))
        return leaf


class _TableSum(torch.autograd.Function):
    """Sum of window(energy) over the blocks; the gradient with respect to both tables is gathered on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        distances: Tensor,
        norms: Tensor,
        blocks: Iterator[TripletBlock],
        energy: Energy,
        window: Window,
        floor: float,
        tally: Tensor,
    ) -> Tensor:
        tables = norms.detach(), distances.detach()
        gradients = torch.zeros_like(norms), torch.zeros_like(distances)
        total = torch.zeros((), dtype=torch.float64, device=norms.device)
        for block in blocks:
            leaves = _Leaves(tables[1], tables[0], block)
            sums, grads = (_ranked if block.ranked else _listed)(leaves, block, energy, window, floor, tally)
            total += sums
            for (is_edge, index, _), grad in zip(leaves.taken, grads, strict=True):
                if block.repeats or not is_edge:  # a negative serves several classes of one block
                    gradients[is_edge].index_put_(index, grad, accumulate=True)
                else:
                    gradients[is_edge][index] += grad
        ctx.save_for_backward(*gradients)
        return total.to(norms.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        norm_gradient, distance_gradient = ctx.saved_tensors
        return grad * distance_gradient, grad * norm_gradient, None, None, None, None, None


BlockSum = tuple[Tensor, tuple[Tensor, ...]]  # the sum over one block, and its gradients by the leaves taken


def _listed(
    leaves: _Leaves, block: TripletBlock, energy: Energy, window: Window, floor: float, tally: Tensor
) -> BlockSum:
    """Every triplet of a block evaluated; adds its counts to the tally."""
    with torch.enable_grad():
        raw = energy(Triplet(leaves.edge, leaves.square_norm, floor)) + window.margin
    # raw is fresh memory that no backward reads, so it may be masked and clamped in place.
    values = raw.detach().masked_fill_(~block.valid, -torch.inf)
    active = values > 0
    if window.m2 < torch.inf:
        active &= values < window.m2
    weight = (active if window.clamped else block.valid.expand_as(values)).to(values.dtype)
    if block.copies > 1:
        weight *= block.copies
    total = block.copies * values.where(block.valid, 0.0).sum() if not window.clamped else None
    clamped = values.clamp_(0.0, window.m2)
    if total is None:
        total = block.copies * clamped.sum()
    tally[0] += block.copies * block.valid.count_nonzero() * (values.numel() // max(block.valid.numel(), 1))
    tally[1] += block.copies * clamped.count_nonzero()
    tally[2] += block.copies * active.count_nonzero()
    return total, weighted_gradients([raw], [leaf for *_, leaf in leaves.taken], [weight])


def _ranked(
    leaves: _Leaves, block: TripletBlock, energy: Energy, window: Window, floor: float, tally: Tensor
) -> BlockSum:
    """The same from sorted negatives, for an energy that is separable."""
    ap, an = leaves.edge("ap"), leaves.edge("an")

    def raw(ap: Tensor, an: Tensor) -> Tensor:
        return energy(Triplet({"ap": ap, "an": an}.__getitem__, leaves.square_norm, floor)) + window.margin

    total, counts, grads = ranked_sum(raw, ap, an, block.valid, window.m2, window.clamped)
    tally += counts
    return total, grads
