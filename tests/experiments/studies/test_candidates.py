"""The choice among the candidates of a variant: validation scores alone decide, and all candidates are counted."""

import re

import pytest

from dmlcore.experiments import studies, trial_ledger
from dmlcore.experiments.studies import candidates
from dmlcore.experiments.studies.results import StudyResults, keep_chosen
from dmlcore.experiments.studies.spec import Study
from dmlcore.spec import SpecError
from tests.experiments.studies.tiny import DIGITS, HEAD
from tests.experiments.test_trial_ledger import measured
from tests.members import in_one_case

TOML = f"""{HEAD}
seeds = [0, 1, 2]
choice_seeds = [0]
{DIGITS}
[[variants]]
name = "Ranking"
overrides = ["loss.name=ranking"]
choose = ["loss.m=0.1", ["loss.m=0.2", "loss.m2=1"], "loss.m=0.4"]

[[variants]]
name = "FaceNet"
overrides = ["loss.name=facenet"]
choose = ["loss.m=0.1", "loss.m=0.2", "loss.m=0.4"]
"""
LISTED = ', "loss.m=0.2", "loss.m=0.4"'
FIRST, SECOND, THIRD = "loss.m=0.1", "loss.m=0.2, loss.m2=1", "loss.m=0.4"


def entries_of(text: str = TOML, **more):
    return studies.expand(Study.from_toml(text), **more)


def reach(entries, validated, test=0.5):
    """Return results with a validation score by candidate, and one test score or one by candidate."""
    return [
        measured(entry, test.get(entry.candidate, 0.5) if isinstance(test, dict) else test).model_copy(
            update={"candidate": entry.candidate, "validated": validated[entry.candidate]}
        )
        for entry in entries
    ]


def test_all_candidates_have_the_seeds_of_the_choice_and_only_the_chosen_one_the_others():
    entries = entries_of()
    first = candidates.runs_to_train(entries, {})
    assert [(e.variant, e.candidate, e.seed) for e in first][:4] == [
        *(("Ranking", name, 0) for name in (FIRST, SECOND, THIRD)),
        ("FaceNet", FIRST, 0),
    ]
    assert len(first) == 6
    assert first[1].spec.loss.parameters == {"m": 0.2, "m2": 1.0}
    scores = {"Ranking": {FIRST: (0.1,), SECOND: (0.3,), THIRD: (0.2,)}}
    every = candidates.runs_to_train(entries, scores)
    assert [(e.variant, e.candidate, e.seed) for e in every[6:]] == [("Ranking", SECOND, 1), ("Ranking", SECOND, 2)]
    assert candidates.count_runs(entries) == 6 + 2 * 2
    everywhere = entries_of(TOML.replace("choice_seeds = [0]\n", ""))
    assert candidates.count_runs(everywhere) == len(candidates.runs_to_train(everywhere, {})) == 2 * 3 * 3


def test_other_seeds_than_those_of_the_study_keep_the_seeds_of_the_choice():
    entries = entries_of(seeds=[7])
    assert {e.seed for e in candidates.runs_to_train(entries, {})} == {0}
    assert {e.seed for e in entries if e.if_chosen} == {7}


def test_the_best_mean_over_the_seeds_is_chosen_and_of_equal_ones_the_first():
    assert candidates.best({"a": (0.1, 0.9), "b": (0.5, 0.6), "c": (0.4, 0.4)}) == "b"
    assert candidates.best({"a": (0.5,), "b": (0.5,)}) == "a"


@in_one_case(test=[0.0, 0.9, {FIRST: 0.99, SECOND: 0.01}, {FIRST: 0.01, SECOND: 0.99}])
def test_a_test_score_never_chooses(test):
    entries = entries_of(only="Ranking")
    runs = reach(entries, {FIRST: 0.2, SECOND: 0.4, THIRD: 0.3}, test)
    kept = keep_chosen(entries, runs)
    assert {run.candidate for run in kept} == {SECOND}
    assert [run.seed for run in kept] == [0, 1, 2]
    assert kept[0].candidates == {FIRST: (0.2,), SECOND: (0.4,), THIRD: (0.3,)}


def test_no_candidate_is_a_result_before_all_are_validated():
    entries = entries_of(only="Ranking")
    runs = reach(entries, {FIRST: 0.2, SECOND: 0.4, THIRD: None})
    assert keep_chosen(entries, runs) == []
    assert keep_chosen(entries, runs[1:3]) == []


def test_table_and_verdict_say_what_was_chosen():
    study, entries = Study.from_toml(TOML), entries_of()
    kept = keep_chosen(entries, reach(entries, dict.fromkeys((FIRST, "loss.m=0.2", SECOND), 0.1) | {THIRD: 0.3}))
    rows = studies.table(kept)
    assert [row["chosen"] for row in rows] == [f"{THIRD} (of 3)"] * 2
    assert f"Ranking  3      {THIRD} (of 3)" in studies.as_text(rows)
    assert studies.judge(study, kept).more[-2:] == (
        "Settings: the best of 3 candidates for each of the variants, chosen by MAP@R on the validation split with "
        "seed 0.",
        "1 of 1 choices lie at an end of their list of candidates (FaceNet): a longer list might score higher.",
    )


def test_the_ledger_counts_every_candidate_and_shows_no_test_score_of_a_rejected_one(monkeypatch):
    study, entries = Study.from_toml(TOML), entries_of(only="Ranking")
    kept = keep_chosen(entries, reach(entries, {FIRST: 0.2, SECOND: 0.4, THIRD: 0.3}, {FIRST: 0.777, SECOND: 0.6}))
    stored = StudyResults(study="tiny", written="", torch="", machine="", data={}, runs=tuple(kept))
    monkeypatch.setattr(trial_ledger, "read", lambda name: study)
    monkeypatch.setattr(trial_ledger, "load", lambda name: stored)
    monkeypatch.setattr(trial_ledger, "names", lambda: ["tiny"])
    monkeypatch.setattr(studies.StudyRequest, "entries", lambda self: entries)
    found = trial_ledger.ledger("tiny")
    assert (found.configurations, found.runs) == (3, 3 + 2)
    rows = trial_ledger.rows(found)
    assert [row["configuration"] for row in rows] == [f"Ranking, {name}" for name in (SECOND, THIRD, FIRST)]
    assert [row["result"] for row in rows] == [
        "60.0 ± 0 %",
        "not chosen, validation 30.0 %",
        "not chosen, validation 20.0 %",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (LISTED, "", "variants.FaceNet.choose: one candidate leaves no choice"),
        (LISTED, ', "loss.m=0.2"', "variants.FaceNet.choose: has 2 candidates, but 'Ranking'"),
        (LISTED, ', "loss.m=0.10", "loss.m=1"', "variants.FaceNet.choose: candidates 1 and 2"),
        (LISTED, ', "loss.m=0.2", "schedule.steps=9"', "variants.FaceNet.choose: schedule.steps must"),
        (LISTED, ', "loss.m=0.2", "loss"', "variants.FaceNet.choose.3: loss: expected key=value"),
        ('name = "digits"', 'name = "digits"\nvalidation = "none"', "variants.Ranking.choose: candidates are compared"),
        ("choice_seeds = [0]", "folds = 2", "variants.Ranking.choose: a study with folds has no candidates"),
    ],
)
def test_candidates_that_cannot_be_compared_are_refused(old, new, message):
    assert old in TOML
    with pytest.raises(SpecError, match=f"^{re.escape(message)}"):
        Study.from_toml(TOML.replace(old, new))


@pytest.mark.parametrize(
    ("chosen", "others", "at_end"),
    [
        ("loss.m=0.1", ["loss.m=0.1", "loss.m=0.2", "loss.m=0.4"], True),
        ("loss.m=0.2", ["loss.m=0.4", "loss.m=0.2", "loss.m=0.1"], False),
        ("loss.m=1e1", ["loss.m=0.4", "loss.m=1e1", "loss.m=0.1"], True),
        ("loss.m=0.1", ["loss.m=0.1", "loss.rho=0.2"], None),
        ("loss.name=ranking", ["loss.name=ranking", "loss.name=ratio"], None),
        (SECOND, [FIRST, SECOND, THIRD], None),
    ],
)
def test_a_choice_at_the_end_of_a_list_of_numbers_is_found(chosen, others, at_end):
    assert candidates.is_at_end(chosen, others) is at_end


def test_the_verdict_says_how_many_choices_lie_at_an_end():
    results = studies.load("forces-birds")
    ended = {
        run.variant for run in results.runs if run.candidate and candidates.is_at_end(run.candidate, run.candidates)
    }
    sentence = studies.judge(studies.read("forces-birds"), results.runs).more[-1]
    assert sentence.startswith(f"{len(ended) or 'None'} of 20 choices lie at an end of their list of candidates")
