"""Facility location loss, which compares the best clustering around chosen samples with the clustering by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.geometry.batches import Index, check_batch, full_precision
from dmlcore.losses.engine.batch_loss import batch_loss, refuse_reference, zero_loss
from dmlcore.losses.engine.distances import euclidean
from dmlcore.typing import Bools, Floats, Ints

TIE = 1e-12  # scores that differ by less count as equal, and the lowest index wins


@dataclass(frozen=True)
class Facilities:
    """Greedy solution of the facility location problem, in which chosen samples (facilities) become cluster centres.

    Attributes:
        chosen: Indices of the chosen samples in the order of choice.
        assigned: Index of the chosen sample to which each sample is assigned, shape (N,).
        disagreement: 1 - NMI, where NMI is the normalised mutual information of classes and clusters.
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
    """Facility location loss [max_S (F(S) + gamma (1 - NMI)) - F~]+ with F(S) = -sum_i min_{j in S} d_ij.

    S is a set of chosen samples whose size is the number of classes, and NMI is the normalised mutual information of
    the classes and the clusters around these samples. F~ is the value of F if each sample is assigned to the medoid of
    its class. The maximum is found greedily on the CPU, which requires one synchronisation with a GPU; the gradient
    treats the choice of S as constant. Distances are Euclidean.

    `forward` maps embeddings (B, D) and labels (B,) to a scalar; index tuples are ignored, and a reference raises
    ValueError.

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
        """Return the scalar loss of a batch; the class docstring describes the arguments."""
        refuse_reference(self, ref_emb, ref_labels)
        embeddings, labels = check_batch(embeddings, labels)
        if not len(labels):
            return zero_loss(self, embeddings)
        distances = euclidean(embeddings.detach(), embeddings.detach()).double().cpu().numpy()
        known = labels.cpu().numpy()
        best = choose_facilities(distances, known, self.gamma)
        columns = torch.from_numpy(np.stack([find_medoids(distances, known), best.assigned])).to(embeddings.device)
        away = embeddings - embeddings[columns]
        # True where a sample coincides with its centre, for example is its own centre; both derivatives are set to 0
        # there
        coincident = (away == 0).all(2)
        lengths = torch.linalg.vector_norm(away.masked_fill(coincident[..., None], 1.0), dim=2)
        oracle, cost = lengths.masked_fill(coincident, 0.0).sum(1)
        loss: Tensor = (self.gamma * best.disagreement - cost + oracle).relu()
        return loss


def choose_facilities(distances: Floats, labels: Ints, gamma: float) -> Facilities:
    """Choose C samples greedily as cluster centres, where C is the number of classes.

    Each step chooses the sample that maximises F(S) + gamma (1 - NMI) for the set S of chosen samples. F(S) is minus
    the sum of the distances from all samples to their nearest chosen sample. All candidates of a step are evaluated
    together.

    Args:
        distances: Symmetric distance matrix, shape (N, N).
        labels: Shape (N,).
        gamma: Weight of 1 - NMI.
    """
    count = len(labels)
    classes, of_class = np.unique(labels, return_inverse=True)
    nmi = _Nmi(of_class)
    nearest, assigned = np.full(count, np.inf), np.zeros(count, np.int64)
    # index of the (class, cluster) cell of each sample, and the number of indices in use
    cells, used = of_class.copy(), len(classes)
    chosen: list[int] = []
    # 1 - NMI, which is 1 for a single cluster, because it carries no information about the classes
    away = np.ones(count)
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
    """Normalised mutual information (NMI) of classes and clusters, for each candidate for the next cluster centre.

    The geometric mean of both entropies normalises it. A candidate takes the samples that are closer to it than to
    their present cluster centre. Entropies are sums of n log n over clusters and over (class, cluster) cells. Only
    samples that change cluster change these sums, so the cost is proportional to the number of samples that all
    candidates take.
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
        """Return the NMI (N,) after each of the N candidates has formed its cluster.

        Args:
            closer: Mask of the samples that each candidate takes, shape (candidates, samples) = (N, N).
            assigned: Cluster of each sample before the step, shape (N,).
            cells: Index of the (class, cluster) cell of each sample before the step, shape (N,).
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
        """Return the entropy (N,) of a partition into groups after the move of each of the N candidates.

        Candidate `candidate[k]` moves sample `sample[k]` from its group in `groups` (N,) to the new group `joined[k]`.
        Every candidate has `kinds` new groups.
        """
        sizes = np.bincount(groups)
        left = groups[sample]
        key = candidate * len(sizes) + left
        gone = np.bincount(key, minlength=self.count * len(sizes))[key]
        came = np.bincount(joined, minlength=self.count * kinds)[joined]
        before = sizes[left]
        # Split the change of n log n of the old and the new group evenly among the moved samples.
        change = (self.xlogx[before - gone] - self.xlogx[before]) / gone + self.log[came]
        total = self.xlogx[sizes].sum() + np.bincount(candidate, change, self.count)
        entropy: Floats = self.log[-1] - total / self.count
        return entropy


def find_medoids(distances: Floats, labels: Ints) -> Ints:
    """Return the index of the medoid of each sample's class, shape (N,).

    The medoid has the smallest sum of distances to the samples of its class; ties go to the lowest index.

    Args:
        distances: Distance matrix, shape (N, N).
        labels: Shape (N,).
    """
    sums = np.where(labels[:, None] == labels, distances, 0.0).sum(0)
    of_class = np.where(labels[:, None] == labels, sums, np.inf)
    first: Ints = of_class.argmin(1)
    return first
