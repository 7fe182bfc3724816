"""Cifar-Collage on small, full-size and real CIFAR-100: the tiles of a collage, their uses and places."""

import hashlib

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data.synthetic import cifar_collage
from dmlcore.data.synthetic.cifar_collage import BACKGROUNDS, CifarImages, lay_out
from dmlcore.data.synthetic.collage import Collages
from tests.data import layouts
from tests.data.layouts import SUPER_CLASSES
from tests.wording import says

PACK = "cifar-100-python.tar.gz"


def source(images: int) -> CifarImages:
    """Return CIFAR-100 with `images` per class, without pixels; fine label f belongs to super-class f % 20."""
    fine = np.random.default_rng(0).permutation(np.repeat(np.arange(100), images))
    pixels = np.broadcast_to(np.uint8(0), (len(fine), 3, 32, 32))
    sub_classes = np.arange(100).reshape(5, 20).T
    return CifarImages(
        pixels, fine, len(fine) * 5 // 6, sub_classes, tuple(f"fine {f}" for f in range(100)), SUPER_CLASSES
    )


@pytest.fixture(scope="module")
def full():
    whole = source(600)
    return whole, lay_out(whole, seed=1)


@pytest.fixture
def folder(tmp_path):
    return layouts.cifar100(tmp_path / "cifar-100-python")


# Class indices


def test_the_full_set_has_the_sizes_of_section_8(full):
    _, layout = full
    assert {split: len(rows) for split, rows in layout.splits.items()} == {
        "train": 19_200,
        "validation": 9_600,
        "test": 19_200,
    }
    assert layout.tiles.shape == (48_000, 4)


def test_every_foreground_is_used_once_and_every_background_twelve_times(full):
    whole, layout = full
    is_front = ~np.isin(whole.fine % 20, [SUPER_CLASSES.index(name) for name in BACKGROUNDS])
    uses = np.bincount(layout.tiles.ravel(), minlength=60_000)
    assert (uses[is_front] == 1).all()
    assert (uses[~is_front] == 12).all()


@pytest.mark.parametrize("images", [1, 2, 7, 70])
def test_smaller_sets_use_their_backgrounds_as_evenly_as_reshuffling_allows(images):
    whole = source(images)
    layout = lay_out(whole, seed=2)
    foregrounds, backgrounds = whole.foregrounds, whole.backgrounds
    for split, sub_classes in (("train", 2), ("validation", 1), ("test", 2)):
        tiles = layout.tiles[layout.splits[split]]
        pool = whole.rows(backgrounds, split)
        assert len(pool) == 4 * sub_classes * images
        assert sorted(tiles[np.isin(tiles, whole.rows(foregrounds, split))]) == sorted(whole.rows(foregrounds, split))
        uses = np.bincount(tiles.ravel(), minlength=len(whole.fine))[pool]
        collages = 16 * sub_classes * images
        shuffles = -(-collages // (len(pool) // 3))
        assert uses.sum() == 3 * collages
        assert uses.max() <= shuffles  # at most once per shuffle
        assert all(len(set(row)) == 4 for row in tiles)


def test_no_image_and_no_sub_class_is_in_two_splits(full):
    whole, layout = full
    images = {split: set(layout.tiles[rows].ravel()) for split, rows in layout.splits.items()}
    classes = {split: set(whole.fine[list(some)]) for split, some in images.items()}
    for found in (images, classes):
        assert not found["train"] & found["validation"]
        assert not (found["train"] | found["validation"]) & found["test"]
    # The first two of the five sub-classes train, the third validates, the last two test.
    assert {split: {label // 20 for label in some} for split, some in classes.items()} == {
        "train": {0, 1},
        "validation": {2},
        "test": {3, 4},
    }


def test_backgrounds_are_of_the_four_shared_super_classes_and_mixed(full):
    whole, layout = full
    behind = np.arange(4) != layout.foreground[:, None]
    supers = whole.fine[layout.tiles] % 20
    assert set(supers[behind]) == {SUPER_CLASSES.index(name) for name in BACKGROUNDS}
    assert set(supers[~behind]) == set(range(20)) - set(supers[behind])
    # Backgrounds are uninformative: each of the four is a quarter of the backgrounds of each foreground super-class.
    for number in set(supers[~behind]):
        found = np.bincount(supers[supers[~behind] == number][behind[supers[~behind] == number]], minlength=20)
        found = found[found > 0] / found.sum()
        assert found == pytest.approx([0.25] * 4, abs=5 * np.sqrt(0.25 * 0.75 / 9000))


def test_the_foreground_is_in_every_place_equally_often_in_every_class(full):
    whole, layout = full
    error = 5 * np.sqrt(0.25 * 0.75 / 3000)  # 3,000 collages per super-class
    rows = np.take_along_axis(layout.tiles, layout.foreground[:, None], axis=1)[:, 0]
    for number in whole.foregrounds:
        places = layout.foreground[whole.fine[rows] % 20 == number]
        assert np.bincount(places, minlength=4) / 3000 == pytest.approx([0.25] * 4, abs=error)


def test_backgrounds_do_not_pass_twice_within_a_shuffle(full):
    whole, layout = full
    pool = len(whole.rows(whole.backgrounds, "train"))
    behind = layout.tiles[np.arange(4) != layout.foreground[:, None]].reshape(-1, 3)
    for start in range(0, 19_200, pool // 3):
        assert len(set(behind[start : start + pool // 3].ravel())) == pool


# Recorded by the code of 2026-11-22, before the generator of collages served other sets too.
SAMPLES = {
    ("collage", 0): "47cf0d2c38965e84bed4682f393914d07f1fe788777957b160797d49f6de2b35",
    ("collage", 4): "57dfba748a542fd95c25c42cd41b6b01b444de5f5a311f08b2dd7d2329235caf",
    ("collage_distilled", 4): "8f1da2c66e43a751fab0195ca2fa6af7bbae6f3935ccc0031354c6ab46d06532",
    ("collage_pretraining", 0): "bf0800cb1ba4ec35ca34cfa1c0f7d5477e37bdfb991ba5a8f33e552a98895e6d",
}


@pytest.mark.parametrize(("name", "seed"), SAMPLES)
def test_the_samples_are_those_they_always_were(folder, name, seed):
    dataset = dmlcore.data.load(name, root=folder, seed=seed)
    told = hashlib.sha256()
    facts = [dataset.facts[fact] for fact in ("tiles", "foreground", "fine") if fact in dataset.facts]
    for array in (dataset.inputs[:], dataset.labels, *dataset.splits.values(), *facts):
        told.update(f"{array.shape} {array.dtype}".encode() + np.ascontiguousarray(array).tobytes())
    assert told.hexdigest() == SAMPLES[name, seed]


# TileImages


def number(image):
    """Return the number that the pixels of an image (3, 32, 32) of `folder` encode."""
    assert (image == image[:, :1, :1]).all()
    return int(image[0, 0, 0]) * 256 + int(image[1, 0, 0])


def test_a_collage_shows_its_four_tiles_row_by_row(folder):
    dataset = dmlcore.data.load("collage", root=folder)
    assert dataset.inputs.shape == (480, 3, 64, 64)
    for row in (0, 200, 479):
        image = dataset.inputs[row]
        quarters = [image[:, r : r + 32, c : c + 32] for r in (0, 32) for c in (0, 32)]
        assert [number(quarter) for quarter in quarters] == dataset.facts["tiles"][row].tolist()
        front = dataset.facts["tiles"][row, dataset.facts["foreground"][row]]
        assert front % 100 == dataset.facts["fine"][row]
        assert dataset.class_names[dataset.labels[row]] == SUPER_CLASSES[front % 20]
        assert np.array_equal(dataset.image(row), image.transpose(1, 2, 0))


def test_distilled_shows_the_foregrounds_in_the_same_order(folder):
    whole, alone = (dmlcore.data.load(name, root=folder, seed=4) for name in ("collage", "collage_distilled"))
    assert alone.inputs.shape == (480, 3, 32, 32)
    assert np.array_equal(whole.labels, alone.labels)
    assert whole.class_names == alone.class_names
    assert all(np.array_equal(whole.splits[split], alone.splits[split]) for split in whole.splits)
    for row in range(0, 480, 7):
        front = whole.facts["tiles"][row, whole.facts["foreground"][row]]
        assert number(alone.inputs[row]) == front == alone.facts["tiles"][row, 0]


def test_pretraining_sees_no_class_that_validates_or_tests(folder):
    dataset = dmlcore.data.load("collage_pretraining", root=folder)
    whole = dmlcore.data.load("collage", root=folder)
    assert len(dataset.class_names) == 40
    assert set(dataset.facts["fine"]) == set(range(40))
    held_out = np.concatenate([whole.splits["validation"], whole.splits["test"]])
    assert not set(dataset.facts["tiles"].ravel()) & set(whole.facts["tiles"][held_out].ravel())
    assert dataset.splits["test"].tolist() == np.flatnonzero(dataset.facts["tiles"][:, 0] >= 400).tolist()
    assert [number(dataset.inputs[row]) for row in (0, 100)] == dataset.facts["tiles"][[0, 100], 0].tolist()
    assert [dataset.class_names[label] for label in dataset.labels[:3]] == ["kind 00", "kind 01", "kind 02"]


def test_collages_are_indexed_like_an_array():
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (9, 3, 32, 32), dtype=np.uint8)
    collages = Collages(pixels, random.integers(0, 9, (6, 4)))
    stored = np.stack([collages[row] for row in range(6)])
    for index in ([5, 0, 0], slice(None), slice(4, 1, -2), np.arange(6) > 2, -1, np.array([[1, 2], [3, 4]]), []):
        index = np.array(index, np.int64) if isinstance(index, list) else index
        assert np.array_equal(collages[index], stored[index])
    assert (collages.dtype, collages.shape, len(collages)) == (stored.dtype, stored.shape, 6)
    collages[0][:] = 0
    assert np.array_equal(collages[0], stored[0])
    with pytest.raises(IndexError, match="along their first axis"):
        collages[0, 1]
    with pytest.raises(IndexError):
        collages[6]


# Invalid data


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("train", {b"coarse_labels": None}, "train has no coarse_labels; it is not a CIFAR-100 file"),
        ("test", {b"coarse_labels": [20] * 200}, r"coarse_labels\[0\] must be in 0..19, got 20"),
        ("train", {b"coarse_labels": [7] * 400}, "super-class .* sub-classes with images instead of 5"),
        ("meta", {b"coarse_label_names": [b"x"] * 20}, "there is no super-class flowers"),
        ("meta", {b"coarse_label_names": [b"x"]}, "coarse_label_names must be a list of 20 names"),
    ],
)
@pytest.mark.parametrize("data_set", ["collage", "collage_distilled", "collage_pretraining"])
def test_damaged_super_classes_are_named(folder, data_set, name, changes, message):
    layouts.rewrite_pickle(folder / name, changes)
    with pytest.raises(dmlcore.data.DataError, match=message):
        dmlcore.data.load(data_set, root=folder)


def test_a_sub_class_in_two_super_classes_is_refused(folder):
    for split, count in (("train", 4), ("test", 2)):
        fine = [0, 0, *range(2, 100)] * count  # 0 is in two super-classes, 1 in none
        layouts.rewrite_pickle(folder / split, {b"fine_labels": fine})
    with pytest.raises(dmlcore.data.DataError, match="a sub-class is in two super-classes"):
        dmlcore.data.load("collage", root=folder)


# The pack


def test_the_pack(pack):
    dataset = dmlcore.data.load("collage", root=pack(PACK))
    assert {split: len(rows) for split, rows in dataset.splits.items()} == {
        "train": 2240,
        "validation": 1120,
        "test": 2240,
    }
    assert says(dataset.notes[0], "subset", "7,000", "60,000", "CIFAR-100")
    assert len(dataset.class_names) == 16
    assert not set(dataset.class_names) & set(BACKGROUNDS)
    names = dmlcore.data.load("cifar100", root=pack(PACK)).class_names
    test = {names[label] for label in set(dataset.facts["fine"][dataset.splits["test"]])}
    # the last sub-classes of aquatic mammals, fish, large carnivores, people
    assert {"whale", "trout", "wolf", "woman"} <= test
    assert not {"beaver", "dolphin", "otter", "baby", "oak_tree"} & test
    assert cifar_collage.read_source(dmlcore.data.locate("collage", pack(PACK))).sub_classes[0].tolist() == [
        4,
        30,
        55,
        72,
        95,
    ]
