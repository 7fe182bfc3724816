"""Identifiers of samples: imported vectors are identified by their ids, so that different embeddings match."""

from pathlib import Path

import numpy as np

from dmlcore.data import Dataset
from dmlcore.data.identities import identities
from dmlcore.training.build import load_data
from tests.embedding_set_runs import COUNT, make_set

ROWS = np.arange(COUNT)


def imported(root: Path, **options) -> Dataset:
    return load_data(make_set(root, project=False, **options).spec)


def same(first: Dataset, second: Dataset) -> np.ndarray:
    return (identities(first, ROWS) == identities(second, ROWS)).all(axis=1)


def test_different_vectors_of_the_same_ids_match(tmp_path: Path) -> None:
    first, second = imported(tmp_path / "a"), imported(tmp_path / "b", seed=1, labels=False)
    assert not np.array_equal(first.inputs[:], second.inputs[:])
    assert same(first, second).all()
    assert len(np.unique(identities(first, ROWS), axis=0)) == COUNT


def test_without_ids_row_and_label_identify_a_sample(tmp_path: Path) -> None:
    first, second = (imported(tmp_path / name, seed=seed, ids=False) for seed, name in enumerate("ab"))
    assert same(first, second).all()
    assert not same(first, imported(tmp_path / "c", ids=False, labels=False)).any()
    assert not same(first, imported(tmp_path / "d")).any(), "an id is not a row number"


def test_without_ids_images_of_other_names_are_other_samples(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with_images = imported(tmp_path / "a", ids=False, images=tmp_path / "photos")
    assert not same(with_images, imported(tmp_path / "b", ids=False)).any()
