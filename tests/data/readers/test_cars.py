import numpy as np
import pytest
from scipy.io import savemat

import dmlcore.data
from dmlcore.data import DataError, published_counts
from dmlcore.data.readers.cars import LAST_TRAINING_NAME, read_table
from tests.data import layouts

NAMES = tuple(layouts.CARS.values())


def rewrite(path, **columns):
    savemat(path, {"annotations": layouts.structs(**columns), "class_names": layouts.cells(layouts.car_names())})


def columns(count, **changed):
    kept = {
        "relative_im_path": [f"car_ims/{row:06d}.jpg" for row in range(1, count + 1)],
        "class": [1 + row % 196 for row in range(count)],
        "test": [row % 2 for row in range(count)],
    }
    return kept | changed


@pytest.mark.parametrize(
    ("where", "write", "options"),
    [
        ("stanford_cars", layouts.cars_single, {}),
        ("cars196/cars196", layouts.cars_single, {"compressed": True}),
        ("stanford_cars", layouts.cars_devkit, {}),
        ("cars196/cars196", layouts.cars_devkit, {"labelled": "devkit", "nested": True}),
        ("stanford_cars", layouts.cars_by_class, {}),
        ("cars196/cars196", layouts.cars_by_class, {"newline": "\r\n", "trunk": "car_data"}),
        ("stanford_cars", layouts.cars_by_class, {"trunk": "."}),
    ],
)
def test_every_layout_with_annotations_gives_the_same_splits(tmp_path, where, write, options):
    write(tmp_path / where, **options)
    dataset = dmlcore.data.load("cars", root=tmp_path, validation="none")
    assert dataset.class_names == NAMES
    labels = {split: np.bincount(dataset.labels[rows], minlength=8).tolist() for split, rows in dataset.splits.items()}
    assert labels == {"train": [8] * 4 + [0] * 4, "validation": [0] * 8, "test": [0] * 4 + [8] * 4}
    by_image = dmlcore.data.load("cars", root=tmp_path, split="samples", validation="none")
    assert [len(by_image.splits[split]) for split in ("train", "test")] == [32, 32]
    assert dataset.inputs[[0, 63]].shape == (2, 3, 64, 64)
    assert dataset.notes[0].startswith("not the published data set")


def test_the_same_name_in_train_and_test_stays_two_images(tmp_path):
    table = read_table(layouts.cars_devkit(tmp_path, images=False))
    assert {"cars_train/00001.jpg", "cars_test/00001.jpg"} <= set(table.paths)
    assert len(set(table.paths)) == 64


def test_a_flat_folder_is_split_by_name_as_published(tmp_path):
    folder = layouts.cars_flat(tmp_path / "cars196")
    dataset = dmlcore.data.load("cars", root=tmp_path, validation="none")
    assert dmlcore.data.locate("cars", tmp_path) == folder
    assert dataset.class_names[:2] == ("Acura RL Sedan 2012", "AM General Hummer SUV 2000")
    named = {
        split: {dataset.class_names[label] for label in dataset.labels[rows]} for split, rows in dataset.splits.items()
    }
    assert named["train"] == set(NAMES[:4])
    assert named["test"] == {name.replace("/", "-") for name in NAMES[4:]}
    assert any("no annotations" in note for note in dataset.notes)


def test_a_layout_with_images_goes_first(tmp_path):
    layouts.cars_single(tmp_path, images=False)
    layouts.cars_devkit(tmp_path, nested=True)
    assert read_table(tmp_path).paths[0] == "cars_train/cars_train/00001.jpg"


def test_without_the_labelled_file_the_remedy_is_said(tmp_path):
    layouts.cars_devkit(tmp_path)
    (tmp_path / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(DataError, match=r"cars_test_annos_withlabels.mat is missing; it contains the labels"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"class": [1, 2, 197, 4]}, r"cars_annos.mat, entry 3: expected a class from 1 to 196, got 197"),
        ({"class": [1, 0, 3, 4]}, r"entry 2: expected a class from 1 to 196, got 0"),
        ({"test": [0, 1, 2, 0]}, r"annotations.test, entry 3: expected 0 or 1, got 2"),
        ({"relative_im_path": ["a.jpg", "b.jpg", "a.jpg", "c.jpg"]}, r"entry 3: a.jpg is already listed in .*entry 1"),
        ({"relative_im_path": ["a.jpg", "../b.jpg", "c.jpg", "d.jpg"]}, r"entry 2: expected the path of an image"),
        ({"relative_im_path": ["a.jpg", "/etc/passwd", "c.jpg", "d.jpg"]}, r"entry 2: expected the path of an image"),
        ({"relative_im_path": ["a.jpg", 7, "c.jpg", "d.jpg"]}, r"annotations.relative_im_path, entry 2: expected text"),
    ],
)
def test_a_damaged_file_is_named_with_its_entry(tmp_path, changed, message):
    rewrite(tmp_path / "cars_annos.mat", **columns(4, **changed))
    with pytest.raises(DataError, match=message):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("00001.jpg,1,2,3,4", r"anno_train.csv:3: expected '<file>,<x1>"),
        ("00001.jpg,1,2,3,4,197", r"anno_train.csv:3: expected"),
        ("00001.jpg,1,2,3,4,one", r"anno_train.csv:3: expected"),
        ("../1.jpg,1,2,3,4,1", r"anno_train.csv:3: expected"),
        ("00002.jpg,1,2,3,4,1", r"anno_train.csv:3: .*/00002.jpg is already listed in line 2"),
    ],
)
def test_a_damaged_table_is_named_with_its_line(tmp_path, row, message):
    layouts.cars_by_class(tmp_path)
    layouts.text(tmp_path / "anno_train.csv", ["00001.jpg,1,2,3,4,1", "00002.jpg,1,2,3,4,1", row])
    with pytest.raises(DataError, match=message):
        read_table(tmp_path)


def test_a_class_named_twice_is_refused(tmp_path):
    layouts.cars_by_class(tmp_path)
    layouts.text(tmp_path / "names.csv", [*layouts.car_names(), "BMW M3 Coupe 2012"])
    with pytest.raises(DataError, match=r"names.csv:197: BMW M3 Coupe 2012 is already listed in line 3"):
        read_table(tmp_path)


def test_the_complete_annotations(pack):
    """The three layouts of the pack agree on every class."""
    folder = dmlcore.data.locate("cars", pack("cars-annotations.tar.gz")).parent
    tables = {name: read_table(folder / name) for name in ("stanford_cars", "cars196", "by_classes_folder")}
    devkit, single, by_class = tables.values()
    for name, table in tables.items():
        assert dmlcore.data.locate("cars", folder / name) == folder / name
        assert published_counts.sizes(table.labels, table.train_classes) == {"train": (8054, 98), "test": (8131, 98)}
        assert published_counts.deviations("cars", table.labels, table.train_classes) == ()
        assert (table.official_train.sum(), (~table.official_train).sum()) == (8144, 8041)
        assert table.class_names == devkit.class_names
        assert np.bincount(table.labels).tolist() == np.bincount(devkit.labels).tolist()
    sizes = np.bincount(devkit.labels)
    assert (sizes.min(), sizes.max()) == (48, 136)
    assert devkit.labels.tolist() == by_class.labels.tolist()
    assert any("/Ram C-V Cargo Van Minivan 2012/" in path for path in by_class.paths)
    # The flat layout has no class numbers: its rule by names must give the published training classes.
    train = set(single.class_names[: single.train_classes])
    assert {name for name in single.class_names if name.casefold() <= LAST_TRAINING_NAME.casefold()} == train
