"""Imported embedding sets: scores, neighbours, sets without labels, failures that leave nothing, and training."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dmlcore import metrics
from dmlcore.data import DataError
from dmlcore.data.embedding_sets.files import from_arrays
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.inspection import neighbours
from dmlcore.storage import arrays
from dmlcore.storage.runs import RunStore
from dmlcore.training import build
from dmlcore.training.errors import TrainingError
from tests.training.resumed import trained

DIGITS = load_digits()
VECTORS, LABELS = DIGITS.data[:400].astype(np.float16), DIGITS.target[:400]


def create(store, vectors=VECTORS, labelled=True, **options):
    table = from_arrays(vectors, {"digit": LABELS} if labelled else None, "digits.npy")
    return embedding_sets.create(store, table, Roles(label="digit" if labelled else None), **options)


@pytest.mark.parametrize("normalize", [True, False])
def test_its_scores_are_those_of_the_vectors(tmp_path, normalize):
    run = create(RunStore(tmp_path), normalize=normalize)
    vectors = VECTORS.astype(np.float32)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if normalize else vectors
    expected = metrics.retrieval(vectors, LABELS)
    row = run.scores()["inputs"]
    assert (row["map_at_r"], row["recall_at"]["1"]) == (expected.map_at_r, expected.recall_at[1])
    assert row["weights"] == run.embeddings().stem
    (chance,) = [each for each in run.metrics()[0] if each.get("of") == "chance"]
    assert 0.05 < chance["recall_at_1"] < 0.15  # ten classes of about equal size
    assert run.is_embedding_set
    assert run.status() == "done"
    assert f"MAP@R → {100 * expected.map_at_r:.1f} %" in run.state().message
    found = neighbours.read(run.embeddings())
    assert found.has_labels
    assert found.map_at_r == pytest.approx(expected.map_at_r)
    assert np.array_equal(found.embeddings, vectors)
    assert [r.id for r in RunStore(tmp_path).list()] == [run.id]


def test_without_labels_nothing_is_right_or_wrong(tmp_path):
    run = create(RunStore(tmp_path), labelled=False)
    found = neighbours.read(run.embeddings())
    assert not found.has_labels
    assert (found.map_at_r, found.recall_at_1) == (None, None)
    assert not found.failures.any()
    assert not found.right.any()
    assert np.isnan(found.average_precision).all()
    assert run.scores() == {}
    with_labels = neighbours.read(create(RunStore(tmp_path)).embeddings())
    assert np.array_equal(found.neighbours, with_labels.neighbours)


def test_many_vectors_are_streamed_and_not_scored(tmp_path, monkeypatch):
    whole = create(RunStore(tmp_path / "whole"))
    monkeypatch.setattr(embedding_sets, "MOST_OPERATIONS", 0)
    monkeypatch.setattr(embedding_sets, "CHUNK", 7)
    run = create(RunStore(tmp_path / "streamed"))
    assert run.scores() == {}
    known, streamed = (arrays.read(r.embeddings(), arrays.EMBEDDINGS, remedy="") for r in (whole, run))
    for name in ("embeddings", "labels", "indices", "content"):
        assert np.array_equal(known[name], streamed[name]), name
    assert neighbours.read(run.embeddings()).map_at_r == whole.scores()["inputs"]["map_at_r"]


def test_a_bad_row_leaves_nothing_behind(tmp_path):
    vectors = VECTORS.astype(np.float32)
    vectors[17, 3] = np.nan
    with pytest.raises(DataError, match=r"row 18"):
        create(RunStore(tmp_path), vectors)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_head_can_be_trained_on_it(tmp_path):
    store = RunStore(tmp_path)
    source = create(store)
    spec = embedding_sets.training_spec(source).with_overrides(
        ["schedule.steps=20", "schedule.validate_every=20", "batch.classes=3", "device=cpu"]
    )
    run = trained(store, spec)
    scores = run.scores()
    assert scores["trained"]["queries"] == int((LABELS >= 5).sum())  # the first half of the classes trained
    assert not run.is_embedding_set
    with pytest.raises(TrainingError, match="nothing to train"):
        build.refuse_unusable(source.spec)
