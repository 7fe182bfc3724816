import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError, published_counts
from dmlcore.data.readers.sop import read_table
from tests.data import layouts


@pytest.mark.parametrize(
    ("where", "second", "newline"),
    [
        ("Stanford_Online_Products", False, "\n"),
        ("Stanford_Online_Products/Stanford_Online_Products", False, "\r\n"),
        ("online_products", True, "\n"),
    ],
)
def test_both_layouts(tmp_path, where, second, newline):
    layouts.sop(tmp_path / where, newline, second=second)
    dataset = dmlcore.data.load("sop", root=tmp_path, validation="none")
    assert dataset.labels.tolist() == np.repeat(np.arange(8), 8).tolist()
    assert dataset.class_names[0] == "coffee maker 1"
    assert dataset.class_names[-1] == "bicycle 11322"
    assert dataset.splits["train"].tolist() == list(range(32))
    assert dataset.splits["test"].tolist() == list(range(32, 64))
    assert dataset.inputs[[0, 63]].shape == (2, 3, 64, 64)


HEADER = "image_id class_id super_class_id path"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1 1 1 a_final/1.JPG"], r"Ebay_train.txt:1: expected the header 'image_id"),
        ([HEADER], r"Ebay_train.txt has a header but no rows"),
        ([HEADER, "1 1 a_final/1.JPG"], r"Ebay_train.txt:2: expected three numbers from 1 and a path"),
        ([HEADER, "1 0 1 a_final/1.JPG"], r"Ebay_train.txt:2: expected three numbers"),
        ([HEADER, "1 -1 1 a_final/1.JPG"], r"Ebay_train.txt:2: expected three numbers"),
        ([HEADER, "", "1 1 1 /etc/passwd"], r"Ebay_train.txt:3: expected '<category>_final/<file>'"),
        ([HEADER, "1 1 1 a_final/../b.JPG"], r"Ebay_train.txt:2: expected '<category>_final/<file>'"),
        ([HEADER, "1 1 1 a_final/1.JPG", "1 1 1 a_final/2.JPG"], r"txt:3: image_id 1 is already listed in line 2"),
        ([HEADER, "1 1 1 a/1.JPG", "2 2 1 a/1.JPG"], r"train.txt:3: a/1.JPG is already listed in line 2"),
        ([HEADER, "1 11320 1 a/1.JPG"], r"class 11320 \(.*train.txt:2 and .*test.txt:10\)"),
        ([HEADER, "33 1 1 a_final/1.JPG"], r"Ebay_test.txt:2: image_id 33 is already listed in .*Ebay_train.txt:2"),
    ],
)
def test_19_a_damaged_list_is_named_with_its_line(tmp_path, rows, message):
    layouts.sop(tmp_path, images=False)
    layouts.text(tmp_path / "Ebay_train.txt", rows)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path)


def test_the_complete_lists(pack):
    table = read_table(dmlcore.data.locate("sop", pack("sop-lists.tar.gz")))
    assert published_counts.sizes(table.labels, table.train_classes) == {
        "train": (59_551, 11_318),
        "test": (60_502, 11_316),
    }
    assert published_counts.deviations("sop", table.labels, table.train_classes) == ()
    assert np.array_equal(np.unique(table.labels), np.arange(22_634))
    assert table.paths[0] == "bicycle_final/111085122871_0.JPG"
    sizes = np.bincount(table.labels)
    assert (sizes.min(), sizes.max()) == (2, 12)
