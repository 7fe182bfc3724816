"""Sentences on two variants, and on a study whose seeds are folds."""

import re

import pytest

from dmlcore.experiments import studies
from dmlcore.experiments.studies import comparisons
from dmlcore.experiments.studies.results import Measured, ValidationCurve
from dmlcore.experiments.studies.spec import Study
from dmlcore.spec import SpecError
from tests.experiments.studies.tiny import HEAD


def test_where_hundreds_of_seeds_were_needed_more_of_them_are_no_advice():
    study, found = studies.read("losses-omniglot"), studies.load("losses-omniglot").runs
    near = " ".join(studies.pair(study, found, ("Multi-similarity with proxies", "Cross-entropy")))
    assert re.search(r"More seeds will not settle this: finding such a difference .* takes \d{3} seeds of each", near)
    far = " ".join(studies.pair(study, found, ("ArcFace", "Entangled")))
    assert "will not settle" not in far
    assert re.search(r"Finding such a difference .* takes \d seeds of each", far)


def test_where_seeds_are_folds_the_words_say_so_and_ask_for_no_more_of_them():
    study, found = studies.read("cub-squeezenet"), studies.load("cub-squeezenet").runs
    said = studies.judge(study, found).text
    two = " ".join(studies.pair(study, found, ("GSP", "GAP")))
    for words in (said, two):
        assert "paired over 4 folds" in words
        assert "seed" not in words
        assert "leads" not in words
    assert "share training classes" in said
    assert "test classes" in two or not found[0].classes


def test_a_study_with_questions_says_what_the_order_of_the_others_is_worth():
    study, found = studies.read("cub-squeezenet"), studies.load("cub-squeezenet").runs
    assert "The means of the variants have a standard deviation of" in studies.judge(study, found).text
    named = [run for run in found if run.variant in ("GAP", "GSP")]
    assert "GSP is above" not in studies.judge(study, named).text, "the answers contain it"


METHODS = f"""{HEAD}
[[variants]]
name = "weak"

[[variants]]
name = "strong"

[[variants]]
name = "method"
against = ["weak", "strong"]

[[variants]]
name = "worse"
against = ["weak"]
"""
LEVELS = {"weak": (0.50, 0.6), "strong": (0.30, 0.7), "method": (0.40, 0.5), "worse": (0.20, 0.5)}  # test, validated
# effect of the seed on a variant in addition to the common effect
PACE = {"weak": 0.0, "strong": 0.0, "method": 0.001, "worse": 0.002}


def of_methods(seeds=(0, 1, 2), variants=LEVELS):
    return [
        Measured(
            variant=name,
            seed=seed,
            digest="",
            scores={"map_at_r": LEVELS[name][0] + 0.01 * seed + PACE[name] * seed},
            validation=ValidationCurve(),
            steps=1,
            seconds=1.0,
            device="CPU",
            validated=LEVELS[name][1],
            classes=(LEVELS[name][0] + 0.05, LEVELS[name][0] - 0.05),
            baselines={"chance": {"map_at_r": 0.01}, "inputs": {"map_at_r": 0.1 + (name == "weak") * 0.02}},
        )
        for seed in seeds
        for name in variants
    ]


def test_of_several_own_baselines_validation_chooses_and_paired_tests_answer():
    study = Study.from_toml(METHODS)
    method, worse = comparisons.compare(study, of_methods())
    assert (method.baseline, method.answer) == ("strong", "ahead"), "the weaker one tests better but must not be chosen"
    assert method.gap.mean == pytest.approx(0.101)
    assert (worse.baseline, worse.answer) == ("weak", "behind")
    assert (method.classes.higher, method.classes.count) == (2, 2)
    assert method.classes.interval == pytest.approx((0.1, 0.1))
    headline = studies.judge(study, of_methods()).headline
    assert headline == (
        "Significantly ahead of their own baseline: method. Significantly behind it: worse. "
        "No significant difference: 0 of 2."
    )


def test_own_baselines_lead_only_where_they_are_what_a_study_is_about():
    study = Study.from_toml(METHODS + '[[variants]]\nname = "alone"\n')
    verdict = studies.judge(study, of_methods())
    assert verdict.headline.startswith("All 4 variants end significantly above the raw inputs")
    assert verdict.more[-1].startswith("Significantly ahead of their own baseline: method.")


def test_the_table_of_methods_begins_with_what_needs_no_training():
    study = Study.from_toml(METHODS)
    inputs, chance, method, worse = comparisons.rows(study, of_methods())
    assert (inputs["method"], inputs["score"]) == ("raw inputs", "10.0 to 12.0")
    assert chance["score"] == "1.00"
    assert worse == {
        "data": "digits",
        "method": "worse",
        "score": "21.2 ± 1.2",
        "own baseline": "weak",
        "its score": "51.0 ± 1.0",
        "difference": "−29.80 ± 0.20",
        "p": "< 0.001",
        "verdict": "behind",
        "over the test classes": "higher in 0 of 2, −30.0 to −30.0",
    }
    head, *lines = comparisons.as_text([inputs, chance, method, worse]).splitlines()
    assert head.split()[:3] == ["data", "method", "score"]
    assert len(lines) == 4
    assert comparisons.rows(study, of_methods(variants=["method", "weak"])) == [], "a baseline is missing"


def test_one_seed_tells_nothing_of_a_method():
    study = Study.from_toml(METHODS)
    assert {each.answer for each in comparisons.compare(study, of_methods(seeds=(0,)))} == {comparisons.OPEN}


GROUPS = (
    METHODS.replace('against = ["weak", "strong"]\n', "").replace('against = ["weak"]\n', "")
    + """
[[contrasts]]
where = "A factor"
of = ["weak", "strong"]
against = ["method", "worse"]
sides = ["high", "low"]
"""
)


def test_a_factor_is_the_mean_of_the_variants_on_either_side_seed_by_seed():
    """Effects of a factorial design: each side is several variants, and the paired test is over the seeds."""
    study = Study.from_toml(GROUPS)
    judged = studies.judge(study, of_methods())
    assert judged.headline == "A factor: yes."
    # (0.50 + 0.30) / 2 - (0.40 + 0.20) / 2, minus 0.0015 per seed
    assert "(high) against" in judged.text
    assert "9.85 ± 0.15" in judged.text
    whole = of_methods()
    assert studies.judge(study, [run for run in whole if (run.variant, run.seed) != ("weak", 1)]).text != judged.text
    assert "A factor" not in studies.judge(study, of_methods(variants=["weak", "strong", "method"])).text
    with pytest.raises(SpecError, match="there is no variant 'nobody'"):
        Study.from_toml(GROUPS.replace('"method", "worse"]', '"method", "nobody"]'))


CORRELATED = f"""{HEAD}
[[correlations]]
where = "A smaller radius goes with a higher score"
score = "radius"
title = "radius"
falling = true

[[correlations]]
where = "The same relative to the distance"
score = "radius"
title = "relative radius"
over = "distance"
falling = true

[[variants]]
name = "only"
"""


def of_radii(count):
    """Variants whose MAP@R falls with the radius, which is proportional to the distance."""
    return [
        Measured(
            variant=f"variant {number}",
            seed=seed,
            digest="",
            scores={"map_at_r": 0.5 - 0.01 * number, "radius": 0.1 + number, "distance": 2 * (0.1 + number)},
            validation=ValidationCurve(),
            steps=1,
            seconds=1.0,
            device="CPU",
        )
        for number in range(count)
        for seed in (0, 1)
    ]


def test_a_correlation_over_the_variants_is_answered_with_its_interval():
    verdict = studies.judge(Study.from_toml(CORRELATED), of_radii(12))
    assert verdict.headline.startswith("A smaller radius goes with a higher score: yes.")
    assert "relative" not in verdict.headline, "the relative radius is the same for all"
    assert (
        "Radius and test MAP@R: rank correlation −1.00 (95 % interval −1.00 to −1.00) over 12 variants." in verdict.text
    )
    rising = Study.from_toml(CORRELATED.replace("falling = true", "falling = false"))
    assert "higher score: no, the opposite." in studies.judge(rising, of_radii(12)).headline


def test_a_correlation_over_few_variants_is_not_answered():
    assert "A smaller radius" not in studies.judge(Study.from_toml(CORRELATED), of_radii(5)).text


def test_the_points_are_means_over_the_seeds_that_have_both_scores():
    runs = of_radii(2)
    runs[1] = runs[1].model_copy(update={"scores": {"map_at_r": 0.9}})
    points = studies.points(runs, "radius", "map_at_r", "distance")
    assert points == {"variant 0": pytest.approx((0.5, 0.5)), "variant 1": pytest.approx((0.5, 0.49))}


def test_questions_on_methods_with_baselines_are_answered_before_the_comparison():
    asked = METHODS.replace(
        "minutes = 1", 'minutes = 1\n\n[[contrasts]]\nwhere = "Strong wins"\nof = "strong"\nagainst = "weak"', 1
    )
    headline = studies.judge(Study.from_toml(asked), of_methods()).headline
    assert headline.startswith("Strong wins: no.")
    assert "Significantly ahead of their own baseline" in headline
