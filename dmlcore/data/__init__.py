"""Data sets: `load(name)` reads one in its official layout and splits it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlcore.data import digits, splits, toy
from dmlcore.data.dataset import DataError, Dataset, Description, Inputs, Read, Samples, Split, Validation

__all__ = ["DataError", "Dataset", "Description", "Inputs", "Samples", "describe", "load", "names"]

_READERS: dict[str, tuple[Description, Read]] = {
    reader.INFO.name: (reader.INFO, reader.read) for reader in (digits, toy)
}


def names() -> list[str]:
    """Return the names of the data sets, the default first."""
    return list(_READERS)


def describe(name: str) -> Description:
    """Return title, citation, kind and defaults of the data set `name`; reads nothing."""
    if name not in _READERS:
        raise DataError(f"no data set is named {name!r}; there are {', '.join(_READERS)}")
    return _READERS[name][0]


def load(
    name: str,
    *,
    root: Path | str | None = None,
    split: Split | None = None,
    validation: Validation | None = None,
    image_size: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Read and split a data set; None means the default of `describe(name)`.

    root: see `locate`. image_size: side of the square pictures in pixels. seed: of the sample-wise splits and of the
    toy data. Raises DataError naming the file, or the split and its numbers.
    """
    info = describe(name)
    split, validation = split or info.split, validation or info.validation
    samples = _READERS[name][1](None, image_size, seed)
    result = splits.parts(samples, split, validation, seed)
    for array in (samples.labels, *result.values()):
        array.flags.writeable = False
    return Dataset(
        name=name,
        inputs=samples.inputs,
        labels=samples.labels,
        class_names=samples.class_names,
        parts=result,
        picture=samples.picture,
        notes=samples.notes + _count(samples, result),
    )


def _count(samples: Samples, parts: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Say how large the parts are and which classes cannot form a pair."""
    notes = []
    for name, part in parts.items():
        _, sizes = np.unique(samples.labels[part], return_counts=True)
        notes.append(f"{name}: {len(part):,} samples of {len(sizes):,} classes")
        if singles := int((sizes == 1).sum()):
            notes.append(f"{name}: {singles:,} classes have a single sample, which has no match")
    return tuple(notes)
