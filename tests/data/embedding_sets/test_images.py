"""Assignment of image files to rows, and refusal of paths that leave their folder."""

import re
from pathlib import Path

import pytest

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.jpg", "a.PNG", "in/c.webp", "notes.txt", ".hidden.jpg", "__MACOSX/d.jpg"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "outside.jpg").write_bytes(b"")
    return tmp_path / "photos"


def test_an_image_column_names_the_files(folder: Path) -> None:
    assert images.assign(folder, 3, ["in/c.webp", "./b.jpg", "b.jpg"], None) == ["in/c.webp", "b.jpg", "b.jpg"]


def test_ids_are_names_or_stems(folder: Path) -> None:
    assert images.assign(folder, 3, None, ["c", "b.jpg", "a"]) == ["in/c.webp", "b.jpg", "a.PNG"]


@pytest.mark.parametrize("ids", [None, ["1", "2", "3"]])
def test_otherwise_files_are_assigned_in_order(folder: Path, ids: list[str] | None) -> None:
    assert images.assign(folder, 3, None, ids) == ["a.PNG", "b.jpg", "in/c.webp"]


def refused(folder: Path, message: str, paths=None, ids=None, rows: int = 3) -> None:
    with pytest.raises(DataError) as raised:
        images.assign(folder, rows, paths, ids)
    assert str(raised.value).startswith(message)


def test_missing_files_are_counted_and_the_first_rows_named(folder: Path) -> None:
    message = f"4 images are missing in {folder}: row 1 ('x.jpg'), row 3 has no path, row 4 ('in/x.jpg'), …"
    refused(folder, message, ["x.jpg", "b.jpg", None, "in/x.jpg", "no/x.jpg"])
    refused(folder, f"1 image is missing in {folder}: row 2 ('z')", ids=["a", "z", "b"])
    # files are found by name only if no path exists
    message = f"1 image is missing in {folder}: row 2 ('photos/c.webp')"
    refused(folder, message, ["b.jpg", "photos/c.webp"], rows=2)


def test_another_number_of_files_is_named(folder: Path) -> None:
    refused(folder, f"{folder} has 3 image files for 4 rows, and no column names them", rows=4)


def test_an_ambiguous_id_is_named(folder: Path) -> None:
    (folder / "b.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"^row 1: 'b\.(jpg|png)' and 'b\.(jpg|png)' both have the name 'b'"):
        images.assign(folder, 1, None, ["b"])


@pytest.mark.parametrize("path", ["../outside.jpg", "/etc/passwd.jpg", "in/../../outside.jpg", "a\\b.jpg", "b\0.jpg"])
def test_a_path_that_leaves_the_folder_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(DataError, match=r"^row 2: the image path .* leads outside the folder of the images"):
        images.assign(folder, 2, ["b.jpg", path], None)


def test_links_that_leave_the_folder_are_refused(folder: Path) -> None:
    (folder / "link.jpg").symlink_to(folder.parent / "outside.jpg")
    (folder / "up").symlink_to(folder.parent)
    (folder / "inside.jpg").symlink_to(folder / "b.jpg")
    assert images.assign(folder, 1, ["inside.jpg"], None) == ["inside.jpg"]
    for path in ("link.jpg", "up/outside.jpg"):
        refused(folder, f"row 1: the image '{path}' is a link that leads outside {folder}", [path])
    assert "link.jpg" not in set(images.images_below(folder))
    assert not any(path.startswith("up/") for path in images.images_below(folder))


def test_other_files_are_refused(folder: Path) -> None:
    message = "row 1: 'notes.txt' is not an image; supported suffixes: .jpg, .jpeg, .png, .webp, .gif, .bmp"
    refused(folder, message, ["notes.txt"])
    with pytest.raises(DataError, match=re.escape("is not a folder; give the folder of the images")):
        images.assign(folder / "b.jpg", 1, None, None)


def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "\udcff.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"^row 1: the image '.*xff\.jpg' has a name that is not UTF-8; rename it$"):
        images.assign(tmp_path, 1, None, None)


def test_copies_keep_their_relative_paths(folder: Path, tmp_path: Path) -> None:
    (folder / "in/c.webp").write_bytes(b"content")
    images.copy(folder, ["in/c.webp", "b.jpg", "b.jpg"], tmp_path / "copies")
    assert (tmp_path / "copies/in/c.webp").read_bytes() == b"content"
    with pytest.raises(DataError, match=r"the image 'gone\.jpg' cannot be copied"):
        images.copy(folder, ["gone.jpg"], tmp_path / "others")


def test_absolute_and_relative_paths_below_allowed_folders(folder: Path, tmp_path: Path) -> None:
    paths = [str(tmp_path / "outside.jpg"), "in/c.webp", str(folder / "b.jpg")]
    found = images.find(folder, paths, [tmp_path])
    assert found == (tmp_path, ["outside.jpg", "photos/in/c.webp", "photos/b.jpg"])
    assert images.find(None, paths[2:], [tmp_path]) == (folder, ["b.jpg"])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{outside}", "row 1: the image path '.*' leads outside the folder of the images; give paths relative to"),
        ("{folder}/../outside.jpg", "leads outside the folder of the images"),
        ("{folder}/link.jpg", "leads outside the folder of the images"),
        ("{folder}/linked/outside.jpg", "leads outside the folder of the images"),
        ("../outside.jpg", "leads outside the folder of the images"),
        ("{folder}/no.jpg", "1 image is missing in .*photos: row 1"),
        ("{folder}/notes.txt", "is not an image"),
        ("//etc/passwd", "is not an image"),
    ],
)
def test_absolute_paths_elsewhere_are_refused(folder: Path, tmp_path: Path, path: str, message: str) -> None:
    (folder / "link.jpg").symlink_to(tmp_path / "outside.jpg")
    (folder / "linked").symlink_to(tmp_path)
    given = path.format(folder=folder, outside=tmp_path / "outside.jpg")
    with pytest.raises(DataError, match=message):
        images.find(folder, [given, str(folder / "b.jpg")], [folder])


def test_relative_paths_need_a_folder(folder: Path) -> None:
    with pytest.raises(DataError, match=r"row 2: the image path 'b\.jpg' is relative; give the folder of the images"):
        images.find(None, [str(folder / "b.jpg"), "b.jpg"], [folder])
