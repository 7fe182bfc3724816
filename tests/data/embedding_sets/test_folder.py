"""Writing of embedding sets."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import files, stored
from dmlcore.data.embedding_sets.folder import SetSummary, write
from dmlcore.data.embedding_sets.roles import Roles
from tests.data.embedding_sets import samples

ROLES = Roles(label="label")


def made(folder: Path, values: np.ndarray, roles: Roles = ROLES, columns=None, **options) -> SetSummary:
    folder.mkdir()
    columns = {"label": samples.labels(len(values)), "weight": range(len(values))} if columns is None else columns
    return write(folder, files.from_arrays(values, columns, "mine.npy"), roles, **options)


@pytest.mark.parametrize(
    ("dtype", "stored_as"),
    [("float16", "float16"), ("float32", "float32"), ("float64", "float32"), ("int8", "float32")],
)
def test_a_set_is_stored_as_checked_vectors(dtype: str, stored_as: str, tmp_path: Path) -> None:
    values = samples.vectors("float64")
    values = np.rint(100 * values).clip(-100, 100).astype(dtype) if dtype == "int8" else values.astype(dtype)
    summary = made(tmp_path / "set", values, name="Mine")
    kept = np.load(tmp_path / "set" / "vectors.npy")
    assert (kept.dtype.name, kept.flags.c_contiguous) == (stored_as, True)
    assert np.array_equal(kept, values.astype(stored_as))
    assert (summary.samples, summary.dimensions, summary.dtype, summary.classes) == (60, 8, stored_as, 6)
    assert summary.notes == (("embeddings: int8 values were converted to float32",) if dtype == "int8" else ())
    names = {path.name for path in (tmp_path / "set").iterdir()}
    assert names == {"columns.parquet", "labels.npy", "set.json", "vectors.npy"}
    about = json.loads((tmp_path / "set" / "set.json").read_text())
    assert about["version"] == 1
    assert about["roles"] == {"label": "label", "id": None, "image": None, "split": None}


def test_a_set_needs_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "x").write_text("")
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'set'} is not empty; give a new folder")):
        write(tmp_path / "set", files.from_arrays(samples.vectors()), Roles())


def test_images_are_referred_to_or_copied(tmp_path: Path) -> None:
    values, names = samples.vectors(rows=4), ["d.png", "c.png", "b.png", "a.png"]
    (tmp_path / "photos").mkdir()
    for number, name in enumerate(names):
        Image.new("RGB", (9, 7), (50 * number, 0, 0)).save(tmp_path / "photos" / name)
    columns = {"label": ["x", "x", "y", "y"], "file": names}
    roles = Roles(label="label", image="file")
    for copy, folder in ((False, tmp_path / "photos"), (True, tmp_path / "copied" / "images")):
        place = tmp_path / ("copied" if copy else "referred")
        summary = made(place, values, roles, columns, images=tmp_path / "photos", copy=copy)
        assert summary.images == 4
        images = stored.load(place).images
        assert list(images) == [folder / name for name in names]
        assert (place / "images").exists() == copy
    with pytest.raises(DataError, match=r"^1 image is missing in .*: row 2 \('no\.png'\)"):
        made(tmp_path / "no", values, roles, columns | {"file": ["a.png", "no.png", "b.png", "c.png"]}, images=folder)


def test_errors_are_raised_before_the_set_is_complete(tmp_path: Path) -> None:
    values = samples.vectors()
    with pytest.raises(DataError, match=r"mine\.npy, column label, row 1 has no label"):
        made(tmp_path / "labels", values, columns={"label": [""] * 60})
    with pytest.raises(DataError, match=r"mine\.npy has no column 'kind' for the id; it has label, weight"):
        made(tmp_path / "roles", values, Roles(id="kind"))
    values[59] = 0
    with pytest.raises(DataError, match="embeddings, row 60: all 8 values are 0"):
        made(tmp_path / "values", values)
    assert not list(tmp_path.glob("*/set.json"))


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dmlcore.data.embedding_sets.folder.os.fsync", full)
    with pytest.raises(DataError, match=r"vectors\.npy cannot be written \(No space left on device\); free space"):
        made(tmp_path / "set", samples.vectors())


@pytest.mark.parametrize("is_there", [True, False])
def test_absolute_image_paths_need_no_folder(tmp_path: Path, is_there: bool) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for row in range(59 + is_there):
        (photos / f"{row}.jpg").touch()
    columns = {"image": [str(photos / f"{row}.jpg") for row in range(60)]}
    table = files.from_arrays(samples.vectors(), columns)
    (tmp_path / "set").mkdir()
    summary = write(tmp_path / "set", table, Roles(image="image"), image_roots=[tmp_path])
    assert summary.images == (60 if is_there else 0)
    assert any("the images are left out, because 1 image is missing" in note for note in summary.notes) != is_there
    images = stored.load(tmp_path / "set").images
    assert (images and [*images]) == ([photos / f"{row}.jpg" for row in range(60)] if is_there else None)
