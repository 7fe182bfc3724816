"""The token data follow section 7 of the science note."""

from types import SimpleNamespace

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data.synthetic import tokens
from dmlcore.training.evaluation import raw_inputs


@pytest.fixture(scope="module")
def dataset():
    return dmlcore.data.load("tokens", seed=5)


def test_sizes(dataset):
    assert dataset.inputs.shape == (16 * (2048 + 128 + 128), 50)
    for split, bags in (("train", 2048), ("validation", 128), ("test", 128)):
        assert np.bincount(dataset.labels[dataset.splits[split]]).tolist() == [bags] * 16


def test_a_bag_holds_tokens_of_its_class_and_shared_ones_only(dataset):
    inputs, labels = dataset.inputs, dataset.labels
    assert (inputs.min(), inputs.max()) == (0, 67)
    is_shared = np.isin(inputs, tokens.SHARED_TOKENS)
    assert ((inputs // tokens.OWN == labels[:, None]) | is_shared).all()
    shared = is_shared.sum(axis=1)
    assert (shared >= 1).all()
    assert (shared <= 49).all()


def test_the_share_has_its_mean_and_its_standard_deviation(dataset):
    shared = np.isin(dataset.inputs, tokens.SHARED_TOKENS).sum(axis=1)
    error = 5 / np.sqrt(len(shared))  # the standard deviation is 5 tokens; that of its estimate 5 / sqrt(2 N)
    assert shared.mean() == pytest.approx(25, abs=5 * error)
    assert shared.std() == pytest.approx(np.sqrt(25 + 1 / 12), abs=5 * error)  # 1 / 12 from rounding


def test_the_number_of_shared_tokens_is_clipped(monkeypatch):
    monkeypatch.setattr(tokens, "SHARE_STD", 2.0)
    bags = tokens.draw(np.zeros(2000, np.int64), np.random.default_rng(0))
    shared = np.isin(bags, tokens.SHARED_TOKENS).sum(axis=1)
    assert (shared.min(), shared.max()) == (1, 49)
    assert (shared == 1).sum() > 500


def test_tokens_are_uniform_within_their_group_and_in_no_order(dataset):
    counts = np.bincount(dataset.inputs.ravel(), minlength=tokens.TOKENS)
    for group in [tokens.token_ids_of(label) for label in range(tokens.CLASSES)] + [tokens.SHARED_TOKENS]:
        total = counts[group].sum()
        assert counts[group] == pytest.approx(total / 4, abs=5 * np.sqrt(total * 3 / 16))
    at_each_place = np.isin(dataset.inputs, tokens.SHARED_TOKENS).mean(axis=0)
    assert at_each_place == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(len(dataset.inputs)))


def test_no_bag_is_in_two_splits(dataset):
    bags = {split: {bag.tobytes() for bag in dataset.inputs[rows]} for split, rows in dataset.splits.items()}
    assert not bags["train"] & bags["validation"]
    assert not (bags["train"] | bags["validation"]) & bags["test"]


def test_the_tokens_of_classes_and_the_shared_ones_are_all_tokens():
    groups = [tokens.token_ids_of(label) for label in range(tokens.CLASSES)]
    assert np.concatenate([*groups, tokens.SHARED_TOKENS]).tolist() == list(range(68))
    with pytest.raises(ValueError, match=r"label must be in 0..15, got 16"):
        tokens.token_ids_of(16)
    with pytest.raises(ValueError, match="read-only"):
        tokens.SHARED_TOKENS[0] = 1


def test_counts_forget_the_order(dataset):
    bags = dataset.inputs[:100]
    counts = tokens.counts(bags)
    assert counts.shape == (100, 68)
    assert all(counts[i, t] == (bags[i] == t).sum() for i in range(100) for t in range(68))
    assert np.array_equal(tokens.counts(bags[:, ::-1]), counts)


def test_raw_inputs_compare_counts_not_numbers_of_tokens(dataset):
    counts = raw_inputs(dataset, "test")
    assert counts.dtype == np.float32
    assert np.array_equal(counts, tokens.counts(dataset.inputs[dataset.splits["test"]]))
    few = SimpleNamespace(inputs=np.array([[3, 3], [0, 1]], np.uint8), splits={"test": np.array([0])})
    assert raw_inputs(few, "test").tolist() == [[0, 0, 0, 2]]  # equally wide for the half and the whole


def test_the_image_has_a_column_for_each_class_and_one_for_the_shared_tokens(dataset):
    row = int(dataset.splits["test"][0])
    image = dataset.image(row)
    assert image.shape == (4, 17, 3)
    lit = np.flatnonzero(image.any(axis=(0, 2)))
    assert set(lit) <= {dataset.labels[row], 16}
    assert image[1, 16, 0] == 255 * min((dataset.inputs[row] == 65).sum(), 16) // 16


def test_few_classes_are_drawn_alike():
    few = dmlcore.data.load("tokens_few", seed=5)
    shared = np.isin(few.inputs, tokens.shared_tokens(tokens.FEW))
    assert tokens.shared_tokens(tokens.FEW).tolist() == [16, 17, 18, 19]
    assert (few.inputs.min(), few.inputs.max()) == (0, 19)
    assert ((few.inputs // tokens.OWN == few.labels[:, None]) | shared).all()
    assert shared.mean() == pytest.approx(0.5, abs=0.005)
    assert np.bincount(few.labels[few.splits["validation"]]).tolist() == [128] * 4
    assert few.image(0).shape == (4, 5, 3)
