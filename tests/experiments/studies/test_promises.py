"""Promised and measured false match rates in the results, the table and the verdict of a study."""

import pytest

from dmlcore.experiments import studies
from dmlcore.experiments.studies import promises
from dmlcore.experiments.studies.results import Measured, ValidationCurve
from dmlcore.experiments.studies.spec import Study
from dmlcore.inspection import class_sides, thresholds
from dmlcore.storage.runs import RunStore
from tests.experiments.studies.tiny import HEAD
from tests.inspection.threshold_runs import OPEN, QUICK, THREE

TOML = f"""{HEAD}
fmr = 0.1
things = "losses"

[[variants]]
name = "careful"

[[variants]]
name = "careless"
overrides = ["loss.m=0.3"]

[[variants]]
name = "undecided"
overrides = ["loss.m=0.5"]
"""
# variant -> measured rate, low end of its interval by seed
RATES = {"careful": (0.09, (0.05, 0.06)), "careless": (0.3, (0.2, 0.25)), "undecided": (0.15, (0.09, 0.11))}


def reach(variant, seed):
    measured, low = RATES[variant]
    scores = {
        "map_at_r": 0.5,
        "eer": 0.2,
        "opis": 0.01,
        "fnmr": 0.4,
        "fmr.train": 0.5,
    }
    return Measured(
        variant=variant,
        seed=seed,
        digest=f"{variant} {seed}",
        scores=scores
        | {"fmr": measured, "fmr.low": low[seed], "fmr.high": measured + 0.2, "fmr.train.low": 3 * low[seed] - 0.1},
        validation=ValidationCurve(),
        steps=1,
        seconds=1.0,
        device="CPU",
        baselines={"inputs": scores | {"eer": 0.1, "fmr": 0.05, "fmr.low": 0.0, "fmr.high": 0.1}},
    )


def test_a_promise_is_kept_or_broken_only_if_the_intervals_of_all_seeds_agree():
    study, found = Study.from_toml(TOML), [reach(variant, seed) for variant in RATES for seed in (0, 1)]
    kept, trained = promises.summary(study, found)
    assert kept == (
        "A threshold that promises 10 % false matches on the validation classes gives 9 % (careful) to 30 % (careless) "
        "on test classes. The interval over the classes lies above the promise with every seed for 1 of 3 losses, with "
        "no seed for careful."
    )
    assert trained == (
        "A threshold that promises 10 % on the training classes gives 50 to 50 % on test classes, above the promise "
        "with every seed for 2 of 3 losses."
    )
    assert kept in studies.judge(study, found).text
    none = [run for run in found if run.variant == "careless"]
    assert promises.summary(study, none)[0].endswith("for 1 of 1 losses, with no seed for none.")


def test_the_table_has_the_baselines_and_the_ratio_with_its_interval():
    study, found = Study.from_toml(TOML), [reach(variant, seed) for variant in RATES for seed in (0, 1)]
    rows = {row["variant"]: row for row in promises.rows(study, found, studies.baseline_rows(found))}
    assert list(rows) == ["raw inputs", *RATES]
    assert rows["careless"]["measured / promised"] == "3.00 (2.25 to 5.00)"
    assert rows["careless"]["false matches"] == "30.0 ± 0"
    assert rows["raw inputs"]["EER"] == "10.0"
    assert rows["undecided"]["OPIS x 1000"] == "10.0 ± 0"


def test_a_study_without_thresholds_says_nothing_of_them():
    study, found = studies.read("forces-birds"), studies.load("forces-birds").runs
    assert study.fmr == 0
    assert promises.summary(study, found) == []
    assert promises.rows(study, found) == []


@pytest.mark.usefixtures("forked_tasks")
def test_written_results_have_the_rates_of_the_recommended_threshold(tmp_path):
    path = tmp_path / "tiny.toml"
    settings = "".join(f'"{each}", ' for each in (*OPEN, *QUICK, THREE))
    path.write_text(f'{HEAD}\nfmr = 0.1\nseeds = [0]\n[[variants]]\nname = "one"\noverrides = [{settings}]\n')
    store, request = RunStore(tmp_path / "runs"), studies.StudyRequest(study=str(path))
    studies.conduct(request, store)
    studies.write(request, store)
    (run,) = studies.load(str(path)).runs
    (made,) = store.list()
    found = thresholds.threshold(made, 0.1)
    assert {name: run.scores[name] for name in ("eer", "opis", "fmr", "fnmr", "fmr.low", "fmr.high")} == {
        "eer": found.unseen.eer,
        "opis": found.unseen.opis,
        "fmr": found.unseen.fmr,
        "fnmr": found.unseen.fnmr,
        "fmr.low": found.unseen.fmr_interval.low,
        "fmr.high": found.unseen.fmr_interval.high,
    }
    trained = thresholds.recommend(class_sides.sides(made, seen="train"), 0.1)
    assert trained.seen.name == "training classes"
    assert run.scores["fmr.train"] == trained.unseen.fmr
    assert trained.unseen.fmr_interval is None
    assert run.scores["fmr.train.low"] == 0
    raw = thresholds.recommend(class_sides.baselines(made)["inputs"], 0.1)
    assert run.baselines["inputs"]["eer"] == raw.unseen.eer
    assert run.baselines["untrained"]["fmr"] > 0
