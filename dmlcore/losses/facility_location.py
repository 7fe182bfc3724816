"""Facility location loss: the best clustering around chosen samples should agree with the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.geometry.batches import full_precision
from dmlcore.losses.engine.batch_loss import batch_loss
from dmlcore.losses.engine.distances import euclidean
from dmlcore.losses.engine.inputs import check_batch, refuse_reference, zero_loss
from dmlcore.losses.engine.table import Index
from dmlcore.typing import Bools, Floats, Ints

TIE = 1e-12  # gains that differ by less are equal, and the lowest index wins


@dataclass(frozen=True)
class Facilities:
    """Greedy solution of the facility location problem.

    Attributes:
        chosen: Chosen samples in the order of choice.
        assigned: Facility of each sample, shape (N,).
        disagreement: 1 - NMI of classes and clusters.
    """

    chosen: Ints
    assigned: Ints
    disagreement: float


@batch_loss(
    "facility_location",
    title="Facility location",
    latex=r"\bigl[\max_S \bigl(F(S) + \gamma\,(1-\mathrm{NMI})\bigr) - \tilde F\bigr]_+,\quad "
    r"F(S) = -\sum_i \min_{j \in S} d_{ij}",
    source="Song, Jegelka, Rathod & Murphy 2017; Can 2018",
    sentence="Clustering the samples around the medoids of their classes should score at least as well as any other "
    "clustering with as many centres, even with a bonus for disagreeing with the classes.",
)
class FacilityLocation(nn.Module):
    """Hinge [max_S (F(S) + gamma (1 - NMI)) - F~]+ with F(S) = -sum_i min_{j in S} d_ij and |S| the number of classes.

    F~ is F with each class assigned to its medoid. The maximum is found greedily on the host and is constant for the
    gradient, so that a GPU synchronises once. Distances are Euclidean. `forward` maps embeddings (B, D) and labels (B,)
    to a scalar; index tuples are ignored, and a reference raises ValueError.

    Reference:
        Song et al. 2017, Eq. 3-9; Can 2018; NMI with the geometric mean.
    """

    pairs: ClassVar[bool] = False

    def __init__(
        self,
        gamma: Annotated[
            float, Slider(0.1, 50, r"\gamma", "Weight of the disagreement with the classes", log=True, above=0)
        ] = 5.0,
    ) -> None:
        super().__init__()
        self.gamma = gamma

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
        embeddings, labels = check_batch(embeddings, labels)
        if not len(labels):
            return zero_loss(self, embeddings)
        distances = euclidean(embeddings.detach(), embeddings.detach()).double().cpu().numpy()
        known = labels.cpu().numpy()
        best = choose_facilities(distances, known, self.gamma)
        columns = torch.from_numpy(np.stack([find_medoids(distances, known), best.assigned])).to(embeddings.device)
        away = embeddings - embeddings[columns]
        coincident = (away == 0).all(2)  # such as a medoid and itself, whose first and second derivatives are set to 0
        lengths = torch.linalg.vector_norm(away.masked_fill(coincident[..., None], 1.0), dim=2)
        oracle, cost = lengths.masked_fill(coincident, 0.0).sum(1)
        loss: Tensor = (self.gamma * best.disagreement - cost + oracle).relu()
        return loss


def choose_facilities(distances: Floats, labels: Ints, gamma: float) -> Facilities:
    """Choose one sample per class greedily, each for the largest F(S) + gamma (1 - NMI).

    All candidates of a step are evaluated together.

    Args:
        distances: Symmetric, shape (N, N).
        labels: Shape (N,).
        gamma: Weight of 1 - NMI.
    """
    count = len(labels)
    classes, of_class = np.unique(labels, return_inverse=True)
    nmi = _Nmi(of_class)
    nearest, assigned = np.full(count, np.inf), np.zeros(count, np.int64)
    # number of the (class, cluster) cell of each sample; count of numbers used so far
    cells, used = of_class.copy(), len(classes)
    chosen: list[int] = []
    away = np.ones(count)  # a single cluster carries no information about the classes
    for cluster in range(len(classes)):
        closer = distances < nearest  # (candidate, sample)
        score = -np.minimum(distances, nearest).sum(1)
        if cluster:
            away = 1 - nmi(closer, assigned, cells)
        score += gamma * away
        score[chosen] = -np.inf
        best = int(np.flatnonzero(score >= score.max() - TIE)[0])
        chosen.append(best)
        drawn = np.flatnonzero(closer[best])
        assigned[drawn] = cluster
        kinds, kind = np.unique(of_class[drawn], return_inverse=True)
        cells[drawn] = used + kind
        used += len(kinds)
        nearest = np.minimum(nearest, distances[best])
    return Facilities(np.array(chosen), np.array(chosen)[assigned], float(away[best]))


class _Nmi:
    """NMI (geometric mean) of classes and clusters after a candidate has taken its samples into a new cluster.

    Entropies are sums of n log n over clusters and over (class, cluster) cells. Only samples that change cluster change
    these sums, so the cost is proportional to the samples taken by all candidates.
    """

    def __init__(self, of_class: Ints) -> None:
        self.count = len(of_class)
        self.classes = int(of_class.max()) + 1
        n = np.arange(self.count + 1)
        self.log = np.log(np.maximum(n, 1))
        self.xlogx = n * self.log
        self.of_classes = self.log[-1] - self.xlogx[np.bincount(of_class)].sum() / self.count
        self.candidate, self.sample = np.divmod(np.arange(self.count**2), self.count)
        self.to_class = self.candidate * self.classes + of_class[self.sample]

    def __call__(self, closer: Bools, assigned: Ints, cells: Ints) -> Floats:
        """Return the NMI (N,) of each candidate.

        Args:
            closer: Samples that each candidate takes, shape (N, N).
            assigned: Clusters before, shape (N,).
            cells: Numbers of the (class, cluster) cells before, shape (N,).
        """
        drawn = np.flatnonzero(closer)
        candidate, sample = self.candidate[drawn], self.sample[drawn]
        of_clusters = self._entropy(candidate, sample, assigned, candidate, 1)
        joint = self._entropy(candidate, sample, cells, self.to_class[drawn], self.classes)
        product = self.of_classes * of_clusters
        mutual = self.of_classes + of_clusters - joint
        nmi: Floats = np.where(product > TIE, mutual / np.sqrt(np.maximum(product, TIE)), 0.0)
        return nmi

    def _entropy(self, candidate: Ints, sample: Ints, groups: Ints, joined: Ints, kinds: int) -> Floats:
        """Return the entropy of the groups (N,) after each candidate's samples moved to the groups `joined`."""
        sizes = np.bincount(groups)
        left = groups[sample]
        key = candidate * len(sizes) + left
        gone = np.bincount(key, minlength=self.count * len(sizes))[key]
        came = np.bincount(joined, minlength=self.count * kinds)[joined]
        before = sizes[left]
        # Each moved sample bears its share of the changes of its old and its new group.
        change = (self.xlogx[before - gone] - self.xlogx[before]) / gone + self.log[came]
        total = self.xlogx[sizes].sum() + np.bincount(candidate, change, self.count)
        entropy: Floats = self.log[-1] - total / self.count
        return entropy


def find_medoids(distances: Floats, labels: Ints) -> Ints:
    """Return, for each sample, the medoid of its class, which has the smallest sum of distances; ties by index."""
    sums = np.where(labels[:, None] == labels, distances, 0.0).sum(0)
    of_class = np.where(labels[:, None] == labels, sums, np.inf)
    first: Ints = of_class.argmin(1)
    return first
