"""Seen and unseen classes of runs and embedding sets, and their baselines."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import dmlcore
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.inspection import class_sides
from dmlcore.inspection.class_sides import ThresholdError
from dmlcore.models import whitening
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import build
from tests.inspection.threshold_runs import OPEN, QUICK
from tests.once import once
from tests.pages.conftest import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a run on digits with two validation and five test classes."""
    folder = once(tmp_path_factory, "threshold-digits", lambda root: make_run(root, *QUICK, *OPEN))
    return next(iter(RunStore(folder).list()))


@pytest.fixture
def copied(run, tmp_path):
    """Return a copy of the run, without cached validation embeddings."""
    shutil.copytree(run.path, tmp_path / run.id)
    for path in (tmp_path / run.id / "embeddings").glob("*.validation.npz"):
        path.unlink()
    return Run(tmp_path / run.id)


def embedding_set(root, splits=None, labels=None, classes=8, each=6):
    """Import `each` vectors per class; `splits` names the split of each class."""
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(classes), each)
    vectors = random.normal(size=(classes, 5))[codes] + 0.3 * random.normal(size=(len(codes), 5))
    columns = {"label": [f"class {code}" for code in codes]} if labels is None else labels
    if splits is not None:
        columns["split"] = [splits[code] for code in codes]
    table = files.from_arrays(vectors.astype(np.float32), columns, source="vectors.npy")
    return embedding_sets.create(RunStore(root), table, Roles.guess(table.columns), name="vectors")


def refuse_to_load(spec):
    raise AssertionError("the data set was read")


def test_the_validation_split_is_embedded_by_the_network_that_was_tested(copied):
    sides = class_sides.sides(copied)
    data = build.load_data(copied.spec)
    for side, split in ((sides.seen, "validation"), (sides.unseen, "test")):
        assert np.array_equal(side.indices, data.splits[split])
        assert np.array_equal(side.labels, data.labels[data.splits[split]])
        expected = dmlcore.load(copied).embed(data.inputs[side.indices]).numpy()
        assert side.embeddings == pytest.approx(expected, abs=1e-6)
    assert (sides.seen.classes, sides.unseen.classes, sides.note) == (2, 5, "")
    again = class_sides.sides(copied, load=refuse_to_load)
    assert np.array_equal(again.seen.embeddings, sides.seen.embeddings)


@pytest.mark.parametrize("damage", ["cut", "pickle", "dimension"])
def test_a_damaged_cache_is_computed_again(copied, damage):
    expected = class_sides.sides(copied).seen.embeddings
    path = class_sides.path_of(copied.embeddings())
    with np.load(path) as stored:
        content = dict(stored)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        wrong = np.array([print] * len(expected), object) if damage == "pickle" else expected[:, 1:]
        np.savez(path, **(content | {"embeddings": wrong}))
    assert np.array_equal(class_sides.sides(copied).seen.embeddings, expected)
    with np.load(path) as stored:
        assert np.array_equal(stored["embeddings"], expected)


def test_a_read_only_folder_only_loses_the_cache(copied, monkeypatch, caplog):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(class_sides.evaluation, "save_embeddings", full)
    assert class_sides.sides(copied).seen.classes == 2
    assert "cannot be written: no space left" in caplog.text


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["data.split=classes", "data.validation=none"], r"has no validation classes, .*\(data.validation is none\)"),
        (["data.split=classes", "data.validation=samples"], r"trained on 3 of the 3|trained on 5 of the 5"),
        (["data.split=samples", "data.validation=classes"], r"has no unseen classes: 10 of its 10 test classes"),
    ],
)
def test_runs_without_seen_or_unseen_classes_are_refused_with_the_remedy(overrides, words, tmp_path):
    made = make_run(tmp_path, *QUICK, *overrides)
    for call in (class_sides.sides, class_sides.baselines):
        with pytest.raises(ThresholdError, match=words) as refused:
            call(made)
        assert "Train a run with data.split=classes and data.validation=classes." in str(refused.value)


def test_runs_without_a_current_evaluation_are_refused(copied):
    source = copied.embeddings()
    source.rename(source.with_name(f"{'0' * 64}.npz"))
    with pytest.raises(ThresholdError, match="trained further since its evaluation; run: dml evaluate"):
        class_sides.sides(copied)
    for path in (copied.path / "embeddings").iterdir():
        path.unlink()
    with pytest.raises(ThresholdError, match="has no test embeddings yet; compute them: dml evaluate"):
        class_sides.sides(copied)


def test_baselines_are_inputs_untrained_network_and_whitened_inputs(run):
    made = class_sides.baselines(run)
    assert list(made) == ["inputs", "untrained", "pca_whitened", "whitened"]
    data = build.load_data(run.spec)
    train = data.splits["train"]
    whiten = whitening.fit(data.inputs[train], data.labels[train])
    trained = class_sides.sides(run)
    for name, embed in (("inputs", lambda inputs: inputs), ("whitened", whiten)):
        for side, other in ((made[name].seen, trained.seen), (made[name].unseen, trained.unseen)):
            assert np.array_equal(side.indices, other.indices)
            assert np.array_equal(side.labels, other.labels)
            assert side.embeddings == pytest.approx(embed(data.inputs[side.indices]))
    assert made["untrained"].seen.embeddings.shape == trained.seen.embeddings.shape
    assert not np.allclose(made["untrained"].seen.embeddings, trained.seen.embeddings)


@pytest.mark.parametrize(
    ("splits", "seen", "unseen", "name", "note"),
    [
        (None, range(4), range(4, 8), "first half", "no column divides the classes"),
        (["test"] * 3 + ["train"] * 2 + ["val"] * 3, range(5, 8), range(3), "validation classes", ""),
        (["test"] * 3 + ["train"] * 4 + ["val"], range(3, 8), range(3), "training classes", "on training classes"),
    ],
)
def test_an_embedding_set_is_divided_by_its_split_column_or_in_half(tmp_path, splits, seen, unseen, name, note):
    made = embedding_set(tmp_path, splits)
    sides = class_sides.sides(made)
    names = embedding_sets.of_run(made).class_names
    for side, classes in ((sides.seen, seen), (sides.unseen, unseen)):
        assert {names[label] for label in side.labels} == {f"class {code}" for code in classes}
        assert np.array_equal(side.labels, embedding_sets.of_run(made).labels[side.indices])
    assert sides.seen.name == name
    assert note in sides.note
    assert bool(note) == bool(sides.note)


def test_an_embedding_set_is_compared_with_whitenings_fitted_to_other_classes(tmp_path):
    made = embedding_set(tmp_path, classes=12)
    found = class_sides.baselines(made)
    assert list(found) == ["pca_whitened", "whitened"]
    stored = embedding_sets.of_run(made)
    seen, unseen = found["whitened"].seen, found["whitened"].unseen
    assert np.array_equal(np.unique(unseen.labels), np.arange(6, 12))
    assert np.array_equal(np.unique(seen.labels), np.arange(4, 6))
    train = stored.labels < 4
    whiten = whitening.fit(stored.vectors[train], stored.labels[train])
    assert unseen.embeddings == pytest.approx(whiten(np.asarray(stored.vectors[unseen.indices])), abs=1e-6)
    assert class_sides.baselines(embedding_set(tmp_path, classes=4)) == {}


def test_embedding_sets_without_labels_or_with_few_classes_are_refused(tmp_path):
    with pytest.raises(ThresholdError, match="has no labels; import it again with a column of labels"):
        class_sides.sides(embedding_set(tmp_path, labels={"id": [f"item {row}" for row in range(48)]}))
    with pytest.raises(ThresholdError, match="the first half of the 3 classes are 1; import a set with more classes"):
        class_sides.sides(embedding_set(tmp_path, classes=3))


def test_embeddings_of_another_set_are_refused(tmp_path):
    made, other = embedding_set(tmp_path, classes=4), embedding_set(tmp_path, classes=5)
    made.embeddings().write_bytes(other.embeddings().read_bytes())
    with pytest.raises(Unreadable, match="do not belong to its set"):
        class_sides.sides(made)


def test_whole_classes_are_drawn_from_a_large_side(run, monkeypatch):
    whole = class_sides.sides(run)
    monkeypatch.setattr(class_sides, "MAX_SAMPLES", 400)
    drawn = class_sides.sides(run)
    assert drawn.note == "2 of 5 test classes are drawn at random"
    assert np.array_equal(drawn.seen.indices, whole.seen.indices)
    assert drawn.unseen.classes == 2
    for label in np.unique(drawn.unseen.labels):
        assert (drawn.unseen.labels == label).sum() == (whole.unseen.labels == label).sum()
    assert np.array_equal(class_sides.sides(run).unseen.indices, drawn.unseen.indices)


def test_the_evaluated_classes_need_no_seen_ones(copied, tmp_path, monkeypatch):
    side = class_sides.evaluated_classes(copied)
    assert (side.name, side.classes) == ("test classes", 5)
    assert np.array_equal(side.embeddings, class_sides.sides(copied).unseen.embeddings)
    imported = embedding_set(tmp_path / "sets", classes=3)
    with pytest.raises(ThresholdError):
        class_sides.sides(imported)
    every = class_sides.evaluated_classes(imported)
    assert (every.name, every.classes, len(every.labels)) == ("all classes", 3, 18)
    monkeypatch.setattr(class_sides, "MAX_SAMPLES", 12)
    assert class_sides.evaluated_classes(imported).classes == 2
