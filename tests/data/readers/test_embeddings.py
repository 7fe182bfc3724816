"""Stored embedding sets as data sets: inputs, splits, keys, images and facts."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dmlcore.data
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.folder import write
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.data.readers import embeddings
from tests.data import layouts
from tests.data.embedding_sets import samples


def made(folder: Path, columns: dict, **options) -> Path:
    folder.mkdir()
    table = files.from_arrays(samples.vectors("float16"), columns)
    write(folder, table, Roles.guess(table.columns), **options)
    return folder


def test_inputs_are_mapped_and_converted_when_indexed(tmp_path: Path) -> None:
    inputs = dmlcore.data.read("embeddings", root=layouts.embeddings(tmp_path / "set")).inputs
    assert (inputs.shape, inputs.dtype, len(inputs)) == ((64, 16), np.float32, 64)
    for index in (3, slice(2, 9), np.array([5, 1, 5]), np.arange(64) > 60):
        rows = inputs[index]
        assert rows.dtype == np.float32
        assert rows.flags.writeable
        assert np.array_equal(rows, np.load(tmp_path / "set" / "vectors.npy")[index].astype(np.float32))


def test_a_split_column_defines_the_split(tmp_path: Path) -> None:
    labels = samples.labels()
    by_class = made(tmp_path / "classes", {"label": labels, "split": ["train", "test"] * 30})
    loaded = dmlcore.data.load("embeddings", root=by_class, validation="none")
    assert np.array_equal(loaded.splits["train"], np.arange(0, 60, 2))
    by_sample = made(tmp_path / "samples", {"label": labels, "split": ["train"] * 30 + ["test"] * 30})
    loaded = dmlcore.data.load("embeddings", root=by_sample, split="samples", validation="none")
    assert np.array_equal(loaded.splits["train"], np.arange(30))


def test_metadata_become_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        "label": samples.labels(),
        "id": [f"item {row}" for row in range(60)],
        "whole": range(60),
        "gaps": [None, 1] * 30,
        "real": np.linspace(0, 1, 60, dtype=np.float32),
        "flag": [True, None] * 30,
        "text": ["a", None] * 30,
        "long": ["x" * 100] * 60,
    }
    monkeypatch.setattr(embeddings, "MAX_TEXT", 20_000)
    read = dmlcore.data.read("embeddings", root=made(tmp_path / "set", columns))
    assert list(read.keys) == columns["id"]
    assert {name: values.dtype.str for name, values in read.facts.items()} == {
        "whole": "<i8",
        "gaps": "<f8",
        "real": "<f8",
        "flag": "<f8",
        "text": "<U1",
    }
    assert read.facts["whole"].tolist() == list(range(60))
    assert np.array_equal(read.facts["gaps"], [np.nan, 1] * 30, equal_nan=True)
    assert np.array_equal(read.facts["flag"], [1, np.nan] * 30, equal_nan=True)
    assert read.facts["text"].tolist() == ["a", ""] * 30
    assert read.notes == ("columns of long text are not shown: long",)


def test_images_are_decoded_for_display(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for row in range(60):
        Image.new("RGB", (12, 8), (4 * row, 0, 0)).save(tmp_path / "photos" / f"{row:02}.png")
    columns = {"label": samples.labels(), "id": [f"{row:02}" for row in range(60)]}
    read = dmlcore.data.read("embeddings", root=made(tmp_path / "set", columns, images=tmp_path / "photos"))
    assert read.files[7] == tmp_path / "photos" / "07.png"
    assert read.image(7).shape == (8, 12, 3)
    assert read.image(7)[0, 0].tolist() == [28, 0, 0]


def test_a_set_without_labels_is_read_as_one_class(tmp_path: Path) -> None:
    read = dmlcore.data.read("embeddings", root=made(tmp_path / "set", {"weight": range(60)}))
    assert read.class_names == ("no label",)
    assert read.notes[-1].startswith("this set has no labels: import it again with a column of labels")
    with pytest.raises(dmlcore.data.DataError, match="leaves the train split empty"):
        dmlcore.data.load("embeddings", root=tmp_path / "set")


def test_another_folder_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(dmlcore.data.DataError, match=r"Embedding set: root must be a folder with the file set\.json"):
        dmlcore.data.read("embeddings")
    with pytest.raises(dmlcore.data.DataError, match=r"is not an embedding set: set\.json cannot be read"):
        dmlcore.data.read("embeddings", root=tmp_path)
