"""Comparison of losses over many experiments: pairwise wins that exceed the noise, and mean ranks."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmlcore.published import noise
from dmlcore.published.collection import PublishedTable, table

Scores = Mapping[str, Mapping[str, float]]  # experiment -> competitor -> score in per cent


@dataclass(frozen=True)
class Competition:
    """Published tables whose methods are compared, in one experiment per data set, network and embedding size."""

    title: str
    tables: tuple[str, ...]  # keys of the tables
    column: str
    words: str
    # key of the table whose largest printed standard deviation in `column` is the noise band; "" for no band
    spread: str = ""

    @property
    def band(self) -> float:
        """Noise band in percentage points: the largest standard deviation in the table `spread`; 0 without such a
        table.
        """
        return noise.spreads(self.spread, self.column)[1] if self.spread else 0.0


COMPETITIONS: Mapping[str, Competition] = {
    "psomas-cub": Competition(
        "Psomas 2020: ten losses, 12 experiments on CUB",
        ("P-6", "P-7", "P-8"),
        "R@1",
        "The source's own tournament (its Table 11): three networks times four embedding sizes.",
        "P-12",
    ),
    "psomas-all": Competition(
        "Psomas 2020: ten losses, all 28 experiments",
        ("P-6", "P-7", "P-8", "P-9", "P-20", "P-21", "P-10"),
        "R@1",
        "CUB and Cars196 on three networks and SOP on one, four embedding sizes each: more than the source ranks.",
        "P-12",
    ),
    "gurbuz-gsp": Competition(
        "Gürbüz 2022: 15 methods, Table 5.1",
        ("G-5.1",),
        "MAP@R",
        "Four data sets times two embedding sizes, with and without generalised sum pooling.",
        "G-5.1",
    ),
    "gurbuz-ccp": Competition(
        "Gürbüz 2022: 13 methods, Table 3.1", ("G-3.1",), "MAP@R", "Four data sets times two embedding sizes.", "G-5.1"
    ),
    "zabihzadeh": Competition(
        "Zabihzadeh 2021: seven losses, Tables 3 to 5", ("Z-3", "Z-4", "Z-5"), "R@1", "Three data sets."
    ),
    "can": Competition(
        "Can 2018: eight methods, Tables 3.4 to 3.6", ("C-3.4", "C-3.5", "C-3.6"), "R@1", "Three data sets."
    ),
}


@dataclass(frozen=True)
class CompetitorRank:
    """Result of one competitor: its rank in each experiment, and its wins, ties and defeats against all others.

    Competitors whose scores differ by at most the noise band are tied.
    """

    name: str
    ranks: tuple[float, ...]
    wins: int
    ties: int
    defeats: int

    @property
    def mean_rank(self) -> float:
        """Mean of the ranks; 1 is best."""
        return statistics.fmean(self.ranks)

    @property
    def deviation(self) -> float:
        """Sample standard deviation (ddof=1) of the ranks; 0 for a single experiment."""
        return statistics.stdev(self.ranks) if len(self.ranks) > 1 else 0.0


@dataclass(frozen=True)
class Tournament:
    """Result of a competition.

    `standings` is sorted by mean rank, best first. duels[i][j] holds the (wins, ties, defeats) of standing i against
    standing j.
    """

    experiments: tuple[str, ...]
    standings: tuple[CompetitorRank, ...]
    duels: tuple[tuple[tuple[int, int, int], ...], ...]


def scores(competition: Competition) -> dict[str, dict[str, float]]:
    """Return the scores by experiment and competitor, for the competitors that take part in every experiment."""
    by_experiment: dict[str, dict[str, float]] = {}
    for key in competition.tables:
        one = table(key)
        assert one is not None, key
        for row in one.rows:
            value = row.score(competition.column)
            if value is not None:
                by_experiment.setdefault(_experiment(row.alike), {})[row.method] = value
    everywhere = set.intersection(*(set(each) for each in by_experiment.values()))
    return {name: {k: v for k, v in each.items() if k in everywhere} for name, each in by_experiment.items()}


def compete(by_experiment: Scores, band: float = 0.0) -> Tournament:
    """Compare every competitor with every other one in every experiment.

    The rank in an experiment is 1 + the number of clearly better competitors + half the number of tied ones. With a
    band of 0 this is the usual rank, in which equal scores share the mean of their ranks.

    Args:
        by_experiment: Scores in per cent by experiment and competitor.
        band: Differences up to this many percentage points are ties.

    Raises:
        ValueError: If the band is negative, or the competitors differ between experiments.
    """
    if not band >= 0:
        raise ValueError(f"band must be 0 or more, got {band}")
    experiments = tuple(by_experiment)
    names = list(by_experiment[experiments[0]]) if experiments else []
    if any(set(each) != set(names) for each in by_experiment.values()):
        raise ValueError("every experiment must have the same competitors")
    standings = [_standing(name, names, by_experiment, band) for name in names]
    standings.sort(key=lambda s: (s.mean_rank, s.name))
    order = [s.name for s in standings]
    duels = tuple(tuple(_duel(a, b, by_experiment, band) for b in order) for a in order)
    return Tournament(experiments, tuple(standings), duels)


def _standing(name: str, names: Sequence[str], by_experiment: Scores, band: float) -> CompetitorRank:
    duels = [_duel(name, other, by_experiment, band) for other in names if other != name]
    ranks = []
    for each in by_experiment.values():
        ahead = [_sign(each[other] - each[name], band) for other in names if other != name]
        ranks.append(1 + ahead.count(1) + ahead.count(0) / 2)
    wins, ties, defeats = (sum(duel[i] for duel in duels) for i in range(3))
    return CompetitorRank(name, tuple(ranks), wins, ties, defeats)


def _duel(one: str, other: str, by_experiment: Scores, band: float) -> tuple[int, int, int]:
    if one == other:
        return 0, 0, 0
    signs = [_sign(each[one] - each[other], band) for each in by_experiment.values()]
    return signs.count(1), signs.count(0), signs.count(-1)


def _sign(difference: float, band: float) -> int:
    return 0 if abs(difference) <= band + 1e-9 else 1 if difference > 0 else -1


def _experiment(alike: tuple[str, str, str]) -> str:
    return ", ".join(filter(None, alike))


def printed_ranks() -> dict[str, float]:
    """Return the average ranks of Table 11 of Psomas 2020, as printed."""
    published: PublishedTable | None = table("P-11")
    assert published is not None
    return {row.method: float(row.values["Average Ranking"] or 0) for row in published.rows}
