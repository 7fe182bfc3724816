"""List of the photographs in a folder: labels from class folders or a table, and refusals."""

from pathlib import Path

import pytest

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import photographs
from dmlcore.data.embedding_sets.roles import Roles


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_class_folders_are_labels(tmp_path: Path) -> None:
    listed = photographs.list_folder(touch(tmp_path, "b/x.jpg", "a/2/y.png", "a/1.jpg", "a/notes.txt", "a/.hidden.jpg"))
    assert listed.paths == ["a/1.jpg", "a/2/y.png", "b/x.jpg"]
    assert listed.columns.to_pydict() == {"image": listed.paths, "label": ["a", "a", "b"]}
    assert (listed.roles, listed.notes) == (Roles(label="label", id="image", image="image"), ())


@pytest.mark.parametrize("names", [("2.jpg", "1.jpg"), ("one/2.jpg", "one/1.jpg")])
def test_other_folders_have_no_labels(tmp_path: Path, names: tuple[str, ...]) -> None:
    listed = photographs.list_folder(touch(tmp_path, *names))
    assert listed.columns.column_names == ["image"]
    assert listed.paths == sorted(names)
    assert (listed.roles.label, listed.notes) == (None, ())


def test_a_photograph_next_to_class_folders_leaves_no_labels(tmp_path: Path) -> None:
    listed = photographs.list_folder(touch(tmp_path, "a/1.jpg", "b/2.jpg", "3.jpg"))
    assert (len(listed.paths), listed.roles.label) == (3, None)
    assert listed.notes[0].startswith("no labels: 1 photographs are not in class folders, such as 3.jpg")


def test_train_and_test_folders_are_the_split(tmp_path: Path) -> None:
    listed = photographs.list_folder(touch(tmp_path, "in/train/a/1.jpg", "in/test/b/2.jpg", "in/val/a/3.jpg"))
    assert listed.columns.column("label").to_pylist() == ["b", "a", "a"]
    assert listed.columns.column("split").to_pylist() == ["test", "train", "val"]
    assert listed.roles.split == "split"


def test_a_table_names_photographs_in_its_order(tmp_path: Path) -> None:
    touch(tmp_path / "photos", "x/1.jpg", "2.jpg", "3.jpg")
    (tmp_path / "t.csv").write_text("filename,species,price\n2.jpg,owl,1\nx/1.jpg,jay,2\n")
    listed = photographs.list_table(tmp_path / "photos", tmp_path / "t.csv", "species")
    assert listed.paths == ["2.jpg", "x/1.jpg"]
    assert listed.columns.column("price").to_pylist() == [1, 2]
    assert (listed.roles.label, listed.roles.image, listed.roles.id) == ("species", "filename", "filename")
    assert photographs.list_table(tmp_path / "photos", tmp_path / "t.csv").notes[0].startswith("t.csv has no column of")


def test_ids_name_photographs(tmp_path: Path) -> None:
    touch(tmp_path / "photos", "x/1.jpg", "b.jpg")
    (tmp_path / "t.csv").write_text("sku,label\nb,owl\n1,jay\n")
    listed = photographs.list_table(tmp_path / "photos", tmp_path / "t.csv")
    assert listed.columns.column("image").to_pylist() == ["b.jpg", "x/1.jpg"]
    assert (listed.roles.id, listed.roles.image) == ("sku", "image")


def test_absolute_paths_of_a_table_become_relative(tmp_path: Path) -> None:
    touch(tmp_path, "photos/1.jpg", "other/2.jpg")
    (tmp_path / "t.csv").write_text(f"image,label\n{tmp_path}/other/2.jpg,a\n1.jpg,b\n")
    listed = photographs.list_table(tmp_path / "photos", tmp_path / "t.csv", roots=[tmp_path])
    assert (listed.folder, listed.paths) == (tmp_path, ["other/2.jpg", "photos/1.jpg"])
    assert listed.columns.column("image").to_pylist() == listed.paths
    with pytest.raises(DataError, match=r"row 1: the image path .* leads outside the folder of the images"):
        photographs.list_table(tmp_path / "photos", tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("table", "label", "message"),
    [
        ("label\na\n", None, r"t.csv has no column that names the photographs; rename one of its columns \(label\)"),
        ("image,label\n1.jpg,a\n", "kind", r"t.csv has no column 'kind' for the label; it has image, label"),
        ("image,label\n1.jpg,\n", None, r"t.csv, column label, row 1 has no label"),
        ("image,label\n9.jpg,a\n", None, r"1 image is missing in .*: row 1 \('9.jpg'\)"),
        ("id,label\n9,a\n", None, r"1 image is missing in .*: row 1 \('9'\)"),
        ("image,label\n../t.csv,a\n", None, r"row 1: the image path '../t.csv' leads outside"),
    ],
)
def test_unusable_tables_are_refused(tmp_path: Path, table: str, label: str | None, message: str) -> None:
    (tmp_path / "t.csv").write_text(table)
    with pytest.raises(DataError, match=message):
        photographs.list_table(touch(tmp_path / "photos", "1.jpg"), tmp_path / "t.csv", label)


def test_folders_without_photographs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no photographs; give a folder with"):
        photographs.list_folder(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        photographs.list_folder(tmp_path / "none")
