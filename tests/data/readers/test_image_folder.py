import os

import pytest

import dmlcore.data
from dmlcore.data import DataError
from dmlcore.data.readers import image_folder
from dmlcore.data.readers.image_folder import read_table
from dmlcore.data.shards import pack
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
    assert dataset.notes[1] == "1 file was skipped: 1 .txt (ant/notes.txt)"
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


@pytest.mark.parametrize(("names", "held"), [((), "no class"), (("ant",), "1 class")])
def test_less_than_two_classes_are_refused(tmp_path, names, held):
    layouts.class_folders(tmp_path, names=names)
    with pytest.raises(DataError, match=rf"contains images of {held}, but at least two classes are needed"):
        dmlcore.data.load("folder", root=tmp_path)


def test_what_is_skipped_is_counted_and_named(tmp_path):
    layouts.class_folders(tmp_path)
    layouts.write_image(tmp_path / "loose.jpg")
    for name in ("ant/a.tif", "ant/b.TIF", "bee/notes.txt", "bee/Thumbs.db", "bee/.hidden", "readme"):
        (tmp_path / name).touch()
    (tmp_path / "ant" / "link").symlink_to(tmp_path / "bee")
    for name in ("a.webp", "b.gif", "c.bmp"):
        layouts.write_image(tmp_path / "cat" / name)
    table = read_table(tmp_path)
    assert len(table.paths) == 67
    assert set(table.notes[0].removeprefix("6 files were skipped: ").split(", ")) == {
        "2 .tif (ant/a.tif)",
        "1 .txt (bee/notes.txt)",
        "1 .jpg outside the class folders (loose.jpg)",
        "1 without extension outside the class folders (readme)",
        "1 linked folders (ant/link)",
    }


def test_a_folder_of_other_files_says_what_it_holds(tmp_path):
    (tmp_path / "vectors").mkdir()
    for number in range(3):
        (tmp_path / "vectors" / f"{number}.npy").touch()
    with pytest.raises(DataError, match=r"images of no class.*\.bmp files; 3 files were skipped: 3 .npy \(vectors/"):
        read_table(tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_images_are_left_out_where_that_is_asked_for(tmp_path, packed):
    layouts.class_folders(tmp_path / "set")
    for name in ("ant/3.jpg", "hen/0.jpg"):
        (tmp_path / "set" / name).write_bytes(b"no image")
    place = tmp_path / "set"
    if packed:
        pack.pack("folder", dmlcore.data.read("folder", root=place), tmp_path / "shards")
        place = tmp_path / "shards"
    with pytest.raises(
        DataError, match=r"2 of 64 images are unreadable, .*; to leave them out, set data.damaged to skip"
    ):
        dmlcore.data.load("folder", root=place).inputs[0]
    for _ in range(2):  # found, then remembered
        made = dmlcore.data.load("folder", root=place, validation="none", damaged="skip")
        assert made.notes[0] == ("2 of 64 images cannot be decoded and are left out: ant/3.jpg, hen/0.jpg")
        assert len(made.labels) == len(made.files) == len(made.keys) == 62
        assert made.inputs[:].shape == (62, 3, 64, 64)
        assert made.image(61).shape == (18, 24, 3)
        assert made.keys[3] == "ant/4.jpg"
    whole = dmlcore.data.load("folder", root=place, validation="none")
    rows = [row for row, key in enumerate(whole.keys) if key in set(made.keys)]
    assert (whole.labels[rows] == made.labels).all()


def test_it_needs_a_root_that_is_a_folder(tmp_path):
    assert dmlcore.data.available("folder") is None
    assert dmlcore.data.available("folder", tmp_path / "gone") is None
    with pytest.raises(DataError, match="root must be a folder of class folders, got no folder"):
        dmlcore.data.load("folder")
    with pytest.raises(DataError, match=r"root must be a folder of class folders, got /.*/gone"):
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
        message = f"1 of 64 images are not regular files, .*, the first {odd}; replace them by images, or remove them$"
        with pytest.raises(DataError, match=message):
            dmlcore.data.read("folder", root=str(tmp_path))


def test_a_whole_system_is_no_data_set(tmp_path, monkeypatch):
    layouts.class_folders(tmp_path)
    (tmp_path / "ant" / "more").mkdir()
    monkeypatch.setattr(image_folder, "MOST_FOLDERS", 9)
    assert len(read_table(tmp_path).class_names) == 8
    monkeypatch.setattr(image_folder, "MOST_FOLDERS", 8)
    with pytest.raises(
        DataError, match="contains more than 8 folders; give the folder that contains the class folders"
    ):
        read_table(tmp_path)


@pytest.mark.parametrize("root", ["~nobody-of-this-name", "a\0b", "x" * 5000])
def test_a_root_that_no_path_can_be_is_refused_in_words(root):
    with pytest.raises(DataError):
        dmlcore.data.load("folder", root=root)
