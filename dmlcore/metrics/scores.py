"""Registry of scores: functions that map the result of `retrieval` or `clustering` to a value in 0..1.

All registered scores are stored with every run and displayed together. R@K, P@K and R2@K, which have one value per K,
are fields of `RetrievalScores` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dmlcore.catalogue import Catalogue, Entry
from dmlcore.metrics.clustering import ClusteringScores
from dmlcore.metrics.retrieval import RetrievalScores

Of = TypeVar("Of", bound=Callable[[Any], float | None])


@dataclass(frozen=True, kw_only=True)
class Score(Entry):
    """Catalogue entry of a score, computed from RetrievalScores or from ClusteringScores.

    Attributes:
        of: Function that computes the score.
        printed: Column heading in published tables, or "".
        clusters: True if the function takes ClusteringScores, False if it takes RetrievalScores.
        shown: True if pages list the score.
    """

    of: Callable[[Any], float | None]
    printed: str
    clusters: bool
    shown: bool


SCORES: Catalogue[Score] = Catalogue("score")


def score(
    title: str, source: str, *, printed: str = "", clusters: bool = False, shown: bool = True
) -> Callable[[Of], Of]:
    """Return a decorator that registers a function as a score by its own name; arguments are fields of `Score`."""

    def enter(compute: Of) -> Of:
        name = compute.__name__
        entry = Score(
            name=name, title=title, source=source, of=compute, printed=printed, clusters=clusters, shown=shown
        )
        SCORES.enter(name, entry)
        return compute

    return enter


def scores(retrieved: RetrievalScores, clusters: ClusteringScores | None = None) -> dict[str, float | None]:
    """Return all scores by name, None where no query could be scored. Omit clustering scores if `clusters` is None."""
    results = {False: retrieved, True: clusters}
    return {name: entry.of(result) for name, entry in SCORES.items() if (result := results[entry.clusters]) is not None}


@score("MAP@R", "Musgrave, Belongie & Lim 2020", printed="MAP@R")
def map_at_r(retrieved: RetrievalScores) -> float | None:
    """Return MAP@R, the mean of AP@R over the queries."""
    return retrieved.map_at_r


@score("R-precision", "Musgrave, Belongie & Lim 2020", printed="P@R")
def r_precision(retrieved: RetrievalScores) -> float | None:
    """Return the share of matches among the R nearest items, averaged over the queries."""
    return retrieved.r_precision


@score("kNN(3)", "Zabihzadeh et al. 2021, Sec. 5.2", printed="kNN-Acc")
def knn3(retrieved: RetrievalScores) -> float | None:
    """Return the share of queries with at least two matches among their three nearest neighbours."""
    return retrieved.knn3


@score("kNN(3), majority", "Zabihzadeh et al. 2021, Sec. 5.2; ties go to the nearest", shown=False)
def knn3_majority(retrieved: RetrievalScores) -> float | None:
    """Return the share of queries with the correct label by majority vote of their three nearest neighbours."""
    return retrieved.knn3_majority


@score("NMI", "Manning, Raghavan & Schütze 2008, Sec. 16.3", printed="NMI", clusters=True)
def nmi(clusters: ClusteringScores) -> float:
    """Return the normalised mutual information between clusters and classes."""
    return clusters.nmi


@score("F1", "Manning, Raghavan & Schütze 2008, Sec. 16.3", printed="F1", clusters=True)
def f1(clusters: ClusteringScores) -> float:
    """Return the F1 score over pairs of samples, with "same cluster" as the prediction of "same class"."""
    return clusters.f1
