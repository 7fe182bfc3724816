"""Selection of step and setting by test scores, next to the selection by validation scores that all results use."""

import pytest

from dmlcore.experiments import studies
from dmlcore.experiments.studies import scores_by_test, selection
from dmlcore.experiments.studies.results import keep_chosen
from dmlcore.experiments.studies.scores_by_test import BY_STEP, BY_STEP_AND_SETTING
from dmlcore.experiments.studies.spec import Study
from tests.experiments.studies.test_candidates import FIRST, SECOND, THIRD, TOML, reach

WHOLE = TOML.replace("choice_seeds = [0]\n", "")  # all candidates have all seeds


def with_test_scores(entries, by_step):
    """Return results that SECOND wins on validation, with MAP@R 0.5 and a best test score by candidate and seed."""
    validated = dict.fromkeys((FIRST, "loss.m=0.2", THIRD), 0.1) | {SECOND: 0.4}
    return [
        run.model_copy(update={"scores": run.scores | {BY_STEP: by_step[run.candidate] + 0.01 * run.seed}})
        for run in reach(entries, validated)
    ]


def ranking(text=WHOLE):
    study = Study.from_toml(text)
    entries = studies.expand(study, only="Ranking")
    entries = [entry for entry in entries if not entry.if_chosen or entry.candidate == SECOND]  # those that are trained
    return study, keep_chosen(entries, with_test_scores(entries, {FIRST: 0.6, SECOND: 0.52, THIRD: 0.4}))


def test_the_best_test_score_is_that_of_any_validated_step():
    rows = [{"kind": "validation", "step": step, "test_map_at_r": x} for step, x in ((0, 0.1), (1, 0.4), (2, 0.3))]
    assert scores_by_test.best_step([*rows, {"kind": "step", "step": 2}]) == {BY_STEP: 0.4}
    assert scores_by_test.best_step([{"kind": "validation", "step": 0, "map_at_r": 0.1}]) == {}


def test_validation_keeps_choosing_and_the_test_choice_stands_next_to_it():
    _, kept = ranking()
    assert {run.candidate for run in kept} == {SECOND}
    assert [run.scores["map_at_r"] for run in kept] == [0.5] * 3
    assert [run.scores[BY_STEP] for run in kept] == pytest.approx([0.52, 0.53, 0.54])
    assert [run.scores[BY_STEP_AND_SETTING] for run in kept] == pytest.approx([0.6, 0.61, 0.62])


def test_only_seeds_with_all_candidates_are_compared():
    _, kept = ranking(TOML)
    assert [BY_STEP_AND_SETTING in run.scores for run in kept] == [True, False, False]
    (gain,) = selection.compare(kept)
    assert gain.step_and_setting == {0: 0.6}
    assert not gain.significant


def test_verdict_and_table_state_the_gain_with_its_interval():
    study, kept = ranking()
    verdict = studies.judge(study, kept)
    assert verdict.headline.startswith(
        "Selection on the test split adds 11.0 points of MAP@R on average over the 1 variants (95 % interval "
        "+8.5 to +13.5, 3 seeds); it is significant for 1 of 1."
    )
    assert verdict.more[0].startswith("Selecting only the step on the test split adds 3.0 points.")
    (row,) = selection.rows(kept)
    assert (row["by validation"], row["step by test"], row["step and setting by test"]) == (
        "50.0 ± 0",
        "53.0 ± 1.0",
        "61.0 ± 1.0",
    )
    assert (row["difference"], row["95 % interval"], row["verdict"]) == (
        "+11.0 ± 1.0",
        "+8.5 to +13.5",
        "significant",
    )


def test_the_verdict_compares_the_best_under_both_selections():
    study = Study.from_toml(WHOLE)
    entries = studies.expand(study)
    kept = keep_chosen(entries, with_test_scores(entries, {FIRST: 0.6, SECOND: 0.52, THIRD: 0.4, "loss.m=0.2": 0.7}))
    kept = [
        run.model_copy(update={"scores": run.scores | {"map_at_r": 0.48}}) if run.variant == "FaceNet" else run
        for run in kept
    ]
    assert (
        "Ranking has the highest mean if validation selects, FaceNet if test scores do; by validation, it is 2.0 "
        "points above FaceNet."
    ) in studies.judge(study, kept).headline


def test_other_studies_have_no_such_table():
    results = studies.load("forces-birds").runs
    assert selection.rows(results) == []
    assert selection.summary(studies.read("forces-birds"), results) == []


def test_only_the_studies_on_selection_measure_test_scores_in_training():
    measured = {name for name in studies.names() if studies.read(name).base.schedule.validate_test}
    assert measured == {"selection-birds", "selection-omniglot"}
