"""Verdicts on scores claim no more than the numbers and their noise support."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from dmlcore.significance import verdicts
from dmlcore.significance.noise import over_classes
from dmlcore.significance.power import FEASIBLE
from dmlcore.significance.verdicts import clear, contrasts, describe_pair, gap, spread, verdict
from tests.wording import says


def seeds(*values):
    return dict(enumerate(values))


def inputs(names, *values):
    return {"inputs": {name: seeds(*values) for name in names}}


def test_a_gap_is_paired_where_the_seeds_are_and_welch_where_not():
    one, two = np.array([0.51, 0.62, 0.70]), np.array([0.40, 0.52, 0.61])
    paired = gap(seeds(*one), seeds(*two))
    assert paired.p == pytest.approx(stats.ttest_rel(one, two).pvalue)
    assert paired.deviation == pytest.approx(statistics.stdev(one - two))
    assert paired.words == "+10.0 ± 1.0 points, paired over 3 seeds"
    other = gap(seeds(*one), {5: 0.4, 6: 0.52, 7: 0.61, 8: 0.5})
    assert not other.paired
    assert other.p == pytest.approx(stats.ttest_ind(one, [0.4, 0.52, 0.61, 0.5], equal_var=False).pvalue)


def test_the_interval_of_a_paired_gap_is_that_of_the_t_test():
    one, two = np.array([0.51, 0.62, 0.70]), np.array([0.40, 0.52, 0.61])
    expected = stats.ttest_rel(one, two).confidence_interval()
    assert gap(seeds(*one), seeds(*two)).interval == pytest.approx((expected.low, expected.high))
    assert gap(seeds(*one), {5: 0.4, 6: 0.5}).interval is None
    assert gap(seeds(0.9), seeds(0.1)).interval is None


def test_one_seed_has_no_known_noise_and_equal_values_are_no_lead():
    assert gap(seeds(0.9), seeds(0.1)).p is None
    assert clear([gap(seeds(0.9), seeds(0.1))]) == [False]
    assert gap(seeds(0.5, 0.5), seeds(0.5, 0.5)).p == 1
    assert gap(seeds(0.6, 0.6), seeds(0.5, 0.5)).p == 0
    assert verdict({"a": seeds(0.9), "b": seeds(0.1)}, {}).text.startswith("With a single seed each, ")
    assert verdict({"a": seeds(0.9), "b": seeds(0.1, 0.2)}, {}).text.startswith("1 of them has a single seed")


def test_many_comparisons_ask_for_more_than_one_does():
    once = gap(seeds(0.53, 0.54, 0.55), seeds(0.5, 0.5, 0.5))
    nothing = gap(seeds(0.5, 0.52, 0.48), seeds(0.5, 0.5, 0.5))
    assert once.p < 0.05
    assert clear([once]) == [True]
    assert clear([once, *[nothing] * 9]) == [False] * 10


def test_losses_below_their_inputs_rank_nothing():
    names = [f"loss {n}" for n in range(6)]
    values = {name: seeds(*(0.010 + 0.0004 * n + wiggle for wiggle in (0.0, 0.0005, -0.0004)))
              for n, name in enumerate(names)}  # fmt: skip
    values["loss 5"] = seeds(0.0185, 0.0175, 0.018)
    found = verdict(values, inputs(names, 0.0159, 0.0159, 0.0159), things="losses", measure="test MAP@R")
    assert found.headline.startswith(
        "5 of 6 losses end significantly below the raw inputs (test MAP@R: raw inputs 1.59 %)"
    )
    assert found.headline.endswith(verdicts.NO_RANKING)


def test_a_lead_is_only_called_one_when_it_is():
    noisy = {"a": seeds(0.50, 0.60, 0.70), "b": seeds(0.62, 0.52, 0.61), "c": seeds(0.55, 0.66, 0.50)}
    said = verdict(noisy, inputs(noisy, 0.1, 0.1, 0.1), things="poolings").text
    assert "leads" not in said
    assert says(said, "No significant difference between the poolings", "a (60.0 ± 10.0 %)")
    sure = noisy | {"a": seeds(0.90, 0.91, 0.92)}
    said = verdict(sure, inputs(sure, 0.1, 0.1, 0.1)).text
    assert says(said, "a leads b", "32.7 ± 5.7 points", "3 seeds")
    assert says(said, "1 of 2", "not significant")
    paired = {"a": seeds(0.31, 0.51, 0.72), "b": seeds(0.30, 0.50, 0.71)}  # the seed shifts both scores equally
    assert "a leads b" in verdict(paired, inputs(paired, 0.1, 0.1, 0.1)).text


def test_the_baseline_to_beat_is_the_highest_that_all_have():
    values = {"a": seeds(0.3, 0.31), "b": seeds(0.2, 0.22)}
    against = inputs(values, 0.1, 0.1) | {"untrained": {name: seeds(0.4, 0.41) for name in values}}
    assert says(verdict(values, against).headline, "below the untrained network", "40.5 %", "raw inputs 10.0")
    against["untrained"].pop("b")
    assert (
        "above the raw inputs, 1 of them significantly (MAP@R: raw inputs 10.0 %)" in verdict(values, against).headline
    )


def test_answers_asked_together_are_corrected_for_their_number():
    close = seeds(0.40, 0.42, 0.41), seeds(0.30, 0.35, 0.29)  # p = 0.03 on its own
    far = seeds(0.1, 0.3, 0.2), seeds(0.2, 0.1, 0.3)
    assert contrasts([close], [False]) == ["yes"]
    assert contrasts([close, far, far], [False] * 3) == [verdicts.UNDECIDED] * 3


def test_an_answer_is_yes_no_or_undecided():
    gsp, gap_ = seeds(0.36, 0.37, 0.35), seeds(0.50, 0.51, 0.49)
    pairs = [(gsp, gap_), (gsp, gap_), (seeds(0.4), seeds(0.5))]
    assert contrasts(pairs, [True, False, True]) == ["yes", "no", verdicts.UNDECIDED]
    said = describe_pair(("GSP", "GAP"), (gsp, gap_), "Weight")
    assert says(said, "Weight", "36.0 ± 1.0", "GSP", "50.0 ± 1.0 %", "GAP", "14.0 ± 0 points", "3 seeds")
    assert "−14.0" in said


@pytest.mark.parametrize(
    ("mean", "deviation", "words"),
    [
        (0.0137, 0.0004, "1.37 ± 0.04"),
        (0.943, 0.015, "94.3 ± 1.5"),
        (0.0086, 0.0011, "0.86 ± 0.11"),
        (0.5, None, "50.0"),
        (0.999, 0.00002, "99.900 ± 0.002"),
        (0.5, 1e-9, "50.000 ± < 0.001"),
        (0.5, 0.0, "50.0 ± 0"),
    ],
)
def test_noise_is_never_rounded_to_nothing(mean, deviation, words):
    assert spread(mean, deviation) == words


def test_rows_of_a_run_become_its_baselines():
    rows = [
        {"kind": "scores", "of": "inputs", "map_at_r": 0.1, "recall_at": {"1": 0.2, "2": 0.3}},
        {"kind": "scores", "of": "untrained", "map_at_r": 0.05, "recall_at": {"1": 0.1}},
        {"kind": "scores", "of": "trained", "map_at_r": 0.9, "recall_at": {"1": 0.9}},
        {"kind": "baseline", "of": "inputs", "part": "validation", "step": 0, "map_at_r": 0.4, "recall_at_1": None},
        {"kind": "step", "loss": 1.0},
    ]
    assert verdicts.baselines(rows, started=True) == {
        "inputs": {"map_at_r": 0.1, "recall_at_1": 0.2, "validation.map_at_r": 0.4},
        "pretrained": {"map_at_r": 0.05, "recall_at_1": 0.1},
    }
    assert math.isclose(verdicts.baselines(rows, started=False)["untrained"]["map_at_r"], 0.05)


def test_means_are_set_beside_what_seeds_do_and_a_tie_says_how_many_would_tell():
    values = {"a": seeds(0.30, 0.32, 0.31), "b": seeds(0.31, 0.30, 0.30), "c": seeds(0.10, 0.12, 0.11)}
    apart = verdicts.separation(values)
    within = [statistics.variance(of.values()) for of in values.values()]
    assert apart.pooled == pytest.approx(math.sqrt(statistics.fmean(within)))
    assert apart.means == pytest.approx(statistics.stdev(statistics.fmean(of.values()) for of in values.values()))
    table = np.array([list(of.values()) for of in values.values()])
    left = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    assert apart.paired == pytest.approx(np.sqrt((left**2).sum() / 4))  # (3 - 1) x (3 - 1)
    assert apart.chance == pytest.approx(1 / math.sqrt(3))
    assert verdicts.separation({"a": seeds(0.3), "b": seeds(0.2)}) is None
    assert verdicts.top(values) == ("a", "b")
    said = verdict(values, inputs(values, 0.05, 0.05, 0.05)).text
    assert gap(values["a"], values["b"]).needed > FEASIBLE
    assert says(said, f"{FEASIBLE} seeds", "not separate a from b", "0.7 ± 1.5 points", "3 seeds")
    closer = {"a": seeds(0.30, 0.32, 0.31), "b": seeds(0.29, 0.305, 0.285)}
    needed = gap(closer["a"], closer["b"]).needed
    assert 3 < needed <= FEASIBLE
    assert f"would take about {needed} seeds." in verdict(closer, inputs(closer, 0.05, 0.05, 0.05)).text
    assert "would take" not in verdict(closer, inputs(closer, 0.05, 0.05, 0.05), further=False).text
    assert f"seeds of a variant {100 * apart.pooled:.1f} points: a ratio of {apart.ratio:.1f}" in said


def test_classes_are_what_a_difference_is_asked_over():
    differences = np.random.default_rng(0).normal(0.01, 0.03, 40)
    low, high = stats.ttest_1samp(differences, 0).confidence_interval()
    said = over_classes(differences)
    assert (
        f"95 % interval of the mean difference is {100 * low:+.1f} to {100 * high:+.1f} points".replace("-", "−")
        in said
    )
    assert said.endswith("holds for other classes too." if low * high > 0 else "may not hold for other classes.")
    assert f"higher in {(differences > 0).sum()} and lower in {(differences < 0).sum()}" in said
    assert over_classes([0.1, -0.1, 0.05]).endswith("may not hold for other classes.")
