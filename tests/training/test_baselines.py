from dataclasses import replace

import numpy as np
import pytest
import torch

from dmlcore import data
from dmlcore.metrics import retrieval
from dmlcore.spec import RunSpec
from dmlcore.training import baselines, evaluation
from dmlcore.training.build import build, load_data


def test_the_inputs_are_scored_once_and_the_kept_row_is_the_very_same(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    digits = data.load("digits", split="samples")
    scores = evaluation.score(evaluation.raw_inputs(digits, "test"), digits, "test", (1,))
    expected = evaluation.row("inputs", 0, scores, labels=digits.labels[digits.splits["test"]])
    first = baselines.inputs_row(digits, "test", (1,))
    monkeypatch.setattr(evaluation, "score", lambda *_: 1 / 0)
    again = baselines.inputs_row(digits, "test", (1,))
    assert list(again.items()) == list(first.items()) == list(expected.items())


def test_other_labels_and_other_ks_are_scored_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    digits = data.load("digits", split="samples")
    first = baselines.inputs_row(digits, "test", (1,))
    assert list(baselines.inputs_row(digits, "test", (1, 2))["recall_at"]) == ["1", "2"]
    relabelled = replace(digits, labels=digits.labels // 5)
    assert baselines.inputs_row(relabelled, "test", (1,))["map_at_r"] != first["map_at_r"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "scores").write_text("in the way")
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    assert baselines.inputs_row(data.load("digits", split="samples"), "test", (1,))["kind"] == "scores"


def test_chance_is_what_shuffled_neighbours_score_on_average():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [2, 5, 9, 1])
    found = baselines.chance(labels, np.zeros(len(labels), bool))
    drawn = [retrieval(random.normal(size=(len(labels), 8)).astype(np.float32), labels, ks=(1,)) for _ in range(400)]
    assert found["map_at_r"] == pytest.approx(np.mean([each.map_at_r for each in drawn]), abs=0.01)
    assert found["recall_at_1"] == pytest.approx(np.mean([each.recall_at[1] for each in drawn]), abs=0.02)
    one_each = baselines.chance(np.arange(3), np.zeros(3, bool))
    assert one_each == {}
    gallery = np.array([False, False, True, True, True])
    assert baselines.chance(np.array([0, 1, 0, 1, 1]), gallery)["recall_at_1"] == pytest.approx((1 / 3 + 2 / 3) / 2)


def test_a_run_begins_with_its_baselines_in_every_split_that_is_scored(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    spec = RunSpec().with_overrides(["data.split=classes", "data.validation=classes", "batch.classes=3"])
    state = build(spec, load_data(spec), torch.device("cpu"))
    found = baselines.first_rows(state)
    said = [(row["kind"], row["of"], row.get("part", "test")) for row in found]
    assert said == [
        ("scores", "inputs", "test"),
        ("scores", "untrained", "test"),
        ("baseline", "chance", "test"),
        ("baseline", "inputs", "validation"),
        ("baseline", "inputs", "train"),
        ("baseline", "untrained", "train"),
        ("scores", "pca_whitened", "test"),
        ("baseline", "pca_whitened", "validation"),
        ("scores", "whitened", "test"),
        ("baseline", "whitened", "validation"),
    ]
    raw = evaluation.raw_inputs(state.data, "validation")
    expected = evaluation.score(raw, state.data, "validation", (1,)).map_at_r
    assert found[3]["map_at_r"] == expected
    assert state.model.training
