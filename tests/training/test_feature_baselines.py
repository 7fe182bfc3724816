"""Baselines of features before training: rows, cache, whole classes, and their place among the first rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dmlcore import data
from dmlcore.metrics import retrieval
from dmlcore.models import whitening
from dmlcore.spec import RunSpec
from dmlcore.training import baselines, feature_baselines
from dmlcore.training.build import build, load_data


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))


def state_of(*changes: str):
    spec = RunSpec().with_overrides(["device=cpu", "batch.classes=2", *changes])
    return build(spec, load_data(spec), torch.device("cpu"))


def test_whitened_vectors_are_scored_as_by_hand():
    state = state_of("data.name=digits", "data.split=classes", "data.validation=classes")
    rows = {(row["of"], row.get("part", "test")): row for row in feature_baselines.rows(state)}
    assert {name for name, _ in rows} == {"pca_whitened", "whitened"}, "the inputs have their own row"
    splits, labels = state.data.splits, state.data.labels
    inputs = np.asarray(state.data.inputs[:], np.float32)
    fitted = whitening.fit(inputs[splits["train"]], labels[splits["train"]])
    expected = retrieval(fitted(inputs[splits["test"]]), labels[splits["test"]], ks=(1,))
    assert rows["whitened", "test"]["map_at_r"] == pytest.approx(expected.map_at_r)
    assert rows["whitened", "test"]["recall_at"]["1"] == pytest.approx(expected.recall_at[1])
    assert rows["whitened", "validation"]["map_at_r"] > 0
    assert sum(rows["whitened", "test"]["by_class"]["queries"]) == len(splits["test"])


def test_features_of_a_frozen_backbone_are_averages_of_its_maps():
    state = state_of("data.name=glyphs", "model.name=conv4_32", "model.freeze=backbone", "data.image_size=28")
    few = state.data.splits["test"][:5]
    with torch.inference_mode():
        maps = state.model.eval().features(torch.from_numpy(np.asarray(state.data.inputs[few])))
    np.testing.assert_allclose(feature_baselines.extract(state, few), maps.mean((2, 3)), rtol=2e-3, atol=1e-3)
    rows = baselines.first_rows(state)
    scored = [row["of"] for row in rows if row["kind"] == "scores"]
    assert scored == ["inputs", "untrained", "features", "pca_whitened", "whitened"]


def test_a_backbone_that_starts_at_random_has_no_features():
    state = state_of("data.name=glyphs", "model.name=conv4_32", "data.image_size=28")
    assert feature_baselines.rows(state) == []


def test_a_large_training_split_is_cut_to_whole_classes(monkeypatch):
    dataset = data.load("digits", split="classes", validation="none")
    monkeypatch.setattr(feature_baselines, "MOST_FITTED", 500)
    chosen = feature_baselines.fitted_samples(dataset)
    labels = dataset.labels[dataset.splits["train"]]
    assert 0 < len(chosen) <= 500
    for label in np.unique(dataset.labels[chosen]):
        assert (dataset.labels[chosen] == label).sum() == (labels == label).sum()


def test_what_would_take_minutes_is_left_out(monkeypatch):
    state = state_of("data.name=digits", "data.split=classes")
    monkeypatch.setattr(feature_baselines, "MOST_WORK", 1e6)
    assert feature_baselines.rows(state) == []


def test_classes_of_one_sample_leave_the_other_baselines():
    state = state_of("data.name=digits", "data.split=classes")
    train = state.data.splits["train"]
    _, first = np.unique(state.data.labels[train], return_index=True)
    state.data = replace(state.data, splits={**state.data.splits, "train": train[first]})
    assert {row["of"] for row in feature_baselines.rows(state)} == {"pca_whitened"}
