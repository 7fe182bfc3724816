"""Distances of a whole test split: histograms of positives and negatives, and triplets in the plane (d_ap, d_an)."""

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
from dmlcore.typing import Bools, Floats, Ints

Kind = Literal["hardest", "nearest", "random"]
KINDS: tuple[Kind, ...] = get_args(Kind)

BINS = 100  # of the histograms
PAIRS = 40_000_000  # pairs looked at: all of 6,300 samples; of more, those of anchors drawn at random
TRIPLETS = 50_000  # drawn at random
BLOCK = 2**22  # distances held at once
AT_ONCE = 2**16  # embeddings held in double precision
UNIT = 2e-3  # how far a squared length may be from 1 for embeddings to count as unit vectors


@dataclass(frozen=True, eq=False)
class Triplets:
    """Triplets (t,): three distances, and squared lengths (t, 3) and rows (t, 3) of anchor, positive, negative."""

    d_ap: Floats
    d_an: Floats
    d_pn: Floats
    squares: Floats = field(repr=False)
    rows: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.d_ap)

    @property
    def violated(self) -> float:
        """Share whose negative is nearer than their positive; NaN without any triplet."""
        return float((self.d_an < self.d_ap).mean()) if len(self) else float("nan")

    def active(self, loss: TripletLoss) -> Bools:
        """(t,): whether the loss has a gradient there, 0 < raw < m2; everywhere where it is trained without clamps."""
        if loss.reduction == "mean_raw":
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
    """Histograms of the distances of pairs: counts (B,) over edges (B + 1,), of one class and of two."""

    edges: Floats
    positives: Ints
    negatives: Ints
    positive_mean: float
    negative_mean: float
    all_positives: bool  # whether every pair was counted, else those of the anchors alone
    all_negatives: bool

    @property
    def overlap(self) -> float:
        """Overlap coefficient in 0..1: the area under both histograms at once (Weitzman 1970); NaN if one is empty."""
        if not (self.positives.sum() and self.negatives.sum()):
            return float("nan")
        shares = self.positives / self.positives.sum(), self.negatives / self.negatives.sum()
        return float(np.minimum(*shares).sum())


@dataclass(frozen=True, eq=False)
class DistanceDensity:
    """What `measure` found; anchors: how many queries were looked at, of how many that have a positive and a negative.

    hardest: of each anchor the farthest positive and the nearest negative; nearest: the nearest of both, so that what
    is violated is 1 - R@1 of the anchors; random: triplets drawn evenly from all.
    """

    anchors: int
    queries: int
    distances: Distances
    hardest: Triplets
    nearest: Triplets
    random: Triplets

    def triplets(self, kind: Kind) -> Triplets:
        """The triplets of a kind."""
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
    """Distances within a test split, exact up to `pairs` pairs, else of anchors drawn at random.

    embeddings (n, D) finite, labels (n,) integers; is_gallery (n,): rows that the others, then the queries, search.
    Positives are counted in full as long as they are no more than `pairs`. reach: end of the histograms; None: the
    largest distance, 2 at most for unit vectors. Distances come from products in double precision of centred vectors:
    accurate to some 1e-8 of the spread. Raises ValueError where no query has a positive and a negative.
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
        random=part.triplets(part.drawn(triplets, random)),
    )


class _Histogram:
    """Counts and mean of distances in 0..end that come in parts; what lies outside, as infinity, is not counted."""

    def __init__(self, end: float) -> None:
        self.end, self.counts, self.sum = end, np.zeros(BINS, np.int64), 0.0

    def add(self, values: Tensor, total: float) -> None:
        """total: the sum of those that count."""
        self.counts += torch.histc(values, BINS, 0.0, self.end).long().numpy()
        self.sum += total

    @property
    def mean(self) -> float:
        return self.sum / int(self.counts.sum()) if self.counts.any() else float("nan")


class _Part:
    """Embeddings with what is asked of them: who are queries, who can be found, distances of both."""

    def __init__(self, embeddings: NDArray[np.floating], labels: Ints, is_gallery: ArrayLike | None) -> None:
        searched = np.zeros(len(labels), bool) if is_gallery is None else np.asarray(is_gallery, bool)
        if embeddings.ndim != 2 or len(embeddings) != len(labels) or searched.shape != labels.shape:
            raise ValueError(f"embeddings {embeddings.shape} and labels {labels.shape} do not fit together")
        self.lengths = np.einsum("nd,nd->n", embeddings, embeddings, dtype=np.float64)
        self.embeddings, self.mean = embeddings, embeddings.mean(0, dtype=np.float64)
        classes, self.codes = np.unique(labels, return_inverse=True)
        alone = not searched.any()
        pool = np.arange(len(labels)) if alone else np.flatnonzero(searched)
        self.pool = pool[np.argsort(self.codes[pool], kind="stable")]  # class by class: those of one are a slice
        size = np.bincount(self.codes[pool], minlength=len(classes))
        self.ends = np.cumsum(size)
        self.starts = self.ends - size
        self.positives = size[self.codes] - (~searched if alone else 0)
        self.negatives = len(pool) - size[self.codes]
        self.queries = np.flatnonzero(~searched & (self.positives > 0) & (self.negatives > 0))
        if not len(self.queries):
            raise ValueError("no sample has both another one of its class and one of another class")

    def points(self, rows: Ints) -> Tensor:
        """(m, D) of these rows, centred, in double precision: all of a million at once would take gigabytes."""
        return torch.from_numpy(self.embeddings[rows] - self.mean)

    def reach(self) -> float:
        """No distance is larger; 2 at most for unit vectors."""
        unit = bool((np.abs(self.lengths - 1) < UNIT).all())
        parts = np.array_split(np.arange(len(self.codes)), -(-len(self.codes) // AT_ONCE))
        far = 2 * max(float(self.points(part).square().sum(1).max()) for part in parts) ** 0.5
        return (min(2.0, far) if unit else far) or 1.0

    def of_positives(self, rows: Ints, end: float) -> tuple[_Histogram, Ints, Ints]:
        """Distances of queries to all others of their class; of each sample (n,) the row of the nearest and the
        farthest."""
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
        """Distances of queries (m,) to all of other classes, and the row of the nearest (m,)."""
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

    def drawn(self, count: int, random: np.random.Generator) -> Ints:
        """Rows (count, 3) of triplets, each valid one as likely as any other."""
        weight = np.cumsum((self.positives * self.negatives)[self.queries].astype(np.float64))
        place = np.searchsorted(weight, random.random(count) * weight[-1], side="right")
        anchors = self.queries[place.clip(max=len(self.queries) - 1)]
        start, end = self.starts[self.codes[anchors]], self.ends[self.codes[anchors]]
        positives = self.pool[start + random.integers(self.positives[anchors])]
        # Where the anchor itself can be found, the last of its class, which is never drawn, takes its place.
        positives = np.where(positives == anchors, self.pool[end - 1], positives)
        skipped = random.integers(self.negatives[anchors])
        negatives = self.pool[np.where(skipped < start, skipped, skipped + end - start)]
        return np.column_stack([anchors, positives, negatives])

    def triplets(self, rows: Ints) -> Triplets:
        """Triplets of rows (t, 3), each distance directly from its two points."""
        sides = {"ap": (0, 1), "an": (0, 2), "pn": (1, 2)}
        lengths = {name: np.empty(len(rows)) for name in sides}
        for part in np.array_split(np.arange(len(rows)), -(-len(rows) * self.embeddings.shape[1] // BLOCK)):
            for name, (i, j) in sides.items():
                gap = self.points(rows[part, i]) - self.points(rows[part, j])
                lengths[name][part] = gap.norm(dim=1).numpy()
        return Triplets(lengths["ap"], lengths["an"], lengths["pn"], self.lengths[rows], rows)


def loss_of(spec: RunSpec) -> TripletLoss | None:
    """The triplet loss that a run is trained with; None for a loss of anything else than single triplets."""
    if spec.loss.name not in losses.names():
        return None
    return losses.create(spec.loss.name, reduction=spec.loss.reduction, **spec.loss.parameters)


def window(loss: TripletLoss, d_ap: float, reach: float, nodes: int = 2001) -> list[tuple[float, float]]:
    """Intervals of d_an in 0..reach where a triplet with this d_ap has a gradient, to reach / (nodes - 1).

    What else the loss looks at is taken as d_pn = d_an and |a| = |p| = |n| = 1.
    """
    d_an = np.linspace(0.0, reach, nodes)
    given = Triplets(np.full(nodes, d_ap), d_an, d_an, np.ones((nodes, 3)), np.zeros((nodes, 3), np.int64))
    steps = np.diff(np.concatenate([[0], given.active(loss).astype(int), [0]]))
    return [
        (float(d_an[start]), float(d_an[stop - 1]))
        for start, stop in zip(np.flatnonzero(steps > 0), np.flatnonzero(steps < 0), strict=True)
    ]
