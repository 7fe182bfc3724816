import numpy as np
import pytest

import dmlcore.data
from tests.data import layouts


@pytest.mark.parametrize("encode", [str.encode, str], ids=["python 2 keys", "python 3 keys"])
def test_planes_names_and_parts(tmp_path, encode):
    dataset = dmlcore.data.load("cifar100", root=layouts.cifar100(tmp_path / "cifar-100-python", 2, 2, encode))
    assert dataset.inputs.shape == (400, 3, 32, 32)
    assert dataset.inputs.dtype == np.uint8
    assert dataset.inputs[300, :, 31, 31].tolist() == dataset.image(300)[0, 0].tolist() == [1, 44, 0]
    assert dataset.image(4).shape == (32, 32, 3)
    assert dataset.class_names[:2] == ("kind 00", "kind 01")
    assert set(dataset.labels[dataset.splits["test"]]) == set(range(50, 100))
    assert len(dataset.splits["test"]) == 200  # both files

    by_sample = dmlcore.data.load("cifar100", root=tmp_path, split="samples", validation="none")
    assert by_sample.splits["train"].tolist() == list(range(200))
    assert by_sample.splits["test"].tolist() == list(range(200, 400))


def test_a_subset_of_classes_keeps_the_official_border(tmp_path):
    folder = layouts.cifar100(tmp_path / "cifar-100-python")
    keep = [3, 7, 48, 49, 50, 99]
    for split, count in (("train", 4), ("test", 2)):
        content = {b"data": np.zeros((6 * count, 3072), np.uint8), b"fine_labels": keep * count}
        layouts.rewrite_pickle(folder / split, content)
    dataset = dmlcore.data.load("cifar100", root=folder)
    assert dataset.class_names == tuple(f"kind {number:02d}" for number in keep)
    assert {name: sorted(set(dataset.labels[split])) for name, split in dataset.splits.items()} == {
        "train": [0, 1],
        "validation": [2, 3],
        "test": [4, 5],
    }


def test_the_pack(pack):
    dataset = dmlcore.data.load("cifar100", root=pack("cifar-100-python.tar.gz"), validation="none")
    assert {name: len(np.unique(dataset.labels[split])) for name, split in dataset.splits.items()} == {
        "train": 50,
        "validation": 0,
        "test": 50,
    }
    assert np.bincount(dataset.labels).tolist() == [70] * 100
    assert dataset.class_names[0] == "apple"
    assert dataset.class_names[99] == "worm"
    # Published channel means of the training set; a subset of 6,000 is within a hundredth of them.
    train = dataset.inputs[:6000] / 255
    assert train.mean(axis=(0, 2, 3)) == pytest.approx([0.5071, 0.4865, 0.4409], abs=0.01)

    by_sample = dmlcore.data.load("cifar100", root=pack("cifar-100-python.tar.gz"), split="samples", validation="none")
    assert [len(by_sample.splits[name]) for name in ("train", "test")] == [6000, 1000]
