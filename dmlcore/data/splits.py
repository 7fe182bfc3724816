"""Division of samples into train, validation, test and gallery, by classes (open set) or by samples (closed set)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dmlcore.data.class_folds import Folds
from dmlcore.data.dataset import DataError, Samples, Split, Validation
from dmlcore.typing import Ints

TEST_FRACTION = 0.5  # fraction of each class that is used for testing if there is no official image-wise split
VALIDATION_FRACTION = 0.2  # fraction of the training samples of each class that is held out for validation
VALIDATION_CLASSES = 0.25  # fraction of the training classes that is held out for validation


def partition(
    samples: Samples, split: Split, validation: Validation, seed: int, folds: Folds | None = None
) -> dict[str, Ints]:
    """Return the indices of the splits "train", "validation" and "test".

    If the samples define their own splits, these are returned. If samples have a gallery and are split by classes,
    "test" holds the queries and a fourth split "gallery" the other test samples.

    Args:
        samples: The samples.
        split: "classes": no class is in both train and test; "samples": the official image-wise split, or half of the
            samples of each class; "none": all samples are tested, none are trained on.
        validation: "classes": the classes held out by `folds`, or by default the last quarter of the training classes,
            at least two; "samples": a fifth of the training samples of each class; "none": no samples.
        seed: Seed of sample-wise splits.
        folds: Fold of the training classes to hold out.

    Raises:
        DataError: If a split is empty or has only one class.
    """
    if samples.splits is not None:
        _require_classes("split 'own'", samples.splits, samples.labels)
        return dict(samples.splits)
    labels = samples.labels
    if split == "none":
        nothing = np.arange(0)
        return {"train": nothing, "validation": nothing, "test": np.arange(len(labels))}
    searched: dict[str, Ints] = {}
    if split == "classes":
        is_train = labels < samples.train_classes
        is_searched = np.zeros_like(is_train) if samples.gallery is None else samples.gallery & ~is_train
        train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train & ~is_searched)
        if samples.gallery is not None:
            searched["gallery"] = np.flatnonzero(is_searched)
    elif split == "samples" and samples.official_train is not None:
        train, test = np.flatnonzero(samples.official_train), np.flatnonzero(~samples.official_train)
    elif split == "samples":
        train, test = split_stratified(labels, np.arange(len(labels)), TEST_FRACTION, seed)
    else:
        raise DataError(f"split must be 'classes', 'samples' or 'none', got {split!r}")
    protocol = f"split {split!r}"
    _require_classes(protocol, {"train": train, "test": test, **searched}, labels)

    train, held_out = hold_out(labels, train, validation, seed, folds)
    result = {"train": train, "validation": held_out, "test": test, **searched}
    needed = {name: rows for name, rows in result.items() if name != "validation" or validation != "none"}
    _require_classes(f"{protocol} with validation {validation!r}", needed, labels)
    _require_disjoint(protocol, result, samples, classes_too=split == "classes")
    return result


def hold_out(
    labels: Ints, train: Ints, protocol: Validation, seed: int, folds: Folds | None = None
) -> tuple[Ints, Ints]:
    """Divide the indices `train` by the validation protocol; return (training indices, validation indices)."""
    if folds and protocol != "classes":
        raise DataError(
            f"folds divide classes, but validation is {protocol!r}; set validation to 'classes', or folds to 0"
        )
    if protocol == "none":
        return train, train[:0]
    if protocol == "samples":
        return split_stratified(labels, train, VALIDATION_FRACTION, seed)
    if protocol != "classes":
        raise DataError(f"validation must be 'classes', 'samples' or 'none', got {protocol!r}")
    classes = np.unique(labels[train])
    last_quarter = classes[-max(2, int(len(classes) * VALIDATION_CLASSES)) :]
    held_out = folds.validation_classes(classes) if folds else last_quarter
    is_held_out = np.isin(labels[train], held_out)
    return train[~is_held_out], train[is_held_out]


def split_stratified(labels: Ints, indices: Ints, fraction: float, seed: int) -> tuple[Ints, Ints]:
    """Divide `indices` at random, taking `fraction` of every class; return (kept, taken), both ascending.

    At least two samples of a class are taken, so that each of them has a match. Classes with fewer than four samples
    are kept completely.
    """
    random = np.random.default_rng(seed)
    is_cut = np.zeros(len(indices), dtype=bool)
    for label in np.unique(labels[indices]):
        members = np.flatnonzero(labels[indices] == label)
        if len(members) >= 4:
            is_cut[random.permutation(members)[: max(2, int(len(members) * fraction))]] = True
    return indices[~is_cut], indices[is_cut]


def _require_classes(protocol: str, result: Mapping[str, Ints], labels: Ints) -> None:
    counts = {name: (len(rows), len(np.unique(labels[rows]))) for name, rows in result.items()}
    table = ", ".join(f"{name} {samples} samples of {classes} classes" for name, (samples, classes) in counts.items())
    for name, (samples, classes) in counts.items():
        if classes < 2:
            lack = "empty" if samples == 0 else "with a single class"
            raise DataError(
                f"{protocol} leaves the {name} split {lack} ({table}; {len(labels)} samples of "
                f"{len(np.unique(labels))} classes in all); each split needs two classes: choose another split or "
                "validation, or complete the data"
            )


def _require_disjoint(protocol: str, result: Mapping[str, Ints], samples: Samples, *, classes_too: bool) -> None:
    """Raise DataError if two splits in `result` overlap that must be disjoint.

    Train (including validation) and test must not share an image or, if `classes_too`, a class. Queries and gallery
    must not share an image.
    """
    searched = result.get("gallery", result["test"][:0])
    sides = {
        "train": np.concatenate([result["train"], result["validation"]]),
        "test": np.concatenate([result["test"], searched]),
    }
    shared = _same_image(samples.keys, sides["train"], sides["test"])
    if queries := _same_image(samples.keys, result["test"], searched):
        raise DataError(f"{protocol}: in both queries and gallery: {_listed(queries)}; correct the lists")
    if classes_too:
        train_names = {samples.class_names[label]: label for label in np.unique(samples.labels[sides["train"]])}
        shared += [
            f"class {name} (numbers {train_names[name]} and {label})"
            for label in np.unique(samples.labels[sides["test"]])
            if (name := samples.class_names[label]) in train_names
        ]
    if shared:
        raise DataError(f"{protocol}: in both train and test: {_listed(shared)}; correct the lists")


def _same_image(keys: Sequence[str] | None, one: Ints, other: Ints) -> list[str]:
    if keys is None:
        return []
    # Compare 8-byte hashes first, because the names of all images of a sharded data set would take too much memory.
    here, there = (np.fromiter((hash(keys[row]) for row in side), np.int64, len(side)) for side in (one, other))
    alike = np.intersect1d(here, there)
    rows = {keys[row]: row for row in one[np.isin(here, alike)]}
    return [
        f"image {keys[row]} (rows {rows[keys[row]]} and {row})"
        for row in other[np.isin(there, alike)]
        if keys[row] in rows
    ]


def _listed(shared: list[str]) -> str:
    return "; ".join(shared[:5]) + (f" and {len(shared) - 5} more" if len(shared) > 5 else "")
