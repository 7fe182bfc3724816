import pickle

import numpy as np
import pytest

import dmlcore.data

BATCHES = [f"data_batch_{number}" for number in range(1, 6)]


def write(folder, batches=BATCHES, encode=str.encode):
    """Write 20 images per batch in the official layout; pixel values encode batch, row and channel."""
    folder.mkdir()
    for number, name in enumerate([*batches, "test_batch"]):
        channels = np.repeat(np.array([0, 50, 100], np.uint8), 1024)
        pixels = (np.arange(20, dtype=np.uint8)[:, None] + channels + 20 * number % 40).astype(np.uint8)
        labels = [(row + number) % 10 for row in range(20)]
        (folder / name).write_bytes(pickle.dumps({encode("data"): pixels, encode("labels"): labels}, protocol=2))
    names = [encode(f"kind {number}") for number in range(10)]
    (folder / "batches.meta").write_bytes(pickle.dumps({encode("label_names"): names}, protocol=2))
    return folder


@pytest.mark.parametrize("encode", [str.encode, str], ids=["python 2 keys", "python 3 keys"])
def test_batches_in_order_with_the_official_split(tmp_path, encode):
    folder = write(tmp_path / "cifar-10-batches-py", encode=encode)
    dataset = dmlcore.data.load("cifar10", root=tmp_path, validation="none")
    assert dataset.inputs.shape == (120, 3, 32, 32)
    assert dataset.inputs[3, :, 31, 0].tolist() == [3, 53, 103]
    assert dataset.inputs[23, :, 31, 0].tolist() == [23, 73, 123]  # second batch
    assert dataset.image(3)[31, 0].tolist() == [3, 53, 103]
    assert dataset.labels[20:24].tolist() == [1, 2, 3, 4]
    assert dataset.class_names[9] == "kind 9"
    assert dataset.splits["train"].tolist() == list(range(100))
    assert dataset.splits["test"].tolist() == list(range(100, 120))
    by_class = dmlcore.data.load("cifar10", root=folder, split="classes")
    assert set(by_class.labels[by_class.splits["test"]]) == {5, 6, 7, 8, 9}


def test_batches_that_are_not_there_are_noted(tmp_path):
    write(tmp_path / "cifar-10-batches-py", batches=["data_batch_1", "data_batch_4"])
    dataset = dmlcore.data.load("cifar10", root=tmp_path)
    assert len(dataset.inputs) == 60
    said = "a subset: 60 of the 60,000 images, without data_batch_2, data_batch_3, data_batch_5"
    assert dataset.notes[0] == said


@pytest.mark.parametrize("name", ["data_batch_1", "test_batch", "batches.meta"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = write(tmp_path / "cifar-10-batches-py")
    (folder / name).unlink()
    with pytest.raises(dmlcore.data.DataError, match=rf"{name} is missing; unpack https://.*cifar-10-python"):
        dmlcore.data.load("cifar10", root=folder)


def test_a_file_of_cifar_100_is_not_taken_for_one(tmp_path):
    folder = write(tmp_path / "cifar-10-batches-py")
    content = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [0, 1]}
    (folder / "data_batch_2").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(dmlcore.data.DataError, match="data_batch_2 has no labels; it is not a CIFAR-10 file"):
        dmlcore.data.load("cifar10", root=folder)


def test_the_pack(pack):
    dataset = dmlcore.data.load("cifar10", root=pack("cifar-10-batches-py.tar.gz"), validation="none")
    assert [len(dataset.splits[split]) for split in ("train", "test")] == [1800, 400]
    assert np.bincount(dataset.labels).tolist() == [220] * 10
    assert dataset.class_names[0] == "airplane"
    assert dataset.class_names[9] == "truck"
    # Published channel means of the training set.
    assert dataset.inputs[:1800].mean(axis=(0, 2, 3)) / 255 == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.015)
