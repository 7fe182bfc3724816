import numpy as np
import pytest
from PIL import Image

import dmlcore.data
from dmlcore.data import published_counts
from dmlcore.data.readers.cub import read_table

CLASSES = {3: "003.Sooty_Albatross", 7: "007.Parakeet_Auklet", 101: "101.White_Pelican", 150: "150.Sage_Thrasher"}


def write(folder, newline="\n", images=True):
    """Write four classes of two images each, numbered from 1, with irregularities of real copies."""
    folder.mkdir(parents=True)
    files = [f"{name}/{name[4:].upper()}_{row}.jpg" for name in CLASSES.values() for row in range(2)]
    lists = {
        "images": dict(enumerate(files, start=1)),
        "image_class_labels": {row + 1: list(CLASSES)[row // 2] for row in range(8)},
        "classes": {**CLASSES, 200: "200.Common_Yellowthroat"},  # a class without images
        "train_test_split": {row + 1: 1 - row % 2 for row in range(8)},
    }
    for name, rows in lists.items():
        text = "".join(f"{number} {value}{newline}" for number, value in rows.items())
        (folder / f"{name}.txt").write_bytes(text.encode())
    for row, file in enumerate(files if images else []):
        path = folder / "images" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L" if row == 0 else "RGB", (40, 30), 10 * row if row == 0 else (10 * row, 0, 0)).save(path)
        (path.parent / f"._{path.name}").write_bytes(b"\0\5\x16\7")  # macOS archives
    return folder


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_classes_and_labels(tmp_path, newline):
    folder = write(tmp_path / "CUB_200_2011" / "CUB_200_2011", newline)
    dataset = dmlcore.data.load("cub", root=tmp_path, validation="none", image_size=16)
    assert dataset.class_names == ("Sooty Albatross", "Parakeet Auklet", "White Pelican", "Sage Thrasher")
    assert dataset.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert dataset.splits["train"].tolist() == [0, 1, 2, 3]
    assert dataset.splits["test"].tolist() == [4, 5, 6, 7]
    assert dataset.inputs.shape == (8, 3, 16, 16)
    assert dataset.inputs[np.array([0, 5])][:, 0, 8, 8].tolist() == pytest.approx([0, 50], abs=2)
    assert dataset.image(0).shape == (30, 40, 3)
    assert dmlcore.data.load("cub", root=folder, split="samples", validation="none").splits["train"].tolist() == [
        0,
        2,
        4,
        6,
    ]


def test_rows_are_joined_by_number_not_by_position(tmp_path):
    folder = write(tmp_path / "cub")
    labels = folder / "image_class_labels.txt"
    labels.write_text("".join(reversed(labels.read_text().splitlines(keepends=True))))
    assert read_table(folder).labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_lists_without_images_say_where_to_put_them(tmp_path):
    folder = write(tmp_path / "CUB_200_2011", images=False)
    assert len(read_table(folder).paths) == 8
    with pytest.raises(dmlcore.data.DataError, match=r"no images: put them at .*CUB_200_2011/images/003"):
        dmlcore.data.load("cub", root=folder)


@pytest.mark.parametrize("where", ["cub200", "CUB_200_2011", "cub200/cub200"])
def test_folders_without_lists_are_read_by_their_numbers(tmp_path, where):
    folder = write(tmp_path / where)
    for name in ("images", "image_class_labels", "classes", "train_test_split"):
        (folder / f"{name}.txt").unlink()
    (folder / "images" / "200.Common_Yellowthroat").mkdir()  # a class without images
    assert dmlcore.data.locate("cub", tmp_path) == folder
    dataset = dmlcore.data.load("cub", root=tmp_path, validation="none")
    assert dataset.class_names == ("Sooty Albatross", "Parakeet Auklet", "White Pelican", "Sage Thrasher")
    assert dataset.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [dataset.splits[split].tolist() for split in ("train", "test")] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert any("there are no lists next to the images" in note for note in dataset.notes)
    (folder / "images" / "003.Other").mkdir()
    with pytest.raises(dmlcore.data.DataError, match=r"003.Sooty_Albatross has the same class number as .*003.Other"):
        read_table(folder)


def test_a_folder_without_a_class_number_is_named(tmp_path):
    folder = write(tmp_path / "cub200")
    for path in folder.glob("*.txt"):
        path.unlink()
    (folder / "images" / "sketches").mkdir()
    with pytest.raises(dmlcore.data.DataError, match=r"images/sketches must start with a class number"):
        read_table(folder)


def test_the_complete_lists(pack):
    table = read_table(dmlcore.data.locate("cub", pack("cub-annotations.tar.gz")))
    assert published_counts.deviations("cub", table.labels, table.train_classes) == ()
    is_train = table.labels < table.train_classes
    assert (is_train.sum(), (~is_train).sum()) == (5864, 5924)
    assert (table.official_train.sum(), (~table.official_train).sum()) == (5994, 5794)
    assert (len(table.class_names), table.train_classes) == (200, 100)
    assert table.class_names[0] == "Black footed Albatross"
    sizes = np.bincount(table.labels)
    assert (sizes.min(), sizes.max()) == (41, 60)


def test_the_pack_of_images(pack):
    dataset = dmlcore.data.load("cub", root=pack("cub-mini-images.tar.gz"), validation="none")
    assert {name: len(split) for name, split in dataset.splits.items()} == {"train": 522, "validation": 0, "test": 378}
    assert dataset.notes[0].endswith(
        "train 522 images of 58 classes (published: 5,864 of 100), "
        "test 378 images of 42 classes (published: 5,924 of 100)"
    )
    table = read_table(dmlcore.data.locate("cub", pack("cub-mini-images.tar.gz")))
    grey = [row for row, path in enumerate(table.paths) if "Mallard_0130" in path or "Nutcracker_0020" in path]
    pixels = dataset.inputs[np.array(grey)]
    assert pixels.shape == (2, 3, 64, 64)
    assert (pixels == pixels[:, :1]).all()
    assert (pixels.std(axis=(1, 2, 3)) > 10).all()
    assert dataset.image(grey[0]).shape == (227, 227, 3)
