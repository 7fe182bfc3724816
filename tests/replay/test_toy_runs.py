"""Toy runs: inputs as points, scores of a step over all samples, and the row of Table 4.1 that matches a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from dmlcore.data.dataset import Dataset
from dmlcore.metrics import retrieval
from dmlcore.replay import toy_runs
from dmlcore.replay.recorded_training import LiveSpec, LiveTraining, SpecChange
from dmlcore.training import build, loop
from dmlcore.training.state import progress_facts, restore, tensors


@pytest.mark.parametrize("name", ["toy", "moons", "rings"])
def test_inputs_in_space_are_shown_as_they_are(name):
    dataset = toy_runs.dataset(name, 0)
    chosen = dataset.splits["train"][::50]
    assert np.array_equal(toy_runs.input_space(dataset, chosen).points, dataset.inputs[chosen])


def test_more_features_are_shown_by_the_principal_components_of_the_training_split():
    dataset = toy_runs.dataset("digits", 0)
    train, chosen = dataset.splits["train"], dataset.splits["test"][:40]
    space = toy_runs.input_space(dataset, chosen)
    model = PCA(3).fit(dataset.inputs[train].astype(np.float64))
    expected = model.transform(dataset.inputs[chosen].astype(np.float64))
    signs = np.sign((expected * space.points).sum(0))
    np.testing.assert_allclose(space.points, expected * signs, atol=1e-3)
    assert f"{100 * model.explained_variance_ratio_.sum():.0f} %" in space.note


def test_two_features_lie_in_a_plane_and_images_are_refused():
    plane = Dataset("flat", np.ones((4, 2), np.float32), np.zeros(4, int), ("x",), {"train": np.arange(4)}, None, ())
    assert np.array_equal(toy_runs.input_space(plane, np.arange(4)).points, [[1, 1, 0]] * 4)
    images = Dataset("p", np.zeros((2, 3, 4, 4), np.uint8), np.zeros(2, int), ("x",), {"train": np.arange(2)}, None, ())
    with pytest.raises(ValueError, match="inputs must be vectors"):
        toy_runs.input_space(images, np.arange(2))


def test_scores_of_a_step_are_those_of_a_training_that_ended_there(monkeypatch):
    """Compare with a separate training run step by step; both include the change during the run."""
    run = toy_runs.toy_run("moons")
    change = SpecChange(3, ("loss.m=0.5",))
    training = LiveTraining(LiveSpec(run, (change, SpecChange(9, ("loss.m=0.01",)))), toy_runs.dataset("moons", 0))
    training.frame(12)
    locked, weights = [], LiveTraining.weights
    monkeypatch.setattr(
        LiveTraining, "weights", lambda history: (locked.append(training.lock.locked()), weights(history))[1]
    )
    found = toy_runs.train_scores(training, 7)
    assert locked == [False]  # the page that plays this training run does not wait for the replay

    state = build.build(run, training.dataset, torch.device("cpu"))
    for step in range(1, 4):
        loop.step(state, step)
    later = build.build(run.with_overrides(change.overrides), training.dataset, torch.device("cpu"))
    restore(later, tensors(state), progress_facts(state), fused=True)
    for step in range(4, 8):
        loop.step(later, step)
    train = training.dataset.splits["train"]
    with torch.inference_mode():
        embeddings = later.model.eval()(torch.from_numpy(training.dataset.inputs[train])).numpy()
    expected = retrieval(embeddings, training.dataset.labels[train], ks=(1, 8))
    assert found.map_at_r == pytest.approx(expected.map_at_r, abs=1e-12)
    assert toy_runs.in_columns(found)["R@1"] == pytest.approx(100 * expected.recall_at[1])


def test_the_rows_of_table_4_1_are_known_again_by_their_settings():
    rows = toy_runs.published_scores()
    assert len(rows) == 12
    assert rows[0].label == "input space"
    assert rows[0].scores["MAP@R"] == 31.77
    first = next(row for row in rows if row.loss == "ranking" and row.hyper["m"] == 0.1)
    assert first.scores["MAP@R"] == 40.75
    run = toy_runs.toy_run("toy")
    assert [row for row in rows if toy_runs.matches(row, run)] == [first]
    assert not any(toy_runs.matches(row, run.with_overrides(["loss.m=0.11"])) for row in rows)
    metu = run.with_overrides(["loss.name=distance_sensitive", "loss.m1=-2.5", "loss.m2=10.0"])
    (row,) = [row for row in rows if toy_runs.matches(row, metu)]
    assert (row.hyper["m1"], row.hyper["m2"], row.scores["R@1"]) == (-2.5, 10.0, 70.17)


def test_the_recent_mean_leaves_out_what_is_no_number():
    values = np.array([np.nan, 1.0, 3.0, np.nan, 5.0])
    np.testing.assert_allclose(toy_runs.recent_mean(values, 2), [np.nan, 1.0, 2.0, 3.0, 5.0])
    assert np.isnan(toy_runs.recent_mean(np.array([np.nan]))).all()


def test_the_inputs_themselves_have_the_scores_of_their_distances():
    dataset = toy_runs.dataset("toy", 0)
    train = dataset.splits["train"]
    expected = retrieval(dataset.inputs[train], dataset.labels[train], ks=(1, 8))
    assert toy_runs.input_scores(dataset) == expected
