"""Sets from the objects of a session: where labels, images and metadata may come from."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image

from dmlcore.data import DataError
from dmlcore.data.embedding_sets.folder import write
from dmlcore.data.embedding_sets.gather import GatheredSet, gather
from dmlcore.data.embedding_sets.stored import EmbeddingSet, load

E = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
L = ["b", "a", "b", "c", "a", "c"]
PIXELS = np.random.default_rng(1).integers(0, 256, (6, 5, 7, 3), np.uint8)


@pytest.fixture
def scratch(tmp_path) -> Path:
    (place := tmp_path / "scratch").mkdir()
    return place


def store(given: GatheredSet, place: Path) -> EmbeddingSet:
    place.mkdir()
    write(place, given.table, given.roles, images=given.images, copy=given.copy_images)
    return load(place)


def label_names(stored: EmbeddingSet) -> list[str]:
    return [stored.class_names[label] for label in stored.labels]


@pytest.mark.parametrize(
    ("embeddings", "labels"),
    [
        (E, L),
        (torch.tensor(E), tuple(L)),
        (E.tolist(), np.array(L)),
        (pd.DataFrame(E), pd.Series(L, index=range(10, 16))),
        (E, pd.Series(L, dtype="category")),
    ],
)
def test_arrays_tensors_and_lists(embeddings, labels, scratch, tmp_path):
    stored = store(gather(embeddings, labels, scratch=scratch), tmp_path / "set")
    assert np.allclose(stored.vectors, E)
    assert label_names(stored) == L


@pytest.mark.parametrize("convert", [lambda frame: frame, pa.Table.from_pandas])
@pytest.mark.parametrize("vectors", [None, "vector"])
def test_a_frame_with_a_column_of_vectors(convert, vectors, scratch, tmp_path):
    frame = pd.DataFrame({"sku": list("uvwxyz"), "vector": list(E), "kind": L, "price": range(6)})
    stored = store(gather(convert(frame), "kind", vectors=vectors, scratch=scratch), tmp_path / "set")
    assert np.allclose(stored.vectors, E)
    assert label_names(stored) == L
    assert stored.ids == list("uvwxyz")
    assert stored.columns["price"].to_pylist() == list(range(6))


@pytest.mark.parametrize("convert", [dict, pd.DataFrame])
def test_metadata_may_name_the_labels(convert, scratch, tmp_path):
    metadata = convert({"class": L, "size": [1.5] * 6})
    assert label_names(store(gather(E, metadata=metadata, scratch=scratch), tmp_path / "set")) == L


def test_given_labels_win_over_a_column_of_the_same_name(scratch, tmp_path):
    stored = store(gather(E, L, metadata={"label": [0] * 6, "label 2": [0] * 6}, scratch=scratch), tmp_path / "set")
    assert label_names(stored) == L
    assert stored.columns.column_names == ["label", "label 2", "label 3"]


def test_files_are_accepted(scratch, tmp_path):
    np.save(tmp_path / "e.npy", E)
    pd.DataFrame({"class": L, "price": range(6)}).to_csv(tmp_path / "l.csv", index=False)
    stored = store(gather(tmp_path / "e.npy", str(tmp_path / "l.csv"), scratch=scratch), tmp_path / "set")
    assert label_names(stored) == L
    assert "price" in stored.columns.column_names


def test_a_file_of_labels_without_a_usual_name(scratch, tmp_path):
    pd.DataFrame({"art": L}).to_csv(tmp_path / "one.csv", index=False)
    pd.DataFrame({"art": L, "price": range(6)}).to_csv(tmp_path / "guess.csv", index=False)
    pd.DataFrame({"art": L, "kind": L, "type": L}).to_csv(tmp_path / "two.csv", index=False)
    only = gather(E, tmp_path / "one.csv", scratch=scratch)
    assert (only.roles.label, only.guesses) == ("art", ())
    guessed = gather(E, tmp_path / "guess.csv", scratch=scratch)
    assert guessed.roles.label == "art"
    assert guessed.guesses[0] in guessed.table.notes
    with pytest.raises(DataError, match=r"two\.csv has no column with a usual name"):
        gather(E, tmp_path / "two.csv", scratch=scratch)


def test_columns_with_unsuitable_ids_and_splits_remain_metadata(scratch, tmp_path):
    metadata = {"name": ["x"] * 6, "fold": list(range(6))}
    stored = store(gather(E, L, metadata=metadata, scratch=scratch), tmp_path / "set")
    assert stored.ids is None
    assert stored.split == ""
    assert stored.columns.column_names == ["name", "fold", "label"]
    assert [note.split(":")[0] for note in stored.notes] == ["not used as ids", "not used as split"]


@pytest.mark.parametrize(
    "images",
    [
        PIXELS,
        list(PIXELS),
        torch.tensor(PIXELS),
        torch.tensor(PIXELS).permute(0, 3, 1, 2),
        [Image.fromarray(pixels) for pixels in PIXELS],
    ],
)
def test_arrays_of_images_are_stored_in_the_set(images, scratch, tmp_path):
    stored = store(gather(E, L, images, scratch=scratch), tmp_path / "set")
    for path, pixels in zip(stored.images, PIXELS, strict=True):
        assert Path(path).is_relative_to(tmp_path / "set")
        assert np.array_equal(np.asarray(Image.open(path)), pixels)


@pytest.mark.parametrize("grey", [PIXELS[..., 0], PIXELS[..., :1]])
def test_grey_images(grey, scratch, tmp_path):
    stored = store(gather(E, images=grey, scratch=scratch), tmp_path / "set")
    assert np.array_equal(np.asarray(Image.open(stored.images[3])), PIXELS[3, ..., 0])


@pytest.fixture
def photos(tmp_path) -> list[Path]:
    paths = [tmp_path / "photos" / f"{'xy'[row % 2]}" / f"{row}.png" for row in (4, 2, 0, 5, 3, 1)]
    for path, pixels in zip(paths, PIXELS, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return paths


@pytest.mark.parametrize("kind", [Path, str])
def test_paths_keep_their_order_and_files_stay(kind, photos, scratch, tmp_path):
    stored = store(gather(E, L, list(map(kind, photos)), scratch=scratch), tmp_path / "set")
    assert [Path(path) for path in stored.images] == photos


def test_a_column_of_paths(photos, scratch, tmp_path):
    metadata = pd.DataFrame({"photo": list(map(str, photos))})
    stored = store(gather(E, L, "photo", metadata, scratch=scratch), tmp_path / "set")
    assert [Path(path) for path in stored.images] == photos


def test_relative_paths_are_those_of_the_working_directory(photos, scratch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = [path.relative_to(tmp_path) for path in photos]
    stored = store(gather(E, L, relative, scratch=scratch), tmp_path / "set")
    assert [Path(path) for path in stored.images] == photos


def test_a_folder_is_assigned_by_order(photos, scratch, tmp_path):
    stored = store(gather(E, L, tmp_path / "photos", scratch=scratch), tmp_path / "set")
    assert [Path(path) for path in stored.images] == sorted(photos)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": L[:5]}, "labels has 5 rows, but embeddings has 6 vectors"),
        ({"labels": "nowhere"}, "'nowhere' is neither a column nor a file"),
        ({"metadata": {"a": [1] * 5}}, "metadata has 5 rows, but embeddings has 6 vectors"),
        ({"metadata": [1, 2]}, "columns must be a mapping"),
        ({"images": PIXELS[:5]}, "5 images were given for 6 vectors"),
        ({"images": PIXELS / 255.0}, r"row 1: an array 5 x 7 x 3 of type float64; give arrays \(N, H, W, 3\)"),
        ({"images": PIXELS[:, :0]}, "row 1: the array has no pixels"),
        ({"images": ["a.png"] * 5 + [""]}, "row 6: '' is not a path"),
    ],
)
def test_what_does_not_fit_is_named(arguments, message, scratch):
    with pytest.raises(DataError, match=message):
        gather(E, **arguments, scratch=scratch)
