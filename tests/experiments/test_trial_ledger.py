"""The ledger counts every configuration once, for all seeds and folds, and the trials outside studies."""

import pytest

from dmlcore.experiments import attribution, studies, trial_ledger
from dmlcore.experiments.attribution import design
from dmlcore.experiments.studies import Measured, StudyResults
from dmlcore.experiments.studies.results import ValidationCurve
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore


def measured(entry, score, fold=0, validated=0.5, best_step=10):
    return Measured(
        variant=entry.variant,
        seed=entry.seed,
        digest=entry.digest(),
        scores={"map_at_r": score, "train.map_at_r": score},
        validation=ValidationCurve(),
        steps=10,
        seconds=1.0,
        device="CPU",
        fold=fold,
        validated=validated,
        best_step=best_step,
    )


def results(name, runs):
    return StudyResults(study=name, written="", torch="", machine="", data={}, runs=tuple(runs))


def test_configurations_are_counted_once_and_the_quoted_one_stands_first(monkeypatch):
    entries = {name: studies.expand(studies.read(name)) for name in ("tokens-sweep", "tokens-epsilon")}
    stored = {
        name: results(name, [measured(entry, 0.9 if "100" in entry.variant else 0.3) for entry in of])
        for name, of in entries.items()
    }
    monkeypatch.setattr(trial_ledger, "load", stored.get)
    found = trial_ledger.ledger("tokens-sweep")
    names = [(trial.study, trial.variant) for trial in found.trials]
    assert names[0] == ("tokens-epsilon", "GSP, epsilon 200")
    # 13 open settings; of the five at mu 0.3 GAP, epsilon 5, 20 and 100 are among them
    assert len(names) == 13 + 1
    assert ("tokens-epsilon", "GAP") in names
    assert ("tokens-sweep", "GAP") not in names, "the same settings with more seeds count once"
    outside = sum(each.configurations for each in found.claim.outside)
    assert found.configurations == 14 + outside
    assert found.runs == 15 + 9 + sum(each.runs for each in found.claim.outside)
    assert found.words.endswith("The claim quotes one of them: GSP, epsilon 200.")
    rows = trial_ledger.rows(found)
    assert rows[0]["configuration"] == "GSP, epsilon 200 (quoted)"
    assert rows[-1]["where"] == "outside the studies"


def test_a_study_of_no_claim_has_its_own_trials_and_patterns_take_in_new_studies(monkeypatch):
    assert trial_ledger.ledger("prototypes").claim.studies == ("prototypes",)
    every = (trial_ledger.Claim(title="All of them", studies=("*",)),)
    monkeypatch.setattr(trial_ledger, "claims", lambda: every)
    found = trial_ledger.ledger("prototypes")
    again = {"projections-omniglot"}  # its two configurations also belong to methods-omniglot and count once
    assert {trial.study for trial in found.trials} == {name for name in studies.names() if studies.load(name)} - again
    assert found.configurations == len(found.trials)


def test_every_claim_names_studies_and_a_variant_that_exist():
    for claim in trial_ledger.claims():
        if claim.quoted:
            study, variant = claim.quoted
            assert variant in [each.name for each in studies.read(study).variants]
            assert trial_ledger.ledger(study).claim == claim


def test_a_mistake_in_the_file_is_named(monkeypatch, tmp_path):
    bad = tmp_path / "trials.toml"
    bad.write_text('[[claims]]\ntitle = "a"\nstudies = ["b"]\nquote = "c"\n')
    monkeypatch.setattr(trial_ledger, "FILE", bad)
    trial_ledger.claims.cache_clear()
    with pytest.raises(SpecError, match=r"trials\.toml: claims\.0\.quote: unknown key; did you mean quoted\?"):
        trial_ledger.claims()
    trial_ledger.claims.cache_clear()


def test_runs_of_this_machine_on_the_same_data_are_counted(tmp_path):
    store = RunStore(tmp_path)
    assert trial_ledger.count_runs("tokens", store) == 0
    spec = studies.expand(studies.read("tokens"))[0].spec
    store.create(spec.with_overrides(["loss.m_neg=0.7"]))
    store.create(spec.with_overrides(["data.name=digits", "model.name=mlp"]))
    assert trial_ledger.count_runs("tokens", store) == 1


def test_the_best_fold_by_validation_stands_for_its_seed_and_a_start_may_be_left_out():
    entry = studies.expand(studies.read("toy-table-raw"))[0]
    reached = [(0.3, 0.5, 90), (0.2, 0.7, 0), (0.4, 0.6, 50)]
    folds = [measured(entry, score, fold, best, step) for fold, (score, best, step) in enumerate(reached, 1)]
    assert [run.fold for run in studies.best_folds(folds)] == [2]
    assert [run.fold for run in studies.best_folds(folds, started=False)] == [3]
    assert studies.best_folds(folds[1:2], started=False) == []
    plain = [measured(entry, 0.1), measured(entry, 0.2).model_copy(update={"seed": 9})]
    assert studies.best_folds(plain) == plain


def test_the_runs_of_an_attribution_are_trials_and_its_first_point_is_the_study_itself(monkeypatch):
    name = "forces-omniglot"
    study, written = studies.read(name), studies.load(name)
    variant = attribution.contrast_of(study).of[0]
    chosen = {run.variant: run.candidate for run in written.runs if run.candidate}
    points = design.points(study.attribution)[:2]
    runs = [
        attribution.ScoredRun(point=point, variant=variant, seed=seed, digest="", score=0.5, seconds=1.0)
        for point in points
        for seed in (0, 1)
    ]
    of_attribution = attribution.AttributionResults(
        study=name, written="", torch="", machine="", chosen=chosen, runs=tuple(runs)
    )
    monkeypatch.setattr(attribution, "load", lambda study: None)
    before, sources = trial_ledger.ledger(name), trial_ledger.sources(name)
    monkeypatch.setattr(attribution, "load", lambda study: of_attribution if study == name else None)
    after = trial_ledger.ledger(name)
    assert after.configurations == before.configurations + 1
    (added,) = [trial for trial in after.trials if trial.variant not in {each.variant for each in before.trials}]
    settings = ", ".join(attribution.overrides(study.attribution, points[1]))
    assert (added.variant, added.scores, added.runs) == (f"{variant}, {settings}", (0.5, 0.5), 2)
    assert trial_ledger.sources(name) != sources
