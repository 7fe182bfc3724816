"""Metadata as text and as CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from dmlcore import data
from dmlcore.inspection import metadata
from dmlcore.training.build import load_data
from tests.embedding_set_runs import HOSTILE, make_set


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> data.Dataset:
    root = tmp_path_factory.mktemp("labelled")
    (root / "photos").mkdir()
    return load_data(make_set(root / "runs", images=root / "photos", project=False).spec)


def test_columns_are_those_of_the_file_without_roles(labelled: data.Dataset) -> None:
    assert [name for name, _ in metadata.columns(labelled)] == ["price", "colour", HOSTILE]
    assert metadata.columns(None) == []


def test_a_sample_is_described_by_its_values(labelled: data.Dataset) -> None:
    assert metadata.id_of(labelled, 7) == "item 007"
    assert metadata.describe(labelled, 7) == [("price", "3.5"), ("colour", "blue"), (HOSTILE, "3")]
    assert metadata.describe(labelled, 10) == [(HOSTILE, "2")], "missing values are left out"


def test_internal_numbers_of_other_data_sets_are_no_metadata() -> None:
    birds = data.load("birds", image_size=16)
    assert birds.facts
    assert metadata.columns(birds) == []
    assert metadata.id_of(birds, 3) == ""


def test_samples_as_csv(labelled: data.Dataset) -> None:
    rows = lines(metadata.samples_csv(labelled, np.array([12, 10]), {"votes": [5, 6]}))
    assert list(rows[0]) == ["row", "id", "label", "image", "votes", "price", "colour", HOSTILE]
    assert [row["row"] for row in rows] == ["12", "10"]
    assert [row["id"] for row in rows] == ["item 012", "item 010"]
    assert [row["label"] for row in rows] == ["ash", "birch"]
    assert Path(rows[0]["image"]).name == "12.png"
    assert [row["price"] for row in rows] == ["6.0", ""]


def test_samples_without_labels_ids_and_images_have_row_and_metadata(tmp_path: Path) -> None:
    bare = load_data(make_set(tmp_path, labels=False, ids=False, project=False).spec)
    assert list(lines(metadata.samples_csv(bare, [3]))[0]) == ["row", "price", "colour", HOSTILE]


def test_equal_names_of_columns_get_numbers(labelled: data.Dataset) -> None:
    names = list(lines(metadata.samples_csv(labelled, [3], {"price": [1]}))[0])
    assert [name for name in names if name.startswith("price")] == ["price", "price (2)"]


def test_pairs_as_csv(labelled: data.Dataset) -> None:
    (row,) = lines(metadata.pairs_csv(labelled, [3], [4], [0.25]))
    assert (row["a_row"], row["a_id"], row["a_label"]) == ("3", "item 003", "ash")
    assert (row["b_row"], row["b_id"], row["b_label"], row["distance"]) == ("4", "item 004", "birch", "0.25")


def test_cells_hold_no_formulas(tmp_path: Path, labelled: data.Dataset) -> None:
    labelled.facts["formula"] = np.array(["=1+1"] * len(labelled.labels))  # type: ignore[index]
    try:
        assert lines(metadata.samples_csv(labelled, [3]))[0]["formula"] == "'=1+1"
    finally:
        del labelled.facts["formula"]  # type: ignore[attr-defined]
