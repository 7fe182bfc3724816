"""Sum of a triplet energy over a batch from tables of pair distances, without gathering embeddings per triplet.

Every triplet loss is a function of edge lengths and squared norms, so a batch of B embeddings needs one (B, B) distance
table. Energies are evaluated block by block, and only the gradients with respect to the tables are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dmlcore.geometry import Triplet
from dmlcore.geometry.batches import Index
from dmlcore.losses.engine.distances import euclidean, weighted_gradients
from dmlcore.losses.engine.ranked import ranked_sum

# maximum number of triplets per block on a CPU: half a megabyte per float32 intermediate, which fits the cache
BLOCK = 1 << 17
# the same on an accelerator, where few large kernels are faster: 8 MB per float32 intermediate
DEVICE_BLOCK = 1 << 21
RANKED = 12, 3000  # minimum samples per class and minimum triplets per anchor for which sorting the negatives is faster

Energy = Callable[[Triplet], Tensor]
Blocks = Callable[[bool], "Iterator[TripletBlock]"]
Indices = tuple[Tensor, Tensor, Tensor]


class Counts:
    """Numbers of terms (triplets or pairs) of a batch: all valid terms, those above 0, and those with a gradient.

    The numbers stay on the device until one of them is read.
    """

    def __init__(self, tally: Tensor) -> None:
        self.tally = tally  # (3,) int64
        self._read: tuple[int, int, int] | None = None

    @classmethod
    def of(cls, valid: Tensor, nonzero: Tensor, active: Tensor) -> Counts:
        """Create counts from three scalar tensors."""
        return cls(torch.stack([valid, nonzero, active]))

    @classmethod
    def none(cls) -> Counts:
        """Create zero counts, the state before the first batch."""
        return cls(torch.zeros(3, dtype=torch.int64))

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Counts as integers (valid, nonzero, active). Reading this property synchronises with the device."""
        if self._read is None:
            valid, nonzero, active = self.tally.tolist()
            self._read = valid, nonzero, active
        return self._read

    @property
    def valid(self) -> int:
        """Number of valid terms."""
        return self.numbers[0]

    @property
    def nonzero(self) -> int:
        """Number of terms above 0."""
        return self.numbers[1]

    @property
    def active(self) -> int:
        """Number of terms with a nonzero gradient."""
        return self.numbers[2]

    def shares(self) -> dict[str, float | Tensor]:
        """Return the fractions of "nonzero" and "active" terms among all valid terms.

        On the CPU a batch without terms gives an empty dictionary. On other devices the fractions are tensors, NaN for
        a batch without terms, so that the call does not synchronise.
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
    """Clamp window [0, m2] of the energy raw = core + margin.

    `clamped` is False if energies are not clamped (reduction "mean_raw").
    """

    margin: float
    m2: float
    clamped: bool

    def active(self, raw: Tensor) -> Tensor:
        """Return a mask of the energies strictly inside the window, where the clamped energy has a gradient."""
        return (raw > 0) & (raw < self.m2) if self.m2 < torch.inf else raw > 0


@dataclass(frozen=True)
class TripletBlock:
    """Triplets that are evaluated together, given by indices into the tables of distances and squared norms.

    The indices broadcast to the shape of the block.
    """

    edges: dict[str, Index]  # maps "ap", "an", "pn" to indices into the (B, B) distances
    vertices: dict[str, Index]  # maps "a", "p", "n" to indices into the (B,) squared norms
    valid: Tensor  # bool mask of valid triplets, broadcasts to the block
    repeats: bool  # True if the index tensors may list a pair of samples twice
    copies: int = 1  # 2 if each triplet (a, p, n) also represents (p, a, n)
    ranked: bool = False  # True to sort the negatives instead of evaluating each triplet


def pair_tables(embeddings: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distances (B, B) and squared norms (B,) of embeddings (B, D), the inputs of all triplet losses."""
    return euclidean(embeddings, embeddings), embeddings.square().sum(1)


def table_energy(
    distances: Tensor, norms: Tensor, blocks: Blocks, energy: Energy, window: Window, floor: float
) -> tuple[Tensor, Counts]:
    """Return the sum of the energies of the triplets in `blocks`, and the counts of these triplets.

    Args:
        distances: Distances from `pair_tables`, shape (B, B).
        norms: Squared norms from `pair_tables`, shape (B,).
        blocks: Function that returns the blocks. Its argument is True if large classes may be summed by sorting
            (`ranked.ranked_sum`).
        energy: Energy as a function of a `Triplet`, without the margin.
        window: Margin and clamp.
        floor: Distance below which diverging forces are frozen, see `Triplet`.
    """
    tally = torch.zeros(3, dtype=torch.int64, device=distances.device)
    if torch.is_grad_enabled() and (distances.requires_grad or norms.requires_grad):
        return _TableSum.apply(distances, norms, blocks, energy, window, floor, tally), Counts(tally)
    return _sum_blocks(distances, norms, blocks, energy, window, floor, tally, None), Counts(tally)


def mean_pair_distance(distances: Tensor, blocks: Blocks) -> float:
    """Return the mean distance of the distinct pairs (a, p) of the triplets in `blocks`; infinity without triplets."""
    pairs = [torch.empty(0, dtype=torch.int64, device=distances.device)]
    for block in blocks(False):
        a, p = block.edges["ap"]
        pair = a * len(distances) + p
        valid = block.valid if block.repeats else block.valid.any(-1, keepdim=True)
        pairs.append(pair[valid.expand_as(pair)])
    listed = torch.unique(torch.cat(pairs))
    return float(distances.flatten()[listed].double().mean()) if len(listed) else float("inf")


def block_size(device: torch.device) -> int:
    """Return the maximum number of triplets per block on a device."""
    return BLOCK if device.type == "cpu" else DEVICE_BLOCK


def valid_blocks(
    labels: Tensor, symmetric: bool = False, device: torch.device | str | None = None, separable: bool = False
) -> Iterator[TripletBlock]:
    """Yield all triplets (a, p, n) with a and p two samples of one class and n of another class.

    A block has shape (classes, anchors, positives, negatives) and holds classes of equal size.

    Args:
        labels: Shape (B,). Labels on another device are copied to the CPU, because their values determine the shapes of
            the blocks.
        symmetric: True to evaluate each pair (a, p) in one order only and count it twice.
        device: Device of the indices; None for the device of the labels.
        separable: True to sum large classes by sorting the negatives.
    """
    device = torch.device(labels.device if device is None else device)
    labels, limit = labels.cpu(), block_size(device)
    classes, class_of, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    # Sample indices sorted by class; class c occupies positions starts[c] to starts[c] + sizes[c] - 1.
    by_class = torch.argsort(class_of, stable=True)
    starts = sizes.cumsum(0) - sizes
    for size in sizes.unique().tolist():
        others = len(labels) - size
        if size < 2 or others == 0:
            continue
        same_size = (sizes == size).nonzero()[:, 0]
        ranked = separable and size >= RANKED[0] and size * others >= RANKED[1]

        def values_per_anchor(pairs: int, others: int = others, ranked: bool = ranked) -> int:
            """Return how many values an anchor with `pairs` positives needs in memory at the same time."""
            return pairs + others if ranked else pairs * others

        per_block = max(1, limit // (size * values_per_anchor(size)))
        # Several small classes share a block; a large class is split into ranges of anchors, first to last - 1.
        for chosen in same_size.split(per_block):
            members = by_class[starts[chosen][:, None] + torch.arange(size)]
            negatives = (classes[chosen][:, None] != labels).nonzero()[:, 1].view(len(chosen), others)
            first = 0
            while first < size - symmetric:
                low = first + 1 if symmetric else 0
                last = min(size, first + max(1, limit // values_per_anchor(size - low)))
                rank = torch.arange(size)
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


def reference_blocks(labels: Tensor, reference_labels: Tensor, device: torch.device) -> Iterator[TripletBlock]:
    """Yield all triplets of an anchor in the batch with a positive and a negative in the reference.

    The tables cover the batch followed by the reference: reference sample r has index B + r.
    """
    labels, reference_labels = labels.cpu(), reference_labels.cpu()
    for label in labels.unique():
        anchors = (labels == label).nonzero()[:, 0]
        positives, negatives = (
            len(labels) + mask.nonzero()[:, 0].to(device)
            for mask in (reference_labels == label, reference_labels != label)
        )
        for chunk in anchors.split(max(1, block_size(device) // max(len(positives) * len(negatives), 1))):
            a, p, n = chunk.to(device)[:, None, None], positives[None, :, None], negatives[None, None, :]
            valid = torch.ones(1, 1, 1, dtype=torch.bool, device=device)
            yield TripletBlock(
                {"ap": (a, p), "an": (a, n), "pn": (p, n)}, {"a": (a,), "p": (p,), "n": (n,)}, valid, False
            )


def given_blocks(triplets: Indices) -> Iterator[TripletBlock]:
    """Yield the triplets (a, p, n) given by three index tensors of shape (T,), in blocks."""
    for a, p, n in zip(*(x.split(block_size(x.device)) for x in triplets), strict=True):
        valid = torch.ones_like(a, dtype=torch.bool)
        yield TripletBlock({"ap": (a, p), "an": (a, n), "pn": (p, n)}, {"a": (a,), "p": (p,), "n": (n,)}, valid, True)


class _Leaves:
    """Table entries that the energy of one block reads, recorded as leaves of a small autograd graph."""

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
    """Sum of an energy over blocks; the forward pass also computes the gradients with respect to both tables."""

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
        if torch.is_grad_enabled():  # a second derivative is requested
            distance_gradient, norm_gradient = _differentiable_gradients(distances, norms, *ctx.arguments)
        return grad * distance_gradient, grad * norm_gradient, None, None, None, None, None


def _differentiable_gradients(
    distances: Tensor, norms: Tensor, blocks: Blocks, energy: Energy, window: Window, floor: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients with respect to both tables, with a graph for second derivatives.

    The graph holds all triplets at once, so memory is not limited to one block.
    """
    # make both tables part of the graph, even if only one requires a gradient
    distances, norms = distances * 1, norms * 1
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
    """Return the sum of the energies over all blocks, and add the numbers of triplets to `tally` (see `Counts`).

    The gradients with respect to norms and distances are added to `gradients` unless it is None.
    """
    total = torch.zeros((), dtype=torch.float64, device=norms.device)
    for block in blocks(True):
        leaves = _Leaves(distances, norms, block, gradients is not None)
        sums, grads = (_ranked if block.ranked else _listed)(leaves, block, energy, window, floor, tally)
        total += sums
        if gradients is None:
            continue
        for (is_edge, index, _), grad in zip(leaves.taken, grads, strict=True):
            if block.repeats or not is_edge:  # norms of one sample may occur several times in a block
                gradients[is_edge].index_put_(index, grad, accumulate=True)
            else:
                gradients[is_edge][index] += grad
    return total.to(norms.dtype)


# sum over one block, and its gradients with respect to the recorded leaves
BlockSum = tuple[Tensor, tuple[Tensor, ...]]


def _listed(
    leaves: _Leaves, block: TripletBlock, energy: Energy, window: Window, floor: float, tally: Tensor
) -> BlockSum:
    """Evaluate all triplets of a block; return the sum and its gradients, and add the triplet numbers to `tally`."""
    with torch.set_grad_enabled(leaves.differentiable):
        raw = energy(Triplet(leaves.edge, leaves.square_norm, floor)) + window.margin
    # Masking and clamping in place is safe, because raw is newly allocated and the backward pass does not read it.
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
    """Sum a separable energy over a block by sorting the negatives, and add the numbers of triplets to `tally`."""
    ap, an = leaves.edge("ap"), leaves.edge("an")

    def raw(ap: Tensor, an: Tensor) -> Tensor:
        return energy(Triplet({"ap": ap, "an": an}.__getitem__, leaves.square_norm, floor)) + window.margin

    total, counts, grads = ranked_sum(raw, ap, an, block.valid, window.m2, window.clamped, leaves.differentiable)
    tally += counts
    return total, grads
