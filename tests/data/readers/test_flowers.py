import numpy as np
import pytest
from scipy.io import savemat

import dmlcore.data
from dmlcore.data import DataError, published_counts
from dmlcore.data.readers import flowers
from dmlcore.data.readers.flowers import read_table
from tests.data import layouts


@pytest.mark.parametrize("where", ["flowers-102", "flowers-102/flowers-102", "102flowers"])
def test_labels_and_splits(tmp_path, where):
    layouts.flowers(tmp_path / where)
    dataset = dmlcore.data.load("flowers", root=tmp_path, validation="none")
    assert dataset.class_names == tuple(flowers.NAMES[label - 1] for label in (1, 2, 3, 4, 52, 53, 54, 55))
    assert dataset.class_names[0] == "pink primrose"
    assert dataset.labels.tolist() == np.repeat([4, 5, 6, 7, 0, 1, 2, 3], 8).tolist()
    assert dataset.splits["train"].tolist() == list(range(32, 64))
    assert dataset.splits["test"].tolist() == list(range(32))
    by_image = dmlcore.data.load("flowers", root=tmp_path, split="samples", validation="none")
    assert by_image.splits["train"].tolist() == [row for row in range(64) if row % 4 < 2]
    assert dataset.inputs[[0, 63]].shape == (2, 3, 64, 64)


@pytest.mark.parametrize(
    ("labels", "sets", "message"),
    [
        ([1, 103, 2], None, r"imagelabels.mat: labels, entry 2: expected 1 to 102, got 103"),
        ([1, 0, 2], None, r"imagelabels.mat: labels, entry 2: expected 1 to 102, got 0"),
        ([1, 2, 2], ([1], [2], [4]), r"setid.mat: tstid, entry 1: expected an image from 1 to 3, got 4"),
        ([1, 2, 2], ([1], [2], [3, 0]), r"setid.mat: tstid, entry 2: expected an image from 1 to 3, got 0"),
        ([1, 2, 2], ([1], [2], [3, 1]), r"setid.mat: tstid, entry 2: image 1 is already in trnid"),
        ([1, 2, 2], ([1], [1], [2]), r"setid.mat: valid, entry 1: image 1 is already in trnid"),
        ([1, 2, 2, 2], ([1], [2], [4]), r"setid.mat: image 3 is not in any of trnid, valid, tstid"),
    ],
)
def test_a_damaged_file_is_named_with_its_entry(tmp_path, labels, sets, message):
    savemat(tmp_path / "imagelabels.mat", {"labels": np.array([labels])})
    found = dict(zip(("trnid", "valid", "tstid"), sets or ([1], [2], [3]), strict=True))
    savemat(tmp_path / "setid.mat", {name: np.array([numbers]) for name, numbers in found.items()})
    with pytest.raises(DataError, match=message):
        read_table(tmp_path)


def test_the_complete_labels(pack):
    table = read_table(dmlcore.data.locate("flowers", pack("flowers102-labels.tar.gz")))
    assert published_counts.sizes(table.labels, table.train_classes) == {"train": (3_493, 51), "test": (4_696, 51)}
    assert published_counts.deviations("flowers", table.labels, table.train_classes) == ()
    assert (table.official_train.sum(), (~table.official_train).sum()) == (2_040, 6_149)
    sizes = np.bincount(table.labels)
    assert (len(sizes), sizes.min(), sizes.max()) == (102, 40, 258)
    assert table.paths[-1] == "image_08189.jpg"
