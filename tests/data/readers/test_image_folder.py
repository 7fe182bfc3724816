import os

import pytest

import dmlcore.data
from dmlcore.data import DataError
from dmlcore.data.readers import image_folder
from dmlcore.data.readers.image_folder import read_table
from tests.data import layouts


def test_the_first_half_of_the_names_trains(tmp_path):
    layouts.class_folders(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "__MACOSX" / "ant").mkdir(parents=True)
    (tmp_path / "ant" / "notes.txt").write_text("no image")
    layouts.write_image(tmp_path / "ant" / "more" / "deep.PNG")
    dataset = dmlcore.data.load("folder", root=tmp_path, validation="none")
    assert dataset.class_names == ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
    assert [len(dataset.splits[split]) for split in ("train", "test")] == [33, 32]
    assert set(dataset.labels[dataset.splits["train"]]) == {0, 1, 2, 3}
    assert dataset.notes[0] == "1 folders without images were left out: empty"
    assert dataset.inputs[[0, 64]].shape == (2, 3, 64, 64)


def test_folders_around_the_class_folders_are_entered(tmp_path):
    layouts.class_folders(tmp_path / "download" / "images")
    table = read_table(tmp_path)
    assert len(table.class_names) == 8
    assert table.paths[0] == "download/images/ant/0.jpg"


def test_train_and_test_with_the_same_classes_are_the_image_wise_split(tmp_path):
    layouts.class_folders(tmp_path / "train")
    layouts.class_folders(tmp_path / "val", each=4)
    dataset = dmlcore.data.load("folder", root=tmp_path, split="samples", validation="none")
    assert {split: len(rows) for split, rows in dataset.splits.items()} == {"train": 64, "validation": 0, "test": 32}
    assert dataset.class_names == ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
    assert "image-wise split" in dataset.notes[0]
    by_class = dmlcore.data.load("folder", root=tmp_path, validation="none")
    assert [len(by_class.splits[split]) for split in ("train", "test")] == [48, 48]


def test_train_and_test_without_a_common_class_are_the_class_disjoint_split(tmp_path):
    layouts.class_folders(tmp_path / "train", names=("yak", "zebra", "wolf"))
    layouts.class_folders(tmp_path / "test", names=("ant", "bee"))
    dataset = dmlcore.data.load("folder", root=tmp_path, validation="none")
    assert dataset.class_names == ("wolf", "yak", "zebra", "ant", "bee")
    assert {dataset.class_names[label] for label in dataset.labels[dataset.splits["train"]]} == {"wolf", "yak", "zebra"}
    assert "class-disjoint split" in dataset.notes[0]


@pytest.mark.parametrize("names", [(), ("ant",)])
def test_less_than_two_classes_are_refused(tmp_path, names):
    layouts.class_folders(tmp_path, names=names)
    with pytest.raises(DataError, match=rf"holds images of {len(names)} classes, where two at least are needed"):
        dmlcore.data.load("folder", root=tmp_path)


def test_it_needs_a_root_that_is_a_folder(tmp_path):
    assert dmlcore.data.available("folder") is None
    assert dmlcore.data.available("folder", tmp_path / "gone") is None
    with pytest.raises(DataError, match="no folder was given as root"):
        dmlcore.data.load("folder")
    with pytest.raises(DataError, match=r"/gone was given as root; it needs a folder of class folders"):
        dmlcore.data.load("folder", root=tmp_path / "gone")
    (tmp_path / "a.zip").touch()
    with pytest.raises(DataError, match=r"a.zip is a file; Folder of class folders needs a folder"):
        dmlcore.data.load("folder", root=tmp_path / "a.zip")


def test_what_is_called_an_image_and_is_no_file_is_named_with_a_remedy(tmp_path):
    layouts.class_folders(tmp_path)
    odd = tmp_path / "ant" / "0.jpg"
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/nowhere")):
        odd.unlink()
        make(odd)
        message = f"1 of 64 images are no files but .*, first {odd}; put images there, or remove the names$"
        with pytest.raises(DataError, match=message):
            dmlcore.data.read("folder", root=str(tmp_path))


def test_a_whole_system_is_no_data_set(tmp_path, monkeypatch):
    layouts.class_folders(tmp_path)
    (tmp_path / "ant" / "more").mkdir()
    monkeypatch.setattr(image_folder, "MOST_FOLDERS", 9)
    assert len(read_table(tmp_path).class_names) == 8
    monkeypatch.setattr(image_folder, "MOST_FOLDERS", 8)
    with pytest.raises(DataError, match="has more than 8 folders in it: give the folder that holds the class folders"):
        read_table(tmp_path)


@pytest.mark.parametrize("root", ["~nobody-of-this-name", "a\0b", "x" * 5000])
def test_a_root_that_no_path_can_be_is_refused_in_words(root):
    with pytest.raises(DataError):
        dmlcore.data.load("folder", root=root)
