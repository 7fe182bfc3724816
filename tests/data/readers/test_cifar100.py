import pickle

import numpy as np
import pytest

import dmlcore.data


def write(folder, rows_per_class=2, encode=str.encode):
    """Write a small set in the official layout; pixel values encode row and channel."""
    folder.mkdir()
    for split in ("train", "test"):
        labels = np.tile(np.arange(100), rows_per_class).tolist()
        channels = np.repeat(np.array([10, 20, 30], np.uint8), 1024)
        pixels = (np.arange(len(labels), dtype=np.uint8)[:, None] // 2 + channels).astype(np.uint8)
        content = {encode("data"): pixels, encode("fine_labels"): labels}
        (folder / split).write_bytes(pickle.dumps(content, protocol=2))
    names = [encode(f"kind {number:02d}") for number in range(100)]
    (folder / "meta").write_bytes(pickle.dumps({encode("fine_label_names"): names}, protocol=2))
    return folder


@pytest.mark.parametrize("encode", [str.encode, str], ids=["python 2 keys", "python 3 keys"])
def test_planes_names_and_parts(tmp_path, encode):
    dataset = dmlcore.data.load("cifar100", root=write(tmp_path / "cifar-100-python", encode=encode))
    assert dataset.inputs.shape == (400, 3, 32, 32)
    assert dataset.inputs.dtype == np.uint8
    assert dataset.inputs[4, :, 31, 31].tolist() == [12, 22, 32]
    assert dataset.image(4)[0, 0].tolist() == [12, 22, 32]
    assert dataset.image(4).shape == (32, 32, 3)
    assert dataset.class_names[:2] == ("kind 00", "kind 01")
    assert set(dataset.labels[dataset.splits["test"]]) == set(range(50, 100))
    assert len(dataset.splits["test"]) == 200  # both files

    by_sample = dmlcore.data.load("cifar100", root=tmp_path, split="samples", validation="none")
    assert by_sample.splits["train"].tolist() == list(range(200))
    assert by_sample.splits["test"].tolist() == list(range(200, 400))


def test_a_subset_of_classes_keeps_the_official_border(tmp_path):
    folder = write(tmp_path / "cifar-100-python")
    for split in ("train", "test"):
        content = pickle.loads((folder / split).read_bytes())
        keep = [row for row, label in enumerate(content[b"fine_labels"]) if label in (3, 7, 48, 49, 50, 99)]
        content = {b"data": content[b"data"][keep], b"fine_labels": [content[b"fine_labels"][row] for row in keep]}
        (folder / split).write_bytes(pickle.dumps(content, protocol=2))
    dataset = dmlcore.data.load("cifar100", root=folder)
    assert dataset.class_names == tuple(f"kind {number:02d}" for number in (3, 7, 48, 49, 50, 99))
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
