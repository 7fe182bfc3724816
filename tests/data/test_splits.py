import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.data import DataError, splits
from dmlcore.data.dataset import Samples


def samples(labels, train_classes=2, **more):
    labels = np.asarray(labels)
    names = more.pop("class_names", tuple(f"class {label}" for label in range(labels.max() + 1)))
    return Samples(np.zeros((len(labels), 1), np.float32), labels, names, train_classes, **more)


@given(
    sizes=st.lists(st.integers(4, 12), min_size=4, max_size=12),
    split=st.sampled_from(["classes", "samples"]),
    validation=st.sampled_from(["classes", "samples", "none"]),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_parts_are_a_seeded_partition_that_keeps_the_protocol(sizes, split, validation, seed, data):
    labels = data.draw(st.permutations(np.repeat(np.arange(len(sizes)), sizes).tolist()).map(np.array))
    boundary = data.draw(st.integers(2, len(sizes) - 2))
    train_sizes = sizes[:boundary] if split == "classes" else [size - max(2, size // 2) for size in sizes]
    too_few = {
        "classes": len(train_sizes) < 4,  # two held out must leave two
        "samples": sum(size >= 4 for size in train_sizes) < 2,  # classes that can spare two samples
        "none": False,
    }
    if too_few[validation]:
        with pytest.raises(DataError, match=rf"split '{split}' with validation '{validation}' leaves the"):
            splits.partition(samples(labels, boundary), split, validation, seed)
        return

    partition = splits.partition(samples(labels, boundary), split, validation, seed)
    again = splits.partition(samples(labels, boundary), split, validation, seed)
    assert all(np.array_equal(partition[name], again[name]) for name in partition)
    assert np.array_equal(np.sort(np.concatenate(list(partition.values()))), np.arange(len(labels)))
    assert all((np.diff(rows) > 0).all() for rows in partition.values())
    train, held_out, test = (set(labels[partition[name]]) for name in ("train", "validation", "test"))
    if split == "classes":
        assert train | held_out == set(range(boundary))
        assert test == set(range(boundary, len(sizes)))
    else:
        assert test == set(range(len(sizes)))
    if validation == "classes":
        assert not train & held_out
        assert min(held_out) > max(train)
        assert len(held_out) == max(2, len(train | held_out) // 4)
    elif validation == "samples":
        assert held_out <= train
    else:
        assert not held_out


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    fraction=st.sampled_from([0.2, 0.5]),
    seed=st.integers(0, 2**32),
)
def test_a_stratified_cut_takes_the_fraction_of_every_class_and_never_a_lone_sample(sizes, fraction, seed):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    kept, cut = splits.split_stratified(labels, np.arange(len(labels)), fraction, seed)
    assert np.array_equal(np.sort(np.concatenate([kept, cut])), np.arange(len(labels)))
    for label, size in enumerate(sizes):
        taken = int((labels[cut] == label).sum())
        assert taken == (0 if size < 4 else max(2, int(size * fraction)))


def test_another_seed_gives_another_sample_wise_split():
    labels = np.repeat(np.arange(5), 20)
    first, second = (splits.partition(samples(labels), "samples", "samples", seed) for seed in (0, 1))
    assert all(not np.array_equal(first[name], second[name]) for name in first)


def test_the_official_image_wise_split_is_kept():
    official = np.array([True, False, True, True, False, False])
    partition = splits.partition(samples([0, 0, 0, 1, 1, 1], 1, official_train=official), "samples", "none", 0)
    assert partition["train"].tolist() == [0, 2, 3]
    assert partition["test"].tolist() == [1, 4, 5]


GALLERY = np.array([False, False, True, True, False, True, False, True])


def test_a_gallery_is_taken_out_of_the_test_split():
    found = samples(np.repeat(np.arange(4), 2), gallery=GALLERY)
    partition = splits.partition(found, "classes", "none", 0)
    assert list(partition) == ["train", "validation", "test", "gallery"]
    assert partition["train"].tolist() == [0, 1, 2, 3]  # ignored in this mode
    assert (partition["test"].tolist(), partition["gallery"].tolist()) == ([4, 6], [5, 7])
    assert "gallery" not in splits.partition(
        samples(np.repeat(np.arange(4), 4), gallery=np.tile(GALLERY, 2)), "samples", "none", 0
    )


def test_a_gallery_of_one_class_is_refused():
    with pytest.raises(
        DataError, match=r"leaves the gallery split with a single class .*gallery 1 samples of 1 classes"
    ):
        splits.partition(samples(np.repeat(np.arange(4), 2), gallery=np.arange(8) == 7), "classes", "none", 0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("abcdefge", r"in both queries and gallery: image e \(rows 4 and 7\); correct the lists"),
        ("abcdafgh", r"in both train and test: image a \(rows 0 and 4\)"),
        ("abcdefgb", r"in both train and test: image b \(rows 1 and 7\)"),
    ],
)
def test_22_an_image_in_two_splits_is_refused(keys, message):
    found = samples(np.repeat(np.arange(4), 2), gallery=GALLERY, keys=list(keys))
    with pytest.raises(DataError, match=message):
        splits.partition(found, "classes", "none", 0)


@pytest.mark.parametrize(
    ("split", "validation", "name"), [("class", "none", "split"), ("classes", "all", "validation")]
)
def test_an_unknown_protocol_is_refused_by_name(split, validation, name):
    with pytest.raises(DataError, match=f"^{name} must be"):
        splits.partition(samples(np.repeat(np.arange(4), 5)), split, validation, 0)
