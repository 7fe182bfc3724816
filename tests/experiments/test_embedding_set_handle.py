"""The handle of an embedding set agrees with what the app computes and stores."""

import csv

import numpy as np
import pytest

from dmlcore import metrics
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.experiments.embedding_set_handle import EmbeddingSetHandle
from dmlcore.inspection import neighbour_lists, selections, tags_and_views
from dmlcore.storage.runs import RunError, RunStore
from tests.made_runs import make_finished_run

COUNT = 90
RANDOM = np.random.default_rng(3)
LABELS = RANDOM.integers(0, 5, COUNT)
VECTORS = np.eye(5, 12)[LABELS] + RANDOM.normal(size=(COUNT, 12)) * 0.5
UNIT = (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)).astype(np.float32)


def create(place, labelled: bool = True) -> EmbeddingSetHandle:
    columns = {"label": LABELS, "sku": [f"s{row}" for row in range(COUNT)], "note": ["=1+1", None, "é"] * 30}
    table = files.from_arrays(VECTORS.astype(np.float32), columns, "given")
    roles = Roles(label="label" if labelled else None, id="sku")
    return EmbeddingSetHandle(embedding_sets.create(RunStore(place), table, roles, name="<b>my set"), "http://x/?a&b")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return create(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def handle(tmp_path):
    return create(tmp_path)


@pytest.fixture
def unlabelled(tmp_path):
    return create(tmp_path, labelled=False)


def test_scores_are_those_of_the_library(shared):
    wanted = metrics.retrieval(UNIT, LABELS)
    assert shared.scores == pytest.approx((wanted.recall_at[1], wanted.map_at_r, wanted.r_precision))


@pytest.mark.parametrize("k", [1, 5, np.int64(7), neighbour_lists.MOST_NEIGHBOURS + 10, COUNT - 1])
def test_any_number_of_neighbours(shared, k):
    distances, rows = shared.neighbours(k)
    wanted, known = metrics.nearest(UNIT, k=k)
    assert np.array_equal(rows, known)
    assert np.allclose(distances, wanted)


@pytest.mark.parametrize("k", [0, COUNT, True, 1.5])
def test_impossible_numbers_of_neighbours_are_refused(shared, k):
    with pytest.raises(ValueError, match=r"k must be an integer in 1\.\.89"):
        shared.neighbours(k)


def test_failures_come_worst_first(shared):
    nearest = metrics.nearest(UNIT, k=COUNT - 1)[1]
    right = LABELS[nearest] == LABELS[:, None]
    ranks = right.argmax(axis=1) + 1
    failures = shared.failures()
    assert set(failures) == set(np.flatnonzero(~right[:, 0])) != set()
    assert (np.diff(ranks[failures]) <= 0).all()


def test_without_labels_there_are_neighbours_but_no_scores(unlabelled, tmp_path):
    assert unlabelled.scores is None
    assert np.array_equal(unlabelled.neighbours(4)[1], metrics.nearest(UNIT, k=4)[1])
    with pytest.raises(ValueError, match="failures need labels"):
        unlabelled.failures()
    header = unlabelled.to_csv(tmp_path / "a.csv").read_text().splitlines()[0]
    assert header == '"row","label","sku","note","nearest_row","nearest_distance"'
    assert repr(unlabelled) == "<<b>my set: 90 samples; http://x/?a&b>"


def test_sets_too_large_to_score_are_estimated(monkeypatch, tmp_path):
    monkeypatch.setattr(embedding_sets, "MOST_OPERATIONS", 0)
    monkeypatch.setattr(neighbour_lists, "MOST_PAIRS", 0)
    monkeypatch.setattr(neighbour_lists, "SAMPLE", 40)
    large = create(tmp_path)
    scores = large.scores
    assert scores.r_precision is None
    assert abs(scores.recall_at_1 - metrics.retrieval(UNIT, LABELS).recall_at[1]) < 0.2
    assert np.array_equal(large.neighbours(3)[1], metrics.nearest(UNIT, k=3)[1])
    assert 0 < len(large.failures()) <= 40
    lines = list(csv.DictReader(large.to_csv(tmp_path / "a.csv").open()))
    assert [int(line["nearest_row"]) for line in lines] == metrics.nearest(UNIT, k=1)[1][:, 0].tolist()


def test_the_newest_selection_is_returned(handle):
    assert handle.selection.tolist() == []
    selections.save(handle.run, [5, 3, 80], "lasso on the map")
    assert handle.selection.tolist() == [3, 5, 80]
    selections.save(handle.run, [1], "lasso on the map")
    assert handle.selection.tolist() == [1]
    selections.save(handle.run, [3, 5, 80, COUNT], "a sample that does not exist")
    assert handle.selection.tolist() == [3, 5, 80]


def test_tagged_rows(handle):
    tags_and_views.tag(handle.run, "check", [9, 2])
    assert handle.tagged("check").tolist() == [2, 9]
    with pytest.raises(KeyError, match="no sample has the tag 'chek'; tags: check"):
        handle.tagged("chek")


def test_rows_are_written_in_their_order_with_all_columns(handle, tmp_path):
    path = handle.to_csv(str(tmp_path / "some.csv"), [7, 0, 2])
    lines = list(csv.DictReader(path.open(encoding="utf-8")))
    assert [(line["row"], line["sku"], line["note"]) for line in lines] == [
        ("7", "s7", ""),
        ("0", "s0", "'=1+1"),
        ("2", "s2", "é"),
    ]
    distances, rows = metrics.nearest(UNIT, k=1)
    for line in lines:
        row = int(line["row"])
        assert int(line["nearest_row"]) == rows[row, 0]
        assert float(line["nearest_distance"]) == pytest.approx(distances[row, 0])
        assert int(line["nearest_is_right"]) == (LABELS[row] == LABELS[rows[row, 0]])


def test_no_rows_leave_a_header(handle, tmp_path):
    assert len(handle.to_csv(tmp_path / "none.csv", handle.selection).read_text().splitlines()) == 1


@pytest.mark.parametrize("rows", [[COUNT], [-1], [0.5], [[1]], np.ones(COUNT, bool)])
def test_rows_that_do_not_exist_are_refused(shared, rows, tmp_path):
    with pytest.raises(IndexError, match="rows must be"):
        shared.to_csv(tmp_path / "a.csv", rows)
    assert not (tmp_path / "a.csv").exists()


def test_names_and_links_are_escaped_in_a_notebook(shared):
    html = shared._repr_html_()
    assert "&lt;b&gt;my set: 90 samples, R@1 " in html
    assert 'href="http://x/?a&amp;b"' in html


def test_a_training_run_is_no_embedding_set(tmp_path):
    run = make_finished_run(RunStore(tmp_path), [], 0.5)
    with pytest.raises(RunError, match=r"is a training run.*dmlcore\.load"):
        EmbeddingSetHandle(run, "")
