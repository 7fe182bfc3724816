"""Ranking of losses for a query: AP@R decides first, then the rank of P; small differences are ties."""

from __future__ import annotations

import pytest

from dmlcore.inspection.failure.best_loss import best_loss
from dmlcore.inspection.failure.one_step import NeighbourRanks

NOW = NeighbourRanks(right=58, wrong=1, average_precision=0.0)


def ranks(right: int, wrong: int, precision: float) -> NeighbourRanks:
    return NeighbourRanks(right, wrong, precision)


@pytest.mark.parametrize(
    ("after", "names"),
    [
        ({"a": ranks(1, 2, 0.1), "b": ranks(9, 1, 0.2)}, ("b",)),
        ({"a": ranks(30, 90, 0.0), "b": ranks(8, 1, 0.0), "c": NOW}, ("b",)),
        # The rank of N makes no winner; neither does a tenth of the gain, one point of AP@R or one rank.
        ({"a": ranks(1, 75, 0.125), "b": ranks(1, 283, 0.125), "c": ranks(2, 300, 0.1)}, ("a", "b")),
        ({"a": ranks(1, 75, 0.5), "b": ranks(1, 75, 0.46), "c": ranks(1, 75, 0.44)}, ("a", "b")),
        ({"a": ranks(8, 75, 0.0), "b": ranks(13, 75, 0.0), "c": ranks(14, 75, 0.0)}, ("a", "b")),
        ({"a": ranks(4, 75, 0.015), "b": ranks(4, 75, 0.008)}, ("a", "b")),
    ],
)
def test_ap_at_r_judges_before_the_rank_of_p_and_small_differences_tie(after, names):
    verdict = best_loss(NOW, after)
    assert (verdict.names, verdict.gain) == (names, 1)


def test_a_best_loss_need_not_help():
    worse = best_loss(NOW, {"a": ranks(60, 1, 0.0), "b": ranks(90, 1, 0.0)})
    assert (worse.names, worse.gain) == (("a",), -1)
    assert not any(worse.leaders.values())
    assert best_loss(NOW, {"a": NOW, "b": ranks(60, 1, 0.0)}).gain == 0
    assert best_loss(NOW, {"a": ranks(57, 9, 0.005), "b": ranks(90, 1, 0.0)}).gain == 0


def test_the_leaders_of_a_column_are_better_than_before_and_than_another():
    verdict = best_loss(NOW, {"a": ranks(1, 75, 0.0), "b": ranks(2, 283, 0.0), "c": NOW})
    assert verdict.leaders == {"ap": (), "right": ("a", "b"), "wrong": ("b",)}
    assert not any(best_loss(NOW, {"a": ranks(1, 75, 0.1)}).leaders.values())  # a single loss leads nothing


def test_nothing_to_judge_is_an_error():
    with pytest.raises(ValueError, match="at least one loss"):
        best_loss(NOW, {})
