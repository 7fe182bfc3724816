"""Embedding, scoring and storing a split, with and without a separate gallery."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dmlcore import data
from dmlcore.metrics import clustering, nearest, retrieval
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import batches, evaluation

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits():
    return data.load("digits", split="samples")


@pytest.fixture(scope="module")
def with_gallery(digits):
    """Return digits whose test split is divided into queries and a gallery."""
    test = digits.splits["test"]
    return replace(digits, splits=dict(digits.splits) | {"test": test[::3], "gallery": np.delete(test, np.s_[::3])})


def network(dataset):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(dataset.inputs.shape[1], 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 8))


def test_embeddings_follow_the_split_and_do_not_depend_on_the_other_samples(digits):
    model = network(digits)
    found = evaluation.embed(model, digits, "test", CPU)
    with torch.no_grad():
        expected = model.eval()(torch.from_numpy(digits.inputs[digits.splits["test"]]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_modes_of_all_modules_survive(digits):
    model = network(digits).train()
    model[1].eval()  # a frozen batch norm
    evaluation.embed(model, digits, "validation", CPU)
    assert [module.training for module in model] == [True, False, True, True]
    with pytest.raises(RuntimeError):
        evaluation.embed(nn.Sequential(nn.Linear(3, 2)).train(), digits, "test", CPU)


def test_bfloat16_is_asked_for_and_embeddings_stay_float32(digits):
    seen = []

    class Probe(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            seen.append(y.dtype)
            return y

    model = Probe(digits.inputs.shape[1], 4)
    exact = evaluation.embed(model, digits, "test", CPU)
    rounded = evaluation.embed(model, digits, "test", CPU, precision="bfloat16")
    assert set(seen) == {torch.float32, torch.bfloat16}
    assert exact.dtype == rounded.dtype == np.float32
    np.testing.assert_allclose(rounded, exact, atol=0.05 * np.abs(exact).max())
    assert (rounded != exact).any()


def test_chunks_are_bounded_by_numbers_and_by_samples(digits):
    assert evaluation._chunk_size(digits, "cpu") == 256
    large = replace(digits, inputs=np.broadcast_to(np.uint8(0), (1000, 3, 227, 227)))
    for device in ("cpu", "cuda"):
        size = evaluation._chunk_size(large, device)
        assert size * 3 * 227 * 227 <= evaluation.MAX_VALUES[device] < (size + 1) * 3 * 227 * 227
    huge = replace(digits, inputs=np.broadcast_to(np.uint8(0), (2, 3, 4000, 4000)))
    assert evaluation._chunk_size(huge, "cpu") == 1


def test_queries_search_the_gallery_and_never_each_other(with_gallery):
    raw = evaluation.raw_inputs(with_gallery, "test")
    queries, gallery = with_gallery.splits["test"], with_gallery.splits["gallery"]
    assert len(raw) == len(queries) + len(gallery)
    np.testing.assert_array_equal(raw, evaluation.embed(lambda x: x, with_gallery, "test", CPU))
    found = evaluation.score(raw, with_gallery, "test", (1, 4))
    labels = with_gallery.labels
    own = with_gallery.inputs[queries], labels[queries]
    expected = retrieval(*own, gallery=with_gallery.inputs[gallery], gallery_labels=labels[gallery], ks=(1, 4))
    assert found == expected
    _, near = nearest(own[0], with_gallery.inputs[gallery], 1)
    assert found.recall_at[1] == np.mean(labels[gallery][near[:, 0]] == own[1])
    assert len(batches.rows_of(with_gallery, "validation")[0]) == len(with_gallery.splits["validation"])


def test_a_row_holds_all_scores_as_plain_numbers(digits):
    raw = evaluation.raw_inputs(digits, "test")
    scores, clusters = evaluation.score(raw, digits, "test", (1, 2)), evaluation.cluster(raw, digits, "test", seed=3)
    found = evaluation.row("inputs", 0, scores, clusters, weights="ab")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    labels = digits.labels[digits.splits["test"]]
    assert (found["nmi"], found["f1"]) == (clustering(raw, labels, 3).nmi, clustering(raw, labels, 3).f1)
    assert 0.5 < found["nmi"] < 0.95
    assert found["knn3"] == scores.knn3 > 0.9
    assert found["recall_fraction_at"]["2"] == scores.recall_fraction_at[2]
    assert found["weights"] == "ab"
    assert "no_clustering" not in found
    assert "nmi" not in evaluation.row("inputs", 0, scores)


def test_clustering_that_would_take_minutes_is_left_out_and_said(digits):
    labels = np.arange(60_000) // 5
    large = replace(digits, labels=labels, splits={"test": np.arange(len(labels))})
    reason = evaluation.cluster(np.zeros((60_000, 128), np.float32), large, "test", seed=0)
    assert "60,000 samples into 12,000 clusters" in reason
    scores = evaluation.score(evaluation.raw_inputs(digits, "test"), digits, "test", (1,))
    assert evaluation.row("inputs", 0, scores, reason)["no_clustering"] == reason


def test_the_file_tells_gallery_and_classes_and_an_old_one_has_neither(with_gallery, digits, tmp_path):
    run = RunStore(tmp_path).create(RunSpec())
    raw = evaluation.raw_inputs(with_gallery, "test")
    scores = evaluation.score(raw, with_gallery, "test", (1,))
    path = evaluation.write_embeddings(run, "ab", raw, with_gallery, "test", scores)
    with np.load(path, allow_pickle=False) as file:
        assert file["is_gallery"].sum() == len(with_gallery.splits["gallery"])
        np.testing.assert_array_equal(file["indices"][~file["is_gallery"]], with_gallery.splits["test"])
        np.testing.assert_array_equal(file["labels"], with_gallery.labels[file["indices"]])
        assert np.average(file["class_map_at_r"], weights=file["class_queries"]) == pytest.approx(scores.map_at_r)
        assert np.average(file["class_recall_at_1"], weights=file["class_queries"]) == pytest.approx(
            scores.recall_at[1]
        )
    raw = evaluation.raw_inputs(digits, "test")
    with np.load(evaluation.write_embeddings(run, "cd", raw, digits, "test"), allow_pickle=False) as file:
        assert set(file) == {"embeddings", "labels", "indices", "content"}


def test_embeddings_of_another_split_are_refused(with_gallery):
    with pytest.raises(ValueError, match="those of test and its gallery"):
        evaluation.score(np.zeros((3, 2), np.float32), with_gallery, "test", (1,))
