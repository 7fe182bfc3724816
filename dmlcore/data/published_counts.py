"""Published sizes of the class-disjoint splits, taken from ../shared/data/README.md, section 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dmlcore.typing import Bools, Ints


class SplitSize(NamedTuple):
    """Number of samples and number of classes in a split."""

    samples: int
    classes: int


# Data set -> split -> size. "train" includes the validation samples; "test" of In-shop contains only the queries.
PUBLISHED: Mapping[str, Mapping[str, SplitSize]] = {
    "cub": {"train": SplitSize(5_864, 100), "test": SplitSize(5_924, 100)},
    "cars": {"train": SplitSize(8_054, 98), "test": SplitSize(8_131, 98)},
    "sop": {"train": SplitSize(59_551, 11_318), "test": SplitSize(60_502, 11_316)},
    "inshop": {
        "train": SplitSize(25_882, 3_997),
        "test": SplitSize(14_218, 3_985),
        "gallery": SplitSize(12_612, 3_985),
    },
    "aircraft": {"train": SplitSize(5_000, 50), "test": SplitSize(5_000, 50)},
    "omniglot": {"train": SplitSize(19_280, 964), "test": SplitSize(13_180, 659)},
    "flowers": {"train": SplitSize(3_493, 51), "test": SplitSize(4_696, 51)},
}


def sizes(labels: Ints, train_classes: int, gallery: Bools | None = None) -> dict[str, SplitSize]:
    """Return the size of each class-disjoint split by split name, for samples with `labels` (N,) in 0..C-1."""
    is_train = labels < train_classes
    masks = {"train": is_train, "test": ~is_train}
    if gallery is not None:
        masks = {"train": is_train, "test": ~is_train & ~gallery, "gallery": ~is_train & gallery}
    return {split: SplitSize(int(mask.sum()), len(np.unique(labels[mask]))) for split, mask in masks.items()}


def deviations(name: str, labels: Ints, train_classes: int, gallery: Bools | None = None) -> tuple[str, ...]:
    """Return a note on the splits that deviate from their published sizes, in a one-element tuple; () if none do."""
    if name not in PUBLISHED:
        return ()
    counts = sizes(labels, train_classes, gallery)
    different = [
        f"{split} {counts[split].samples:,} images of {counts[split].classes:,} classes (published: {size.samples:,} "
        f"of {size.classes:,})"
        for split, size in PUBLISHED[name].items()
        if counts[split] != size
    ]
    sentence = f"not the published data set, but a subset or another release: {', '.join(different)}"
    return (sentence,) if different else ()
