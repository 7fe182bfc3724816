"""Importance of settings: checked against scores whose answer is known."""

import random

import pytest

from dmlcore.experiments import importance, settings
from dmlcore.spec import RunSpec


def make_run(overrides, score):
    return settings.settings(RunSpec().with_overrides(overrides)), score


def sweep(count, noise=0.02, seed=0):
    """Return runs whose score rises by 0.4 over the learning rates and by 0.1 for Adam, and by nothing else."""
    random_ = random.Random(seed)
    runs = []
    for _ in range(count):
        decade, adam = random_.uniform(-4, -2), random_.random() < 0.5
        rate, margin = 10**decade, random_.uniform(0.1, 0.5)
        name = "adam" if adam else "sgd"
        overrides = [f"optimiser.learning_rate={rate:.6g}", f"optimiser.name={name}", f"loss.m={margin:.4f}"]
        overrides.append(f"seed={random_.randrange(5)}")
        runs.append(make_run(overrides, 0.4 * (decade + 4) / 2 + 0.1 * adam + random_.gauss(0, noise)))
    return runs


def test_the_shares_of_the_variance_are_those_that_were_put_in():
    study = importance.trials(sweep(80))
    assert study.count == 80
    assert set(study.keys) == {"optimiser.learning_rate", "optimiser.name", "loss.parameters.m", "seed"}
    found = importance.importances(study)
    # Variances: 0.4 ** 2 / 12 = 0.0133 of the rate and (0.1 / 2) ** 2 = 0.0025 of the optimiser.
    assert list(found)[:2] == ["optimiser.learning_rate", "optimiser.name"]
    assert found["optimiser.learning_rate"] == pytest.approx(0.0133 / 0.0158, abs=0.12)
    assert found["optimiser.name"] == pytest.approx(0.0025 / 0.0158, abs=0.12)
    assert found["loss.parameters.m"] + found["seed"] < 0.05
    assert sum(found.values()) == pytest.approx(1)


def test_ranges_and_choices_are_as_the_runs_had_them():
    from optuna.distributions import CategoricalDistribution

    trials = importance.trials(sweep(30)).study.get_trials()
    known = trials[0].distributions
    assert known["optimiser.learning_rate"].log
    assert not known["loss.parameters.m"].log
    assert known["optimiser.name"] == CategoricalDistribution(["adam", "sgd"])
    assert (known["seed"].low, known["seed"].high) == (0, 4)


def test_what_varies_together_is_one_and_what_not_all_have_stays_out():
    runs = [
        make_run([f"loss.name={loss}", f"batch.classes={classes}", f"batch.samples={samples}"], 0.1 * classes)
        for loss, classes, samples in (("ranking", 4, 8), ("facenet", 4, 8), ("ranking", 8, 4), ("facenet", 8, 4))
    ]
    study = importance.trials(runs, title=str.upper)
    assert study.keys == {"LOSS.NAME": "loss.name", "BATCH.CLASSES": "batch.classes"}
    assert study.alike == {"BATCH.CLASSES": ("batch.samples",)}
    tied = [make_run([f"schedule.steps={10 * k}", f"schedule.warm_up={9 - k}"], 0.1 * k) for k in range(1, 7)]
    assert importance.trials(tied).alike == {"schedule.steps": ("schedule.warm_up",)}


def test_repeats_by_other_seeds_are_no_further_points():
    runs = [make_run([f"seed={seed}", f"loss.m={m}"], m + seed / 100) for seed in range(4) for m in (0.1, 0.2, 0.3)]
    study = importance.trials(runs)
    assert (study.count, study.points) == (12, 3)


def test_an_open_clamp_is_a_word():
    runs = [make_run([f"loss.m2={value}"], score) for value, score in (("inf", 0.1), ("1.0", 0.2), ("2.0", 0.3))]
    values = [trial.params["loss.parameters.m2"] for trial in importance.trials(runs).study.get_trials()]
    assert values == ["inf", "1.0", "2.0"]


def test_of_too_few_runs_or_equal_scores_nothing_is_said():
    assert importance.importances(importance.trials(sweep(importance.LEAST - 1))) == {}
    assert importance.importances(importance.trials([(each, 0.5) for each, _ in sweep(20)])) == {}
    assert importance.importances(importance.trials([make_run([], 0.1 * k) for k in range(8)])) == {}
