"""Collapse monitor on training runs that really fail, and on healthy ones."""

from dataclasses import replace

import numpy as np
import pytest

from dmlcore import data
from dmlcore.monitoring.health import watch
from dmlcore.presets import SPECS
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop

BATCH_HARD = ["miner.name=batch_hard", "loss.m=0.2"]


@pytest.fixture(scope="module")
def digits():
    """Few images, for fast embedding; a third of the training split is enough for learning."""
    whole = data.load("digits", split="samples", validation="samples")
    return replace(whole, splits={name: rows[:: {"train": 3}.get(name, 2)] for name, rows in whole.splits.items()})


@pytest.fixture(scope="module")
def shuffled(digits):
    """Shuffled labels, from which nothing can be learned."""
    return replace(digits, labels=np.random.default_rng(0).permutation(digits.labels))


@pytest.fixture(scope="module")
def memorised(digits):
    """Sixty training samples with wrong labels, which a network memorises."""
    few = digits.splits["train"][:60]
    labels = digits.labels.copy()
    labels[few] = np.random.default_rng(0).permutation(labels[few])
    return replace(digits, labels=labels, splits=dict(digits.splits) | {"train": few})


def train_run(folder, *overrides, dataset):
    """Return rows and spec of a training run on one thread."""
    spec = RunSpec.from_toml((SPECS / "digits.toml").read_text())
    spec = spec.with_overrides(overrides)
    run = RunStore(folder).create(spec)
    with run.lock():
        loop.train(run, dataset=dataset)
    return run.metrics()[0], run.spec


def only(warnings, *kinds):
    assert [warning.kind for warning in warnings] == list(kinds), warnings
    for warning in warnings:
        assert warning.sentence.endswith(".")
        assert warning.remedies
        assert warning.since >= 0
    return warnings[0] if warnings else None


@pytest.mark.parametrize(
    "overrides",
    [
        ["schedule.steps=200"],
        ["loss.m=0.2", "schedule.steps=80"],
        [*BATCH_HARD, "schedule.steps=150"],
        ["loss.name=contrastive", "schedule.steps=80"],
        ["optimiser.learning_rate=0.3", "schedule.steps=80"],
    ],
    ids=["preset", "small margin", "batch hard recovers", "pairs", "too fast, but it learns"],
)
def test_a_healthy_training_has_no_finding_at_any_time(overrides, digits, tmp_path):
    rows, spec = train_run(tmp_path, *overrides, dataset=digits)
    for end in range(0, len(rows) + 1, 20):
        only(watch(rows[:end], spec))
    only(watch(rows))


def test_batch_hard_on_wrong_labels_collapses_to_a_point_at_its_margin(shuffled, tmp_path):
    rows, spec = train_run(tmp_path, *BATCH_HARD, "optimiser.learning_rate=0.01", "schedule.steps=80", dataset=shuffled)
    found = only(watch(rows, spec), "point")
    assert found.since <= 30
    assert "semi_hard" in " ".join(found.remedies)
    # Without measurements, the loss alone reveals it if the spec provides the margin.
    bare = [row for row in rows if row["kind"] != "measure"]
    found = only(watch(bare, spec), "margin")
    assert "0.2" in found.sentence
    assert "margin" not in [warning.kind for warning in watch(bare)]


def test_a_bottleneck_of_one_unit_leaves_a_line(digits, tmp_path):
    rows, spec = train_run(tmp_path, "model.hidden=[1]", "schedule.steps=60", "model.normalize=false", dataset=digits)
    found = next(warning for warning in watch(rows, spec) if warning.kind == "dimensions")
    assert "of 64 dimensions" in found.sentence
    narrow = spec.with_overrides(["model.embedding_dim=2"])
    assert "dimensions" not in [warning.kind for warning in watch(rows, narrow)]


def test_a_tiny_training_split_is_learned_by_heart(memorised, tmp_path):
    rows, spec = train_run(
        tmp_path, "schedule.steps=150", "schedule.validate_every=30", "optimiser.learning_rate=0.003", dataset=memorised
    )
    idle, overfit = watch(rows, spec)
    assert (idle.kind, overfit.kind) == ("idle", "overfit")


@pytest.mark.parametrize("rate", ["2.0", "10.0"])
def test_too_large_a_step_explodes_and_is_told_from_the_rows_before_the_failure(rate, digits, tmp_path):
    rows, spec = train_run(
        tmp_path,
        "optimiser.name=sgd",
        f"optimiser.learning_rate={rate}",
        "model.normalize=false",
        "schedule.steps=100",
        dataset=digits,
    )
    assert len([row for row in rows if row["kind"] == "step"]) < 100
    found = only(watch(rows, spec), "exploding")
    assert "learning_rate" in found.remedies[0]


def test_a_learning_rate_of_nothing_is_flat(digits, tmp_path):
    rows, spec = train_run(tmp_path, "optimiser.learning_rate=1e-7", "schedule.steps=60", dataset=digits)
    found = only(watch(rows, spec), "flat")
    assert "active all the time" in found.sentence


DECAY = ["model.normalize=false", "schedule.steps=150", "schedule.validate_every=25"]


def test_weight_decay_that_undoes_the_training(digits, tmp_path):
    overrides = ["optimiser.weight_decay=0.5", "optimiser.learning_rate=0.002", *DECAY]
    rows, spec = train_run(tmp_path, *overrides, dataset=digits)
    found = only(watch(rows, spec), "worse")
    assert 25 <= found.since <= 100


def test_weight_decay_that_shrinks_everything_to_the_origin(digits, tmp_path):
    overrides = ["optimiser.name=sgd", "optimiser.weight_decay=1.0", "optimiser.learning_rate=0.003", *DECAY]
    rows, spec = train_run(tmp_path, *overrides, dataset=digits)
    assert any(warning.kind == "point" for warning in watch(rows, spec))


def test_a_clamp_far_below_the_energies_saturates(digits, tmp_path):
    """The untrained network is beyond the upper clamp for every triplet, so no parameter ever changes."""
    rows, spec = train_run(
        tmp_path, "loss.m=2.4", "loss.m2=0.1", "model.normalize=true", "schedule.steps=60", dataset=digits
    )
    kinds = [warning.kind for warning in watch(rows, spec)]
    assert "saturated" in kinds
    assert "idle" not in kinds


def test_rows_of_a_resumed_run_count_once_and_strange_rows_do_no_harm():
    rows = [{"kind": "step", "step": step, "loss": 1.0} for step in range(1, 30)]
    assert watch([]) == []
    assert watch([{"kind": "new"}, {}, *rows, *rows], RunSpec()) == []
    assert watch([{"kind": "measure", "step": 1, "spread": 0.0}], RunSpec()) == []


def test_a_spec_whose_loss_cannot_be_made_is_no_reason_to_fail():
    rows = [{"kind": "step", "step": step, "loss": 1.0} for step in range(1, 100)]
    for override in ("loss.name=unheard_of", "loss.name=proxy_anchor"):
        assert [warning.kind for warning in watch(rows, RunSpec().with_overrides([override]))] == ["flat"]


@pytest.mark.parametrize(("scale", "kinds"), [(100, ["scale"]), (1, [])])
def test_a_start_with_long_embeddings_is_reported_with_the_factor_that_shortens_them(scale, kinds, digits, tmp_path):
    raw = ("loss.name=tuplet", "model.normalize=false", "schedule.steps=30", f"model.embedding_scale={scale}")
    rows, spec = train_run(tmp_path, *raw, dataset=digits)
    found = only(watch(rows, spec), *kinds)
    if found:
        norm = next(row["norm"] for row in rows if row["kind"] == "measure")
        assert f"model.embedding_scale={1 / norm:.1g}" in found.remedies[0]


def test_long_embeddings_that_the_loss_normalises_are_not_reported(digits, tmp_path):
    raw = ("loss.name=multi_similarity", "model.normalize=false", "schedule.steps=30", "model.embedding_scale=100")
    rows, spec = train_run(tmp_path, *raw, dataset=digits)
    assert not any(warning.kind == "scale" for warning in watch(rows, spec))


def test_long_embeddings_that_became_short_are_not_reported():
    steps = [{"kind": "step", "step": n, "loss": 5000.0 / n} for n in range(1, 31)]
    long, short = ({"kind": "measure", "step": n, "norm": norm} for n, norm in ((10, 200.0), (20, 3.0)))
    only(watch([*steps[:15], long]), "scale")
    only(watch([*steps, long, short]))
