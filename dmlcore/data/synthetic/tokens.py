"""Bags of class tokens and shared tokens, for studies of what pooling can separate (science note, section 7)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.typing import Ints, Pixels

# number of classes; number of tokens per class; number of tokens that all classes share
CLASSES, OWN, SHARED = 16, 4, 4
TOKENS = CLASSES * OWN + SHARED
BAG = 50  # tokens per bag
BAGS = {"train": 2048, "validation": 128, "test": 128}  # bags per class
SHARE_MEAN, SHARE_STD = 0.5, 0.1  # mean and standard deviation of the fraction of class tokens in a bag
FEW = 4  # number of classes in the smaller data set; embeddings of four classes can be displayed in a plane


def shared_tokens(classes: int = CLASSES) -> Ints:
    """Return the ids (4,) of the tokens that bags of all `classes` classes contain, as a read-only array."""
    ids: Ints = np.arange(classes * OWN, classes * OWN + SHARED)
    ids.flags.writeable = False
    return ids


SHARED_TOKENS = shared_tokens()

INFO = Description(
    name="tokens",
    title="Token bags",
    sentence="Bags of 50 tokens in 16 classes; about half of a bag are tokens that all classes share.",
    citation="Synthetic token study of generalized sum pooling, 16 classes of 4 tokens and 4 shared tokens.",
    kind="tokens",
    split="own",
    validation="own",
)
FEW_INFO = replace(
    INFO,
    name="tokens_few",
    title="Token bags, four classes",
    sentence="The same bags with four classes, few enough to be separated in a plane.",
    citation="After the synthetic token study of generalized sum pooling; the number of classes is the lab's own.",
)


def token_ids_of(label: int) -> Ints:
    """Return the ids (4,) of tokens found only in bags of class `label`; raise ValueError unless 0 <= label < 16."""
    if not 0 <= label < CLASSES:
        raise ValueError(f"label must be in 0..{CLASSES - 1}, got {label!r}")
    return np.arange(OWN * label, OWN * (label + 1))


def draw(labels: NDArray[np.integer], random: np.random.Generator, classes: int = CLASSES) -> Ints:
    """Draw one bag of 50 token ids for each label (n,) in 0..classes-1; return (n, 50).

    For each bag, the fraction mu of class tokens is drawn from N(0.5, 0.1^2). Of the 50 tokens, round(50 (1 - mu)),
    clipped to 1..49, are shared tokens and the others are tokens of the class; all are drawn with replacement. Their
    order in the bag is random.
    """
    share = random.normal(SHARE_MEAN, SHARE_STD, size=(len(labels), 1))
    shared = np.rint(BAG * (1 - share)).clip(1, BAG - 1)
    is_shared = np.arange(BAG) < shared
    own = OWN * labels[:, None] + random.integers(OWN, size=(len(labels), BAG))
    common = classes * OWN + random.integers(SHARED, size=(len(labels), BAG))
    bags: Ints = random.permuted(np.where(is_shared, common, own), axis=1)
    return bags


def counts(bags: NDArray[np.integer], tokens: int = TOKENS) -> Ints:
    """Return the number of occurrences of each of the `tokens` ids in each bag: (n, L) -> (n, tokens)."""
    cells = np.arange(len(bags))[:, None] * tokens + bags
    return np.bincount(cells.ravel(), minlength=len(bags) * tokens).reshape(-1, tokens)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Draw the bags for `seed`; inputs are token ids (36864, 50) int64 in 0..67, sorted by split and class.

    Each class has 2,048 bags for training and 128 each for validation and test.
    """
    return _bags(CLASSES, seed)


@reader(FEW_INFO)
def read_few(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Draw the bags of four classes for `seed`; inputs are token ids (9216, 50) int64 in 0..19."""
    return _bags(FEW, seed)


def _bags(classes: int, seed: int) -> Samples:
    random = np.random.default_rng(seed)
    labels = {split: np.repeat(np.arange(classes), bags) for split, bags in BAGS.items()}
    inputs = np.concatenate([draw(labels[split], random, classes) for split in BAGS])
    ends = np.cumsum([len(labels[split]) for split in BAGS])
    return Samples(
        inputs=inputs,
        labels=np.concatenate(list(labels.values())),
        class_names=tuple(f"tokens {OWN * c}-{OWN * c + OWN - 1}" for c in range(classes)),
        train_classes=classes,
        splits={split: np.arange(end - len(labels[split]), end) for split, end in zip(BAGS, ends, strict=True)},
        image=partial(_image, inputs, classes),
    )


def _image(inputs: Ints, classes: int, index: int) -> Pixels:
    """Return the token counts of bag `index` as an image (4, classes + 1, 3): a column per class, then shared tokens.

    Counts of 16 and more are white.
    """
    table = counts(inputs[index : index + 1], (classes + 1) * OWN).reshape(classes + 1, OWN).T
    grey = (255 * table.clip(0, 16) // 16).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)
