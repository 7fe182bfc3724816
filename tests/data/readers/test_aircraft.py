import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError, published_counts
from dmlcore.data.readers.aircraft import read_table
from tests.data import layouts


@pytest.mark.parametrize(
    ("where", "trainval", "newline"), [("fgvc-aircraft-2013b", True, "\n"), ("aircraft/aircraft", False, "\r\n")]
)
def test_names_with_spaces_and_slashes(tmp_path, where, trainval, newline):
    folder = layouts.aircraft(tmp_path / where, newline, trainval=trainval)
    dataset = dmlcore.data.load("aircraft", root=tmp_path, validation="none")
    assert dataset.class_names == tuple(layouts.VARIANTS[rank] for rank in (0, 1, 2, 3, 50, 51, 52, 53))
    counts = {split: np.bincount(dataset.labels[rows], minlength=8).tolist() for split, rows in dataset.splits.items()}
    assert (counts["train"], counts["test"]) == ([8] * 4 + [0] * 4, [0] * 4 + [8] * 4)
    by_image = dmlcore.data.load("aircraft", root=folder / "data", split="samples", validation="none")
    assert np.bincount(by_image.labels[by_image.splits["train"]]).tolist() == [4] * 8
    assert dataset.inputs[[0, 63]].shape == (2, 3, 64, 64)


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("variants", ["A 000/x y", "b", "A 000/x y"], r"variants.txt:3: A 000/x y is already listed in line 1"),
        ("variants", ["A 000/x y"], r"images_variant_trainval.txt:\d+: variant '/ 001/x y' is not in .*variants.txt"),
        ("variants", None, r"variants.txt is missing; restore it"),
        ("images_variant_test", ["0000001"], r"test.txt:1: expected '<image number> <variant>', got '0000001'"),
        ("images_variant_test", ["x A 000/x y"], r"test.txt:1: expected"),
        ("images_variant_test", ["../1 A 000/x y"], r"test.txt:1: expected"),
        ("images_variant_test", ["9999999 A"], r"test.txt:1: variant 'A' is not in"),
        ("images_variant_test", ["0000000 A 000/x y"], r"image 0000000 is already listed in .*trainval.txt:1"),
        ("images_variant_test", [], r"test.txt is empty"),
        ("images_variant_test", None, r"test.txt is missing"),
    ],
)
def test_19_22_a_damaged_list_is_named_with_its_line(tmp_path, name, rows, message):
    path = layouts.aircraft(tmp_path) / "data" / f"{name}.txt"
    if rows is None:
        path.unlink()
    else:
        layouts.text(path, rows)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path)


def test_the_complete_lists(pack):
    table = read_table(dmlcore.data.locate("aircraft", pack("aircraft-lists.tar.gz")))
    assert published_counts.sizes(table.labels, table.train_classes) == {"train": (5_000, 50), "test": (5_000, 50)}
    assert published_counts.deviations("aircraft", table.labels, table.train_classes) == ()
    assert (table.official_train.sum(), (~table.official_train).sum()) == (6_667, 3_333)
    assert (np.bincount(table.labels) == 100).all()
    assert table.class_names[0] == "707-320"
    assert {"F-16A/B", "Boeing 717", "Eurofighter Typhoon"} <= set(table.class_names)
