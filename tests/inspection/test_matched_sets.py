"""Embedding sets of the same samples are matched in any order; others are refused with counts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlcore.experiments import embedding_sets
from dmlcore.inspection import comparison, matched_sets
from dmlcore.inspection.comparison import Incomparable
from dmlcore.inspection.neighbours import read
from tests.embedding_set_runs import COUNT, make_set

ORDER = np.random.default_rng(5).permutation(COUNT)


def both(tmp_path: Path, **of_second):
    runs = [make_set(tmp_path, project=False), make_set(tmp_path, project=False, **of_second)]
    return [embedding_sets.of_run(run) for run in runs], [read(run.embeddings()) for run in runs]


def with_columns(stored, **columns):
    """Return an embedding set with other values in these columns."""
    import pyarrow as pa

    table = stored.columns
    for name, values in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(values))
    return replace(stored, columns=table)


def test_samples_are_matched_by_id(tmp_path):
    (first, second), (one, two) = both(tmp_path, order=ORDER)
    rows = matched_sets.match_samples(first, second)
    assert np.array_equal(ORDER[rows], np.arange(COUNT))
    moved = matched_sets.renumber(one, rows, second)
    assert not matched_sets.hold_equal_samples(one, two)
    compared = comparison.compare([moved, two])
    assert np.array_equal(compared.right[0], compared.right[1]), "equal vectors in another order are equally good"
    assert np.array_equal(np.array(second.ids)[moved.indices], np.array(first.ids)[one.indices])


def test_equal_sets_in_the_same_order_need_no_matching(tmp_path):
    _, learned = both(tmp_path, seed=1)
    assert matched_sets.hold_equal_samples(*learned)


@pytest.mark.parametrize("folder", ["", "elsewhere/"])
def test_samples_without_ids_are_matched_by_image(tmp_path, folder):
    (first, second), _ = both(tmp_path, order=ORDER)
    roles = replace(first.roles, id=None, image="image")
    paths = [f"photos/{row}.png" for row in range(COUNT)]
    first = replace(with_columns(first, image=paths), roles=roles)
    second = replace(with_columns(second, image=[f"{folder}{paths[row]}" for row in ORDER]), roles=roles)
    assert np.array_equal(ORDER[matched_sets.match_samples(first, second)], np.arange(COUNT))


def test_samples_without_ids_and_images_are_matched_by_row(tmp_path):
    (first, second), _ = both(tmp_path, ids=False)
    first = replace(first, roles=replace(first.roles, id=None))
    assert np.array_equal(matched_sets.match_samples(first, second), np.arange(COUNT))


def test_one_missing_column_of_ids_is_named(tmp_path):
    (first, second), _ = both(tmp_path, ids=False)
    with pytest.raises(Incomparable, match="A has 90 samples and B 90, and no column of ids or images"):
        matched_sets.match_samples(first, second, ("A", "B"))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["item 000", *map(str, range(1, COUNT))], "1 ids are in both, of 90 and 90"),
        ([*map(str, range(COUNT))], "no id is in both, for example 'item 000' and '0'"),
    ],
)
def test_sets_of_other_samples_are_refused_with_counts(tmp_path, ids, message):
    (first, second), _ = both(tmp_path)
    with pytest.raises(Incomparable, match=message):
        matched_sets.match_samples(first, with_columns(second, id=ids))


def test_classes_are_compared_by_name(tmp_path):
    (first, second), _ = both(tmp_path, order=ORDER)
    names = ("cedar", "birch", "ash")
    renumbered = replace(second, class_names=names, labels=2 - second.labels)
    rows = matched_sets.match_samples(first, renumbered)
    labels = renumbered.labels[rows]
    assert [names[label] for label in labels] == [first.class_names[label] for label in first.labels]
    with pytest.raises(Incomparable, match="60 of 90 samples have different labels: row 1 of run 1 is 'ash'"):
        matched_sets.match_samples(first, replace(second, class_names=names))


def test_labels_of_one_set_only_are_refused(tmp_path):
    (first, second), _ = both(tmp_path, labels=False)
    with pytest.raises(Incomparable, match="run 2 has no labels"):
        matched_sets.match_samples(first, second)
    with pytest.raises(Incomparable, match="run 1 has no labels"):
        matched_sets.match_samples(second, first)
