"""Verification: two samples are accepted as the same class if their cosine similarity is at least a threshold.

With S pairs of the same class and D pairs of different classes, each pair of samples counted once, at a threshold t:

    true positive rate TPR(t) = accepted pairs of the same class / S       false non-match rate FNMR(t) = 1 - TPR(t)
    false match rate FMR(t) = accepted pairs of different classes / D      equal error rate EER = FMR(t) = FNMR(t)

Pairs are not independent: one unusual class takes part in many of them. Intervals are therefore from a bootstrap over
classes.

Reference: ISO/IEC 19795-1:2021 for the false match and false non-match rates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.metrics.nearest_neighbours import as_matrix
from dmlcore.metrics.pair_counts import (
    PairTable,
    SortedSamples,
    count_pairs,
    grid_steps,
)
from dmlcore.metrics.retrieval import class_ids
from dmlcore.typing import Floats, Ints, Reals

EXACT = 4096  # up to this number of samples, every similarity is a threshold; beyond, BINS of them are
BINS = 2**11  # maximum number of thresholds of a curve from a histogram and of a bootstrap
GROUPS = 128  # maximum number of groups of classes that the bootstrap draws; with fewer classes, each is a group
CELLS = 2**25  # maximum size of the histogram of all groups
RESOLUTION = 2.0**-24  # similarities that differ by less are ties
DRAWS = 1000  # bootstrap resamples
FEWEST = 3  # classes of an interval; of two, all resamples with pairs of different classes are equal
SEED = 0


@dataclass(frozen=True)
class PairCurve:
    """Numbers of accepted pairs at every threshold, (T,), from the highest threshold, infinity, which accepts none."""

    thresholds: Floats
    accepted_same: Floats
    accepted_different: Floats

    @property
    def same(self) -> float:
        """Number of pairs of the same class."""
        return float(self.accepted_same[-1])

    @property
    def different(self) -> float:
        """Number of pairs of different classes."""
        return float(self.accepted_different[-1])

    @cached_property
    def tpr(self) -> Floats:
        """True positive rate at every threshold, (T,)."""
        return self.accepted_same / self.same

    @cached_property
    def fmr(self) -> Floats:
        """False match rate at every threshold, (T,)."""
        return self.accepted_different / self.different

    @property
    def fnmr(self) -> Floats:
        """False non-match rate at every threshold, (T,)."""
        return 1 - self.tpr

    @property
    def auc(self) -> float:
        """Area under the ROC curve, which shows the true positive against the false match rate."""
        return float(np.trapezoid(self.tpr, self.fmr))

    @property
    def eer(self) -> float:
        """Equal error rate: where FMR = FNMR on the ROC curve, interpolated linearly between thresholds."""
        excess = self.fmr - self.fnmr  # ascending, from -1 to 1
        after = int(np.argmax(excess >= 0))
        before = excess[after - 1]
        share = before / (before - excess[after])
        return float(self.fmr[after - 1] + share * (self.fmr[after] - self.fmr[after - 1]))

    @property
    def average_precision(self) -> float:
        """Average precision of pairs sorted by similarity: the mean precision, weighted by the gain in true matches."""
        accepted = self.accepted_same[1:] + self.accepted_different[1:]
        with np.errstate(invalid="ignore"):
            precision = np.nan_to_num(self.accepted_same[1:] / accepted)
        return float((np.diff(self.tpr) * precision).sum())

    def threshold_at(self, fmr: float) -> float:
        """Return the lowest threshold with a false match rate of at most `fmr`; infinity if only that has.

        Args:
            fmr: False match rate, in 0..1.
        """
        return float(self.thresholds[self._place(fmr)])

    def tpr_at(self, fmr: float) -> float:
        """Return the true positive rate at `threshold_at(fmr)`."""
        return float(self.tpr[self._place(fmr)])

    def _place(self, fmr: float) -> int:
        if not 0 <= fmr <= 1:
            raise ValueError(f"fmr must be in 0..1, got {fmr}")
        return int(np.searchsorted(self.accepted_different, fmr * self.different * (1 + 1e-12), side="right")) - 1

    def rates_at(self, threshold: float) -> tuple[float, float]:
        """Return FMR and FNMR if pairs with a similarity of at least `threshold` are accepted.

        Thresholds between two of the curve give the rates at the higher one: of pairs that are certainly accepted.
        """
        place = int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1
        return float(self.fmr[place]), float(self.fnmr[place])


class Interval(NamedTuple):
    """Ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Verification(PairCurve):
    """Curve of all pairs of a set of embeddings, and the histograms for its intervals."""

    table: PairTable = field(repr=False)

    @property
    def has_intervals(self) -> bool:
        """True if there are enough classes, three, for intervals."""
        return len(self.table.same) >= FEWEST

    @cached_property
    def resampled(self) -> list[PairCurve]:
        """Curves of `DRAWS` bootstrap samples of the classes (of groups of classes, if there are more than 128).

        A class that is drawn twice counts its own pairs twice and its pairs with another class twice; it is not
        compared with its copy.
        """
        count = len(self.table.same)
        draws = np.random.default_rng(SEED).multinomial(count, np.full(count, 1 / count), size=DRAWS).astype(float)
        within = np.einsum("ggk->gk", self.table.different)
        low, high = np.triu_indices(count, 1)  # pairs of two groups; the table has the lower group first
        same_drawn = draws @ self.table.same
        different_drawn = (draws[:, low] * draws[:, high]) @ self.table.different[low, high].astype(float)
        different_drawn += draws @ within
        thresholds = np.concatenate([[np.inf], self.table.thresholds])
        start = np.zeros((DRAWS, 1))
        counts = (np.hstack([start, side.cumsum(axis=1)]) for side in (same_drawn, different_drawn))
        pairs = zip(*counts, strict=True)
        return [PairCurve(thresholds, *sides) for sides in pairs if sides[0][-1] and sides[1][-1]]

    def interval(self, score: Callable[[PairCurve], float], level: float = 0.95) -> Interval | None:
        """Return the percentile interval of a score over bootstrap samples of the classes; None below three classes.

        Args:
            score: Function of a curve, for example `lambda curve: curve.tpr_at(0.01)`.
            level: Share of the samples inside, in 0..1.
        """
        if not self.has_intervals:
            return None
        scores = [score(curve) for curve in self.resampled]
        low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2], method="nearest")
        return Interval(float(low), float(high))


def verification(
    embeddings: ArrayLike | torch.Tensor,
    labels: ArrayLike | torch.Tensor,
    *,
    device: torch.device | None = None,
) -> Verification:
    """Count all pairs of samples by cosine similarity and class.

    Up to 4,096 samples, the curve has every similarity as a threshold, computed in float64. Beyond, products are in
    float32 and the curve has about 2,000 thresholds (fewer with more than 128 classes), which are close where the
    false match rate is low; the counts at these thresholds are exact. Memory does not grow with the number of pairs.

    Args:
        embeddings: Shape (N, D), without zero rows.
        labels: Shape (N,), integers.
        device: Device of the products; the CPU by default.

    Raises:
        TypeError, ValueError: If an argument is invalid, there are fewer than two classes, or no class has two samples.

    Example:
        >>> from dmlcore import metrics
        >>> pairs = metrics.verification([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], [0, 0, 1, 1])
        >>> pairs.eer, pairs.auc, pairs.same, pairs.different
        (0.0, 1.0, 2.0, 4.0)
    """
    samples, classes = sorted_samples(embeddings, labels, device)
    groups = _groups(classes)
    steps = _steps(samples, min(BINS, CELLS // (int(groups[-1]) + 1) ** 2))
    table = count_pairs(samples, steps, groups)
    if len(samples.codes) <= EXACT:
        thresholds, same, different = _all_similarities(samples)
    else:
        thresholds = table.thresholds
        same, different = table.same.sum(axis=0).cumsum(), table.different.sum(axis=(0, 1)).cumsum()
    return Verification(
        thresholds=np.append(np.inf, thresholds),
        accepted_same=np.append(0.0, same),
        accepted_different=np.append(0.0, different),
        table=table,
    )


def sorted_samples(
    embeddings: ArrayLike | torch.Tensor, labels: ArrayLike | torch.Tensor, device: torch.device | None
) -> tuple[SortedSamples, int]:
    """Return the samples sorted by class and the number of classes; raises as `verification`."""
    points = as_matrix("embeddings", embeddings)
    codes, counts = np.unique(class_ids("labels", labels, len(points)), return_inverse=True, return_counts=True)[1:]
    if len(counts) < 2:
        raise ValueError("labels must hold at least two classes, as there is no pair of different classes otherwise")
    if counts.max() < 2:
        raise ValueError("labels must repeat, as there is no pair of the same class if each class has one sample")
    rounded: Reals = points.astype(np.float64) if len(points) <= EXACT else points.astype(np.float32)
    return SortedSamples(rounded, codes, device or torch.device("cpu")), len(counts)


def _groups(classes: int) -> Ints:
    """Return the group of each class, (classes,): one class each, or GROUPS groups of neighbouring classes."""
    return np.arange(classes) * min(classes, GROUPS) // classes


def _all_similarities(samples: SortedSamples) -> tuple[Floats, Ints, Ints]:
    """Return all similarities, descending, and how many pairs of the same and of different classes reach each."""
    keys = []
    for block in samples.blocks():
        width = block.same.shape[1]
        near, far = block.similarities[:, :width], block.similarities[:, width:]
        for part, alike in ((near[block.same], 1), (near[block.different], 0), (far.reshape(-1), 0)):
            keys.append(2 * np.rint(-part.cpu().numpy() / RESOLUTION).astype(np.int64) + alike)
    ordered = np.sort(np.concatenate(keys))
    rounded = ordered >> 1
    last = np.flatnonzero(np.diff(rounded, append=np.iinfo(np.int64).max))  # last pair of each similarity
    accepted_same = (ordered & 1).cumsum()[last]
    return -RESOLUTION * rounded[last].astype(float), accepted_same, last + 1 - accepted_same


def _steps(samples: SortedSamples, bins: int) -> Ints:
    """Return at most `bins` steps of the grid where thresholds are informative, ascending from 0.

    They are quantiles of the similarities of both kinds of pairs, of up to 2,048 samples of whole classes, and
    logarithmically spaced quantiles for low false match rates.
    """
    sizes = np.unique(samples.codes, return_counts=True)[1]
    order = np.random.default_rng(SEED).permutation(len(sizes))
    chosen = order[: max(2, int(np.searchsorted(sizes[order].cumsum(), 2048, side="right")))]
    rows = np.flatnonzero(np.isin(samples.codes, chosen))
    points, codes = samples.points[rows], samples.codes[rows]
    steps = grid_steps(points @ points.T).cpu().numpy()
    upper = np.triu_indices(len(rows), 1)
    steps, alike = steps[upper], (codes[:, None] == codes)[upper]
    shares = np.linspace(0, 1, bins // 4)
    tail = 1 - np.geomspace(1e-7, 1, bins // 2 - 1)
    wanted = [_quantiles(steps[~alike], q) for q in (shares, tail)]
    if alike.any():
        wanted.append(_quantiles(steps[alike], shares))
    return np.unique(np.concatenate([[0], *wanted]))


def _quantiles(steps: Ints, shares: Floats) -> Ints:
    """Return quantiles of steps of the grid, as `numpy.quantile` with method="higher"."""
    reached = np.bincount(steps).cumsum()
    return np.searchsorted(reached, np.ceil(shares * (len(steps) - 1)), side="right")
