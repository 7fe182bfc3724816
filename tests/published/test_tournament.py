"""The tournament gives the printed ranks without a band, and ties with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlcore.published.tournament import COMPETITIONS, compete, printed_ranks, scores
from tests.members import in_one_case

RANKS = Path(__file__).parents[1] / "golden" / "psomas_ranks.json"


def test_without_a_band_it_is_the_tournament_of_the_source():
    found = compete(scores(COMPETITIONS["psomas-cub"]))
    recomputed = json.loads(RANKS.read_text())["rows"]
    order = [f"CUB-200-2011, {n}, {s}" for n in ("ResNet50", "BN-Inception", "GoogLeNet") for s in (64, 128, 512, 1024)]
    assert sorted(found.experiments) == sorted(order)
    for standing in found.standings:
        total, average, deviation, ranks = recomputed[standing.name]
        by_name = dict(zip(found.experiments, standing.ranks, strict=True))
        assert [by_name[name] for name in order] == ranks
        assert sum(standing.ranks) == total
        assert standing.mean_rank == pytest.approx(average, abs=1e-4)
        assert standing.deviation == pytest.approx(deviation, abs=1e-4)
        assert standing.ties == 0
    printed = printed_ranks()
    differ = [s.name for s in found.standings if abs(s.mean_rank - printed[s.name]) > 0.01]
    assert differ == ["Triplet"], "8.85 is printed, 8.58 is correct"


def test_over_all_28_experiments_the_first_three_keep_their_places():
    found = compete(scores(COMPETITIONS["psomas-all"]))
    assert len(found.experiments) == 28
    ranks = [(s.name, round(s.mean_rank, 2)) for s in found.standings]
    assert ranks[:5] == [
        ("ProxyAnchor", 1.18),
        ("SoftTriple", 2.5),
        ("MultiSimilarity", 3.54),
        ("LiftedStructure", 4.64),
        ("Contrastive", 5.04),
    ]
    assert dict(ranks)["ProxyNCA"] == 6.68
    assert dict(ranks)["ArcFace"] == 6.89


def test_differences_within_the_band_are_ties():
    found = {"one": {"a": 50.0, "b": 49.5, "c": 40.0}, "two": {"a": 30.0, "b": 31.0, "c": 30.4}}
    result = compete(found, 0.5)
    by_name = {s.name: s for s in result.standings}
    assert by_name["a"].ranks == (1.5, 2.5)
    assert by_name["b"].ranks == (1.5, 1.0)
    assert by_name["c"].ranks == (3.0, 2.5)
    assert (by_name["a"].wins, by_name["a"].ties, by_name["a"].defeats) == (1, 2, 1)
    order = [s.name for s in result.standings]
    assert order == ["b", "a", "c"]
    assert result.duels[0] == ((0, 0, 0), (1, 1, 0), (2, 0, 0))
    assert result.duels[1][0] == (0, 1, 1)


@in_one_case(band=[0.0, 0.6, 100.0], key=COMPETITIONS)
def test_ranks_and_duels_add_up(key, band):
    found = compete(scores(COMPETITIONS[key]), band)
    n, experiments = len(found.standings), len(found.experiments)
    for at in range(experiments):
        assert sum(s.ranks[at] for s in found.standings) == pytest.approx(n * (n + 1) / 2)
    assert sum(s.wins for s in found.standings) == sum(s.defeats for s in found.standings)
    for i, standing in enumerate(found.standings):
        assert standing.wins + standing.ties + standing.defeats == experiments * (n - 1)
        assert sum(duel[0] for duel in found.duels[i]) == standing.wins
        for j, (wins, ties, defeats) in enumerate(found.duels[i]):
            assert found.duels[j][i] == (defeats, ties, wins)
    if band == 100.0:
        assert {s.mean_rank for s in found.standings} == {(n + 1) / 2}, "with an infinite band all methods are equal"


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="band"):
        compete({"one": {"a": 1.0}}, -1.0)
    with pytest.raises(ValueError, match="same competitors"):
        compete({"one": {"a": 1.0}, "two": {"b": 1.0}})


def test_the_bands_are_printed_deviations():
    assert COMPETITIONS["psomas-cub"].band == 0.59
    assert COMPETITIONS["can"].band == 0.0
