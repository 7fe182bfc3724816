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

from dmlcore.geometry import Triplet
from dmlcore.losses.engine.distances import euclidean, weighted_gradients
from dmlcore.losses.engine.ranked import ranked_sum

DENSE = 512  # samples up to which an accelerator evaluates all B^3 triples rather than wait for the labels
DENSE_BLOCK = 1 << 23  # of them at once: 32 MB per float32 intermediate
BLOCK = 1 << 17  # triplets evaluated at once: half a megabyte per float32 intermediate, so that they stay in the cache
RANKED = 12, 3000  # samples of a class and triplets of an anchor from which sorting its negatives is cheaper

Energy = Callable[[Triplet], Tensor]
Blocks = Callable[[bool], "Iterator[TripletBlock]"]
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

    def active(self, raw: Tensor) -> Tensor:
        """Return which energies lie inside the window, so that they have a gradient."""
        return (raw > 0) & (raw < self.m2) if self.m2 < torch.inf else raw > 0


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
    distances: Tensor, norms: Tensor, blocks: Blocks, energy: Energy, window: Window, floor: float
) -> tuple[Tensor, Counts]:
    """Return the sum of the energies of the triplets of `blocks`, and their counts.

    Args:
        distances: (B, B), and norms: (B,), both of `pair_tables`.
        blocks: called for the triplets; its argument tells whether large classes may be ranked (`ranked.ranked_sum`).
    """
    tally = torch.zeros(3, dtype=torch.int64, device=distances.device)
    if torch.is_grad_enabled() and (distances.requires_grad or norms.requires_grad):
        return _TableSum.apply(distances, norms, blocks, energy, window, floor, tally), Counts(tally)
    return _sum_blocks(distances, norms, blocks, energy, window, floor, tally, None), Counts(tally)


def batch_blocks(labels: Tensor, device: torch.device, symmetric: bool, ranked: bool) -> Iterator[TripletBlock]:
    """Return all valid triplets of a batch in the blocks that suit its device.

    Args:
        symmetric: the energy of (p, a, n) is that of (a, p, n), which halves the work.
        ranked: large classes may be ranked, on a CPU; on accelerators ranking was not measured.
    """
    if labels.device.type != "cpu" and len(labels) <= DENSE:
        return dense_blocks(labels, symmetric)
    return valid_blocks(labels.cpu(), symmetric, device, ranked and labels.device.type == "cpu")


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


def reference_blocks(labels: Tensor, reference_labels: Tensor, device: torch.device) -> Iterator[TripletBlock]:
    """Yield all triplets of an anchor in the batch with a positive and a negative in the reference.

    Samples of the reference come behind those of the batch: sample r of R is row B + r of the tables.
    """
    labels, reference_labels = labels.cpu(), reference_labels.cpu()
    for label in labels.unique():
        anchors = (labels == label).nonzero()[:, 0]
        positives, negatives = (
            len(labels) + mask.nonzero()[:, 0].to(device)
            for mask in (reference_labels == label, reference_labels != label)
        )
        for chunk in anchors.split(max(1, BLOCK // max(len(positives) * len(negatives), 1))):
            a, p, n = chunk.to(device)[:, None, None], positives[None, :, None], negatives[None, None, :]
            valid = torch.ones(1, 1, 1, dtype=torch.bool, device=device)
            yield TripletBlock(
                {"ap": (a, p), "an": (a, n), "pn": (p, n)}, {"a": (a,), "p": (p,), "n": (n,)}, valid, False
            )


def given_blocks(triplets: Indices) -> Iterator[TripletBlock]:
    """The listed triplets, indices (T,) each."""
    for a, p, n in zip(*(x.split(BLOCK) for x in triplets), strict=True):
        valid = torch.ones_like(a, dtype=torch.bool)
        yield TripletBlock({"ap": (a, p), "an": (a, n), "pn": (p, n)}, {"a": (a,), "p": (p,), "n": (n,)}, valid, True)


class _Leaves:
    """The entries of both tables that the energy of one block asks for, as leaves of a small graph."""

    def __init__(self, distances: Tensor, norms: Tensor, block: TripletBlock, differentiable: bool) -> None:
        self.taken: list[tuple[bool, Index, Tensor]] = []
        self.differentiable = differentiable
        self._tables, self._block = (norms, distances), block

    def edge(self, pair: str) -> Tensor:
        return self._take(True, self._block.edges[pair])

    def square_norm(self, vertex: str) -> Tensor:
        return self._take(False, self._block.vertices[vertex])

    def _take(self, is_edge: bool, index: Index) -> Tensor:
        leaf = self._tables[is_edge][index].requires_grad_(self.differentiable)
        self.taken.append((is_edge, index, leaf))
        return leaf


class _TableSum(torch.autograd.Function):
    """Sum of window(energy) over the blocks; the gradient with respect to both tables is gathered on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        distances: Tensor,
        norms: Tensor,
        blocks: Blocks,
        energy: Energy,
        window: Window,
        floor: float,
        tally: Tensor,
    ) -> Tensor:
        gradients = torch.zeros_like(norms), torch.zeros_like(distances)
        ctx.save_for_backward(distances, norms, *gradients)
        ctx.arguments = blocks, energy, window, floor
        return _sum_blocks(distances.detach(), norms.detach(), blocks, energy, window, floor, tally, gradients)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        distances, norms, norm_gradient, distance_gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients are to be differentiated again
            distance_gradient, norm_gradient = _differentiable_gradients(distances, norms, *ctx.arguments)
        return grad * distance_gradient, grad * norm_gradient, None, None, None, None, None


def _differentiable_gradients(
    distances: Tensor, norms: Tensor, blocks: Blocks, energy: Energy, window: Window, floor: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients by both tables with a graph of their own, which holds all triplets at once."""
    distances, norms = distances * 1, norms * 1  # either may be a constant
    total = (distances * 0).sum() + (norms * 0).sum()
    for block in blocks(False):

        def edge(pair: str, block: TripletBlock = block) -> Tensor:
            return distances[block.edges[pair]]

        def square_norm(vertex: str, block: TripletBlock = block) -> Tensor:
            return norms[block.vertices[vertex]]

        raw = energy(Triplet(edge, square_norm, floor)) + window.margin
        chosen = window.active(raw.detach()) & block.valid if window.clamped else block.valid.expand_as(raw)
        total = total + block.copies * raw.where(chosen, 0.0).sum()
    by_distances, by_norms = torch.autograd.grad(total, (distances, norms), create_graph=True)
    return by_distances, by_norms


def _sum_blocks(
    distances: Tensor,
    norms: Tensor,
    blocks: Blocks,
    energy: Energy,
    window: Window,
    floor: float,
    tally: Tensor,
    gradients: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """Return the sum over the blocks; add its gradients by norms and distances to `gradients`, counts to `tally`."""
    total = torch.zeros((), dtype=torch.float64, device=norms.device)
    for block in blocks(True):
        leaves = _Leaves(distances, norms, block, gradients is not None)
        sums, grads = (_ranked if block.ranked else _listed)(leaves, block, energy, window, floor, tally)
        total += sums
        if gradients is None:
            continue
        for (is_edge, index, _), grad in zip(leaves.taken, grads, strict=True):
            if block.repeats or not is_edge:  # a negative serves several classes of one block
                gradients[is_edge].index_put_(index, grad, accumulate=True)
            else:
                gradients[is_edge][index] += grad
    return total.to(norms.dtype)


BlockSum = tuple[Tensor, tuple[Tensor, ...]]  # the sum over one block, and its gradients by the leaves taken


def _listed(
    leaves: _Leaves, block: TripletBlock, energy: Energy, window: Window, floor: float, tally: Tensor
) -> BlockSum:
    """Every triplet of a block evaluated; adds its counts to the tally."""
    with torch.set_grad_enabled(leaves.differentiable):
        raw = energy(Triplet(leaves.edge, leaves.square_norm, floor)) + window.margin
    # raw is fresh memory that no backward reads, so it may be masked and clamped in place.
    values = raw.detach().masked_fill_(~block.valid, -torch.inf)
    active = window.active(values)
    total = block.copies * values.where(block.valid, 0.0).sum() if not window.clamped else None
    clamped = values.clamp_(0.0, window.m2)
    if total is None:
        total = block.copies * clamped.sum()
    tally[0] += block.copies * block.valid.count_nonzero() * (values.numel() // max(block.valid.numel(), 1))
    tally[1] += block.copies * clamped.count_nonzero()
    tally[2] += block.copies * active.count_nonzero()
    if not leaves.differentiable:
        return total, ()
    weight = (active if window.clamped else block.valid.expand_as(values)).to(values.dtype)
    if block.copies > 1:
        weight *= block.copies
    return total, weighted_gradients([raw], [leaf for *_, leaf in leaves.taken], [weight])


def _ranked(
    leaves: _Leaves, block: TripletBlock, energy: Energy, window: Window, floor: float, tally: Tensor
) -> BlockSum:
    """The same from sorted negatives, for an energy that is separable."""
    ap, an = leaves.edge("ap"), leaves.edge("an")

    def raw(ap: Tensor, an: Tensor) -> Tensor:
        return energy(Triplet({"ap": ap, "an": an}.__getitem__, leaves.square_norm, floor)) + window.margin

    total, counts, grads = ranked_sum(raw, ap, an, block.valid, window.m2, window.clamped, leaves.differentiable)
    tally += counts
    return total, grads
