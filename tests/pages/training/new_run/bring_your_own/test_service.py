"""Uploaded files on disk: safe names, one zip or loose images, and messages without folders of the server."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from dmlcore.data import DataError
from dmlcore.experiments import imports
from dmlcore.experiments.imports import Import
from pages.training.new_run.bring_your_own import service


@dataclass
class Upload:
    """Uploaded file with the attributes that the page uses."""

    name: str
    content: bytes = b"x"
    file_id: str = "1-2"

    def getbuffer(self) -> memoryview:
        return memoryview(self.content)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    return imports.new_import()


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("e.npy", "e.npy"),
        ("../../e.npy", "e.npy"),
        ("C:\\data\\e.npy", "e.npy"),
        ("a\0b.csv", "ab.csv"),
        ("..", "file"),
        ("", "file"),
        ("dir/", "file"),
        ("\udcff.csv", "xff.csv"),
        (f"{'ä' * 300}.csv", f"{'ä' * 98}.csv"),
    ],
)
def test_names_lead_nowhere(place: Import, name: str, stored: str) -> None:
    path = service.store_file(place, "embeddings", Upload(name, file_id="../../x"))
    assert path == place.files / "embeddings" / "x" / stored
    assert path.read_bytes() == b"x"


def test_a_replaced_file_has_another_path(place: Import) -> None:
    first = service.store_file(place, "labels", Upload("a.csv", b"1", "1"))
    second = service.store_file(place, "labels", Upload("a.csv", b"2", "2"))
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")


def test_images_are_one_zip_or_loose_files(place: Import) -> None:
    assert service.store_images(place, [Upload("p.ZIP")]).name == "p.ZIP"
    folder = service.store_images(place, [Upload("a.png"), Upload("b.png")])
    assert sorted(path.name for path in folder.iterdir()) == ["a.png", "b.png"]
    service.store_images(place, [Upload("b.png")])
    assert [path.name for path in folder.iterdir()] == ["b.png"]


def test_a_zip_next_to_images_and_repeated_names_are_refused(place: Import) -> None:
    with pytest.raises(DataError, match=r"p.zip is one of 2 files; give one .zip file, or images only"):
        service.store_images(place, [Upload("p.zip"), Upload("a.png")])
    with pytest.raises(DataError, match=r"two images have the name a.png"):
        service.store_images(place, [Upload("a.png"), Upload("a.png")])


def test_messages_name_uploads_without_folders(place: Import) -> None:
    message = f"2 images are missing in {place.files / 'images' / 'loose'}: row 1; add the files"
    assert (
        service.without_folders(place, message) == "2 images are missing in the uploaded images: row 1; add the files"
    )
    hidden = service.without_folders(place, f"refusing {place.files / 'images' / 'x' / 'p.zip'}: it has links")
    assert str(place.path) not in hidden


def test_a_full_disk_is_reported(place: Import) -> None:
    place.files.parent.mkdir(exist_ok=True)
    place.files.write_bytes(b"")  # a file where the folder should be
    with pytest.raises(DataError, match=r"e.npy cannot be stored"):
        service.store_file(place, "embeddings", Upload("e.npy"))


def test_images_in_a_zip_are_counted_without_unpacking_it(tmp_path: Path) -> None:
    file = tmp_path / "photos.zip"
    with zipfile.ZipFile(file, "w") as packed:
        for name in ("a/1.JPG", "a/2.png", "a/notes.txt", "__MACOSX/a/1.JPG", "a/.3.png"):
            packed.writestr(name, b"")
    assert service.count_images(file) == 2


@pytest.mark.parametrize("name", ["bad.zip", "absent"])
def test_images_of_an_unreadable_place_have_no_count(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 damaged")
    assert service.count_images(tmp_path / name) is None
