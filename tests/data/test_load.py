"""Contract of every data set; a new reader is covered as soon as it is registered."""

import numpy as np
import pytest

import dmlcore.data
from tests.data import layouts
from tests.members import in_one_case

NAMES = dmlcore.data.names()


DISJOINT = ("omniglot_collage", "glyph_collage")  # whose own splits share no class
OWN = [name for name in NAMES if dmlcore.data.describe(name).split == "own"]
CHOOSING = [name for name in NAMES if name not in OWN]
PACKS = {
    "cifar-10-batches-py": "cifar-10-batches-py.tar.gz",
    "cifar-100-python": "cifar-100-python.tar.gz",
    "CUB_200_2011": "cub-mini-images.tar.gz",
}


@pytest.fixture
def load(pack, tmp_path_factory):
    """Call `dmlcore.data.load` on packs or generated trees; fail for a data set that has files but neither of these."""
    generated = tmp_path_factory.getbasetemp() / "layouts"

    def load(name, **options):
        info = dmlcore.data.describe(name)
        root = None
        if name in layouts.WRITERS:
            root = generated / name
            if not root.exists():
                layouts.WRITERS[name](root)
        elif info.needs_files:
            root = pack(PACKS[info.folder])
        return dmlcore.data.load(name, root=root, **options)

    return load


@in_one_case(name=NAMES)
def test_a_description_is_complete(name):
    info = dmlcore.data.describe(name)
    assert info.name == name
    assert info.title
    assert info.sentence.endswith(".")
    assert info.citation.endswith(".")
    assert (info.image_size is None) == (info.kind != "images")
    assert (info.split == "own") == (info.validation == "own")
    known = bool(info.folder and info.url and info.archives and info.markers)
    assert info.needs_files == (known or name in ("folder", "embeddings"))
    assert set(info.companions) <= set(info.archives)


@pytest.mark.parametrize("name", CHOOSING)
@in_one_case(split=["classes", "samples"], validation=["classes", "samples", "none"])
def test_every_partition_is_into_usable_splits(load, name, split, validation):
    dataset = load(name, split=split, validation=validation)
    splits = dataset.splits
    count = len(dataset.labels)
    searched = ["gallery"] if name == "inshop" and split == "classes" else []
    assert list(splits) == ["train", "validation", "test", *searched]
    assert np.array_equal(np.sort(np.concatenate(list(splits.values()))), np.arange(count))
    assert all(split.dtype == np.int64 for split in splits.values())
    assert dataset.labels.dtype == np.int64
    assert np.array_equal(np.unique(dataset.labels), np.arange(len(dataset.class_names)))
    assert len(dataset.inputs) == count == dataset.inputs.shape[0]
    if split == "classes":
        test = set(dataset.labels[splits["test"]])
        assert not test & set(dataset.labels[np.concatenate([splits["train"], splits["validation"]])])
    for key in ("train", "test") if validation == "none" else splits:
        sizes = np.bincount(dataset.labels[splits[key]])
        assert (sizes[sizes > 0] > 1).all()
        assert (sizes > 0).sum() >= 2
        assert any(note.startswith(f"{key}: {len(splits[key]):,} samples") for note in dataset.notes)


@pytest.mark.parametrize("name", OWN)
def test_own_splits_are_a_partition_with_every_class_in_each_or_in_one_alone(load, name):
    dataset = load(name)
    splits, classes = dataset.splits, len(dataset.class_names)
    assert list(splits) == ["train", "validation", "test"]
    assert np.array_equal(np.concatenate(list(splits.values())), np.arange(len(dataset.labels)))
    sizes = np.array([np.bincount(dataset.labels[rows], minlength=classes) for rows in splits.values()])
    assert (sizes != 1).all()
    assert ((sizes > 0).sum(0) == (1 if name in DISJOINT else 3)).all()
    for split, rows in splits.items():
        assert rows.dtype == np.int64
        assert any(note.startswith(f"{split}: {len(rows):,} samples") for note in dataset.notes)
    assert np.array_equal(load(name, split="own", validation="own").labels, dataset.labels)


@in_one_case(name=OWN, cut=[("split", "classes"), ("split", "samples"), ("validation", "none")])
def test_own_splits_cannot_be_cut_otherwise(name, cut):
    key, value = cut
    with pytest.raises(dmlcore.data.DataError, match=f"{key} cannot be set for {name}, .* got '{value}'"):
        dmlcore.data.load(name, **{key: value})


@in_one_case(name=CHOOSING, key=["split", "validation"])
def test_a_set_without_splits_of_its_own_says_so(name, key):
    with pytest.raises(dmlcore.data.DataError, match=f"{key} cannot be 'own' for {name}"):
        dmlcore.data.load(name, **{key: "own"})


@pytest.mark.parametrize("name", NAMES)
def test_inputs_and_images(load, name):
    dataset = load(name)
    batch = dataset.inputs[dataset.splits["test"][:5]]
    assert batch.shape == (5, *dataset.inputs.shape[1:])
    assert batch.dtype == dataset.inputs.dtype
    if dmlcore.data.describe(name).kind == "vectors":
        assert batch.dtype == np.float32
        assert batch.ndim == 2
        assert np.isfinite(batch).all()
    elif dmlcore.data.describe(name).kind == "tokens":
        assert batch.dtype == np.int64
        assert batch.ndim == 2
        assert batch.min() >= 0
    else:
        info = dmlcore.data.describe(name)
        assert batch.dtype == np.uint8
        assert batch.shape[1:] == (info.channels, info.image_size, info.image_size)
        assert hasattr(dataset.inputs, "uncut") == info.centre_cut
    if dataset.image is not None:
        image = dataset.image(int(dataset.splits["test"][0]))
        assert image.dtype == np.uint8
        assert image.ndim == 3
        assert image.shape[2] == 3


@pytest.mark.parametrize("name", NAMES)
def test_the_same_call_gives_the_same_data(load, name):
    first, second = load(name, seed=3), load(name, seed=3)
    rows = first.splits["train"][:8]
    assert np.array_equal(first.inputs[rows], second.inputs[rows])
    assert all(np.array_equal(first.splits[split], second.splits[split]) for split in first.splits)
    assert all(np.array_equal(first.facts[fact], second.facts[fact]) for fact in first.facts)
    assert all(len(fact) == len(first.labels) for fact in first.facts.values())


def test_labels_and_splits_cannot_be_changed_by_accident():
    dataset = dmlcore.data.load("digits")
    for array in (dataset.labels, *dataset.splits.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_digits():
    dataset = dmlcore.data.load("digits")
    assert dataset.inputs.shape == (1797, 64)
    assert (dataset.inputs.min(), dataset.inputs.max()) == (0, 1)
    assert len(dataset.splits["test"]) == 896
    disjoint = dmlcore.data.load("digits", split="classes")
    assert set(disjoint.labels[disjoint.splits["train"]]) == {0, 1, 2, 3, 4}
    assert set(disjoint.labels[disjoint.splits["test"]]) == {5, 6, 7, 8, 9}


def test_toy_follows_section_9():
    dataset = dmlcore.data.load("toy")
    sizes = {name: len(np.unique(dataset.labels[split])) for name, split in dataset.splits.items()}
    assert sizes == {"train": 12, "validation": 4, "test": 16}
    points = np.asarray(dataset.inputs).reshape(32, 200, 3)
    covariance = np.mean([np.cov(cluster.T) for cluster in points], axis=0)
    assert covariance == pytest.approx(0.02 * np.eye(3), abs=0.0015)  # 5 standard errors of 6,400 points
    means = points.mean(axis=1)
    assert means.min() > -0.05
    assert means.max() < 1.05
    assert not np.array_equal(dataset.inputs, dmlcore.data.load("toy", seed=1).inputs)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mnist", {}, "unknown data set 'mnist'; choose one of digits, toy"),
        ("digits", {"image_size": 8}, "image_size cannot be changed for digits"),
        ("cifar100", {"image_size": 64}, "image_size cannot be changed for cifar100, which has 32 pixels"),
        ("cub", {"image_size": 4}, "from 16 to 512, got 4"),
        ("cub", {"image_size": 10**6}, "from 16 to 512, got 1000000"),
    ],
)
def test_a_bad_argument_is_named(name, options, message):
    with pytest.raises(dmlcore.data.DataError, match=message):
        dmlcore.data.load(name, **options)


@in_one_case(
    name=[name for name in NAMES if dmlcore.data.describe(name).needs_files],
    ask=[dmlcore.data.available, dmlcore.data.locate, lambda name, root: dmlcore.data.load(name, root=root)],
)
def test_what_the_system_refuses_is_a_data_error(name, ask):
    with pytest.raises(dmlcore.data.DataError, match="File name too long"):
        ask(name, "x" * 5000)
