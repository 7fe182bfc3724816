"""Distances within a test split: histograms for positive and negative pairs, and the distances within triplets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dmlcore import losses
from dmlcore.geometry import Triplet
from dmlcore.losses import TripletLoss
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import IDENTITY
from dmlcore.typing import Bools, Floats, Ints

Kind = Literal["hardest", "nearest", "random"]
KINDS: tuple[Kind, ...] = get_args(Kind)

BINS = 100  # number of histogram bins
# largest number of pairs to compare, all pairs of 6,300 samples; in larger splits, anchors are sampled
PAIRS = 40_000_000
TRIPLETS = 50_000  # number of random triplets
BLOCK = 2**22  # largest number of distances held in memory at a time
AT_ONCE = 2**16  # largest number of embeddings converted to double precision at a time
UNIT = 2e-3  # largest deviation of a squared norm from 1 for an embedding to count as a unit vector


@dataclass(frozen=True, eq=False)
class Triplets:
    """Triplets of embeddings.

    Holds the distances (t,) between anchor, positive and negative, and the squared norms and row indices of the three
    samples (t, 3 each).
    """

    d_ap: Floats
    d_an: Floats
    d_pn: Floats
    squares: Floats = field(repr=False)
    rows: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.d_ap)

    @property
    def violated(self) -> float:
        """Share of triplets whose negative is nearer to the anchor than the positive; NaN if there are no triplets."""
        return float((self.d_an < self.d_ap).mean()) if len(self) else float("nan")

    def active(self, loss: TripletLoss) -> Bools:
        """Return a boolean mask (t,) of the triplets at which the loss has a non-zero gradient.

        With a clamped loss these are the triplets with 0 < raw < m2, where raw is the loss before clamping. With a loss
        that is trained without clamps (see `TripletLoss.clamps`) these are all triplets.
        """
        if not loss.clamps:
            return np.ones(len(self), bool)
        edges = {"ap": self.d_ap, "an": self.d_an, "pn": self.d_pn}
        raw = loss.raw_of(
            Triplet(
                lambda pair: torch.from_numpy(edges[pair]),
                lambda vertex: torch.from_numpy(self.squares[:, "apn".index(vertex)]),
                loss.floor,
            )
        )
        active: Bools = ((raw > 0) & (raw < loss.m2)).expand(len(self)).numpy()
        return active


@dataclass(frozen=True, eq=False)
class Distances:
    """Histograms of pair distances: counts (B,) in bins with edges (B + 1,).

    Positive pairs are two samples of one class, negative pairs two samples of different classes.
    """

    edges: Floats
    positives: Ints
    negatives: Ints
    positive_mean: float
    negative_mean: float
    all_positives: bool  # True if all positive pairs were counted, False if only those of the drawn anchors
    all_negatives: bool

    @property
    def overlap(self) -> float:
        """Overlap coefficient in 0..1: area shared by both normalised histograms; NaN if one is empty.

        Reference:
            Weitzman (1970).
        """
        if not (self.positives.sum() and self.negatives.sum()):
            return float("nan")
        shares = self.positives / self.positives.sum(), self.negatives / self.negatives.sum()
        return float(np.minimum(*shares).sum())


@dataclass(frozen=True, eq=False)
class DistanceDensity:
    """Result of `measure`.

    Args:
        anchors: Number of queries that were used as anchors.
        queries: Number of queries that have both a positive and a negative.
        distances: Histograms of pair distances.
        hardest: One triplet per anchor, with its farthest positive and its nearest negative.
        nearest: One triplet per anchor, with its nearest positive and its nearest negative; `violated` is then 1 - R@1
            of the anchors.
        random: Triplets drawn uniformly from all triplets that have a query as anchor.
    """

    anchors: int
    queries: int
    distances: Distances
    hardest: Triplets
    nearest: Triplets
    random: Triplets

    def triplets(self, kind: Kind) -> Triplets:
        """Return the "hardest", "nearest" or "random" triplets."""
        statistics: Triplets = getattr(self, kind)
        return statistics


def measure(
    embeddings: NDArray[np.floating],
    labels: ArrayLike,
    is_gallery: ArrayLike | None = None,
    *,
    pairs: int = PAIRS,
    triplets: int = TRIPLETS,
    reach: float | None = None,
    seed: int = 0,
) -> DistanceDensity:
    """Measure the distances of positive and negative pairs and of triplets in a test split.

    If a split has more than `pairs` pairs of a query and a searched sample, anchors are drawn at random among the
    queries. All positive pairs are still counted if there are at most `pairs` of them. Distances are computed from
    matrix products of centred vectors in double precision and are accurate to about 1e-8 of the spread of the
    embeddings.

    Args:
        embeddings: Finite array (n, D).
        labels: Integers (n,).
        is_gallery: Boolean mask (n,) of the rows that are searched; the other rows are the queries. If None, every row
            is a query and is searched.
        pairs: Largest number of pairs to evaluate.
        triplets: Number of random triplets.
        reach: Upper end of the histograms; by default an upper bound of all distances, at most 2 for unit vectors.
        seed: Seed of the random anchors and triplets.

    Raises:
        ValueError: The shapes do not match, or no query has both a positive and a negative.
    """
    part = _Part(embeddings, np.asarray(labels), is_gallery)
    random = np.random.default_rng([seed, 0])
    anchors, most = part.queries, max(1, pairs // len(part.pool))
    if len(anchors) > most:
        anchors = np.sort(random.choice(anchors, most, replace=False))
    every = len(anchors) == len(part.queries)
    all_positives = every or int(part.positives[part.queries].sum()) <= pairs
    end = part.reach() if reach is None else reach
    positive, nearest, farthest = part.of_positives(part.queries if all_positives else anchors, end)
    negative, other = part.of_negatives(anchors, end)
    distances = Distances(
        edges=np.linspace(0, end, BINS + 1),
        positives=positive.counts,
        negatives=negative.counts,
        positive_mean=positive.mean,
        negative_mean=negative.mean,
        all_positives=all_positives,
        all_negatives=every,
    )
    return DistanceDensity(
        len(anchors),
        len(part.queries),
        distances,
        hardest=part.triplets(np.column_stack([anchors, farthest[anchors], other])),
        nearest=part.triplets(np.column_stack([anchors, nearest[anchors], other])),
        random=part.triplets(part.draw_triplets(triplets, random)),
    )


class _Histogram:
    """Histogram and mean of distances in 0..end, accumulated block by block; infinite values are ignored."""

    def __init__(self, end: float) -> None:
        self.end, self.counts, self.sum = end, np.zeros(BINS, np.int64), 0.0

    def add(self, values: Tensor, total: float) -> None:
        """Add a block of distances.

        Args:
            values: Distances of any shape; infinity marks pairs that do not count.
            total: Sum of the distances that count.
        """
        self.counts += torch.histc(values, BINS, 0.0, self.end).long().numpy()
        self.sum += total

    @property
    def mean(self) -> float:
        return self.sum / int(self.counts.sum()) if self.counts.any() else float("nan")


class _Part:
    """Embeddings of a test split with its queries and searched rows; measures the distances between them."""

    def __init__(self, embeddings: NDArray[np.floating], labels: Ints, is_gallery: ArrayLike | None) -> None:
        searched = np.zeros(len(labels), bool) if is_gallery is None else np.asarray(is_gallery, bool)
        if embeddings.ndim != 2 or len(embeddings) != len(labels) or searched.shape != labels.shape:
            raise ValueError(f"embeddings {embeddings.shape} and labels {labels.shape} do not fit together")
        self.lengths = np.einsum("nd,nd->n", embeddings, embeddings, dtype=np.float64)
        self.embeddings, self.mean = embeddings, embeddings.mean(0, dtype=np.float64)
        classes, self.codes = np.unique(labels, return_inverse=True)
        alone = not searched.any()
        pool = np.arange(len(labels)) if alone else np.flatnonzero(searched)
        # sorted by class, so that the rows of one class form a slice
        self.pool = pool[np.argsort(self.codes[pool], kind="stable")]
        size = np.bincount(self.codes[pool], minlength=len(classes))
        self.ends = np.cumsum(size)
        self.starts = self.ends - size
        self.positives = size[self.codes] - (~searched if alone else 0)
        self.negatives = len(pool) - size[self.codes]
        self.queries = np.flatnonzero(~searched & (self.positives > 0) & (self.negatives > 0))
        if not len(self.queries):
            raise ValueError("no sample has both a positive and a negative")

    def points(self, rows: Ints) -> Tensor:
        """Return the centred embeddings (m, D) of `rows` in double precision.

        Only the given rows are converted, because all rows at once could take gigabytes.
        """
        return torch.from_numpy(self.embeddings[rows] - self.mean)

    def reach(self) -> float:
        """Return an upper bound on the distances between embeddings; at most 2 for unit vectors."""
        unit = bool((np.abs(self.lengths - 1) < UNIT).all())
        parts = np.array_split(np.arange(len(self.codes)), -(-len(self.codes) // AT_ONCE))
        far = 2 * max(float(self.points(part).square().sum(1).max()) for part in parts) ** 0.5
        return (min(2.0, far) if unit else far) or 1.0

    def of_positives(self, rows: Ints, end: float) -> tuple[_Histogram, Ints, Ints]:
        """Measure the distances from the queries `rows` to all other searched samples of their class.

        Returns:
            The histogram, and two arrays (n,) that hold, for each query in `rows`, the row of its nearest and of its
            farthest positive.
        """
        histogram = _Histogram(end)
        nearest, farthest = np.zeros((2, len(self.codes)), np.int64)
        by_class = rows[np.argsort(self.codes[rows], kind="stable")]
        for own in np.split(by_class, np.flatnonzero(np.diff(self.codes[by_class])) + 1):
            code = self.codes[own[0]]
            group = self.pool[self.starts[code] : self.ends[code]]
            for part in np.array_split(own, -(-len(own) * len(group) // BLOCK)):
                distances = torch.cdist(self.points(part), self.points(group)).clamp_(max=end)
                itself = torch.from_numpy(part[:, None] == group)
                total = float(distances.masked_fill_(itself, 0.0).sum())
                histogram.add(distances.masked_fill_(itself, torch.inf), total)
                nearest[part] = group[distances.argmin(1)]
                farthest[part] = group[distances.masked_fill_(itself, -1.0).argmax(1)]
        return histogram, nearest, farthest

    def of_negatives(self, rows: Ints, end: float) -> tuple[_Histogram, Ints]:
        """Measure the distances from the queries `rows` (m,) to all searched samples of other classes.

        Returns:
            The histogram and the row (m,) of the nearest negative of each query.
        """
        histogram, nearest, least = _Histogram(end), np.empty(len(rows), np.int64), np.full(len(rows), np.inf)
        anchors = self.points(rows)
        squares = anchors.square().sum(1)[:, None]
        for first in range(0, len(self.pool), AT_ONCE):
            there = self.pool[first : first + AT_ONCE]
            points = self.points(there)
            lengths = points.square().sum(1)
            for part in np.array_split(np.arange(len(rows)), -(-len(rows) * len(there) // BLOCK)):
                distances = torch.addmm(lengths, anchors[part], points.T, alpha=-2).add_(squares[part])
                distances.clamp_(0, end**2).sqrt_()
                codes = self.codes[rows[part]]
                own = list(zip((self.starts[codes] - first).clip(0), (self.ends[codes] - first).clip(0), strict=True))
                for line, (start, stop) in enumerate(own):
                    distances[line, start:stop] = 0.0
                total = float(distances.sum())
                for line, (start, stop) in enumerate(own):
                    distances[line, start:stop] = torch.inf
                histogram.add(distances, total)
                place = distances.argmin(1)
                distance = distances[torch.arange(len(part)), place].numpy()
                nearer = distance < least[part]
                nearest[part] = np.where(nearer, there[place], nearest[part])
                least[part] = np.minimum(distance, least[part])
        return histogram, nearest

    def draw_triplets(self, count: int, random: np.random.Generator) -> Ints:
        """Draw `count` triplets uniformly from all that have a query as anchor; return their rows (count, 3)."""
        weight = np.cumsum((self.positives * self.negatives)[self.queries].astype(np.float64))
        place = np.searchsorted(weight, random.random(count) * weight[-1], side="right")
        anchors = self.queries[place.clip(max=len(self.queries) - 1)]
        start, end = self.starts[self.codes[anchors]], self.ends[self.codes[anchors]]
        positives = self.pool[start + random.integers(self.positives[anchors])]
        # If the anchor was drawn as its own positive, replace it with the last sample of its class, which is never
        # drawn.
        positives = np.where(positives == anchors, self.pool[end - 1], positives)
        skipped = random.integers(self.negatives[anchors])
        negatives = self.pool[np.where(skipped < start, skipped, skipped + end - start)]
        return np.column_stack([anchors, positives, negatives])

    def triplets(self, rows: Ints) -> Triplets:
        """Return the triplets with row indices (t, 3), with distances computed from differences of embeddings."""
        sides = {"ap": (0, 1), "an": (0, 2), "pn": (1, 2)}
        lengths = {name: np.empty(len(rows)) for name in sides}
        for part in np.array_split(np.arange(len(rows)), -(-len(rows) * self.embeddings.shape[1] // BLOCK)):
            for name, (i, j) in sides.items():
                gap = self.points(rows[part, i]) - self.points(rows[part, j])
                lengths[name][part] = gap.norm(dim=1).numpy()
        return Triplets(lengths["ap"], lengths["an"], lengths["pn"], self.lengths[rows], rows)


def loss_of(spec: RunSpec) -> TripletLoss | None:
    """Return the triplet loss that a run is trained with.

    Returns None if its loss does not act on single triplets, or if the spec is that of an embedding set.
    """
    if spec.model.name == IDENTITY or spec.loss.name not in losses.names():
        return None
    return losses.create(spec.loss.name, reduction=spec.loss.reduction, **spec.loss.parameters)


def window(loss: TripletLoss, d_ap: float, reach: float, nodes: int = 2001) -> list[tuple[float, float]]:
    """Return the intervals of d_an in 0..reach in which a triplet with distance `d_ap` has a non-zero gradient.

    The interval ends are accurate to reach / (nodes - 1). The distance d_pn is set equal to d_an, and the norms of the
    three embeddings to 1.
    """
    d_an = np.linspace(0.0, reach, nodes)
    given = Triplets(np.full(nodes, d_ap), d_an, d_an, np.ones((nodes, 3)), np.zeros((nodes, 3), np.int64))
    steps = np.diff(np.concatenate([[0], given.active(loss).astype(int), [0]]))
    return [
        (float(d_an[start]), float(d_an[stop - 1]))
        for start, stop in zip(np.flatnonzero(steps > 0), np.flatnonzero(steps < 0), strict=True)
    ]
