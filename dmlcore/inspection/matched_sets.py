"""Matching of embedding sets that hold the same samples in different orders, by ids, image paths or image names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from dmlcore.data.embedding_sets.source import shown
from dmlcore.data.embedding_sets.stored import EmbeddingSet
from dmlcore.inspection.comparison import Incomparable
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Ints

Keys = tuple[str, Sequence[str], Sequence[str]]  # kind in the plural, and one key per sample of each set


def hold_equal_samples(first: TestNeighbours, second: TestNeighbours) -> bool:
    """Return True if two evaluations list the same samples with the same labels under the same numbers."""
    if first.content is None or second.content is None:
        return False
    one, two = (np.argsort(each.indices, kind="stable") for each in (first, second))
    return np.array_equal(first.content[one], second.content[two]) and np.array_equal(
        first.labels[one], second.labels[two]
    )


def match_samples(first: EmbeddingSet, second: EmbeddingSet, names: tuple[str, str] = ("run 1", "run 2")) -> Ints:
    """Return, for each sample of `first`, the row of the same sample in `second`, shape (N,).

    Samples are matched by ids; if these are missing or differ, by image path, then by image name. If neither set has
    ids or images, rows must be in the same order.

    Args:
        first: Embedding set with N samples.
        second: Embedding set with the same N samples in any order.
        names: Names of both sets in messages.

    Raises:
        Incomparable: The sets do not hold the same samples, or give them different labels.
    """
    rows = _rows(first, second, names)
    if first.labelled != second.labelled:
        without = names[first.labelled]
        raise Incomparable(f"{without} has no labels; import it again with the labels of the other set")
    numbers = {name: number for number, name in enumerate(second.class_names)}
    renumbered = np.array([numbers.get(name, -1) for name in first.class_names])
    differ = np.flatnonzero(renumbered[first.labels] != second.labels[rows])
    if first.labelled and len(differ):
        row = int(differ[0])
        one, two = first.class_names[first.labels[row]], second.class_names[second.labels[rows[row]]]
        raise Incomparable(
            f"{len(differ):,} of {len(rows):,} samples have different labels: row {row + 1:,} of {names[0]} is "
            f"{shown(one)}, the same sample in {names[1]} {shown(two)}; import both sets with the same labels"
        )
    return rows


def renumber(learned: TestNeighbours, rows: Ints, target: EmbeddingSet) -> TestNeighbours:
    """Return an evaluation with the sample and class numbers of another embedding set of the same samples.

    Args:
        learned: Evaluation of an embedding set with N samples.
        rows: Row in `target` of each sample of that set, shape (N,), from `match_samples`.
        target: Embedding set whose numbers are adopted.
    """
    indices = rows[learned.indices]
    labels = target.labels[indices]
    return replace(learned, indices=indices, labels=labels, content=None)


def _rows(first: EmbeddingSet, second: EmbeddingSet, names: tuple[str, str]) -> Ints:
    closest: tuple[int, str] | None = None
    for kind, one, two in _candidates(first, second):
        row_of = {key: row for row, key in enumerate(two)}
        shared = len(row_of.keys() & set(one))
        if shared == len(one) == len(two):
            return np.array([row_of[key] for key in one], np.int64)
        if closest is None or shared > closest[0]:
            closest = shared, f"{shared:,} {kind} are in both, of {len(set(one)):,} and {len(row_of):,}"
            if not shared:
                closest = 0, f"no {kind.removesuffix('s')} is in both, for example {shown(one[0])} and {shown(two[0])}"
    sizes = f"{names[0]} has {len(first.labels):,} samples and {names[1]} {len(second.labels):,}"
    remedy = "import both with the same samples and the same column of ids"
    if closest is not None:
        raise Incomparable(f"{sizes}; {closest[1]}; {remedy}")
    if any(_has_keys(each) for each in (first, second)) or len(first.labels) != len(second.labels):
        raise Incomparable(f"{sizes}, and no column of ids or images by which samples can be matched; {remedy}")
    return np.arange(len(first.labels))


def _candidates(first: EmbeddingSet, second: EmbeddingSet) -> Iterator[Keys]:
    """Yield the kinds of keys that both sets have."""
    if first.ids is not None and second.ids is not None:
        yield "ids", first.ids, second.ids
    one, two = _paths(first), _paths(second)
    if one is not None and two is not None:
        yield "image paths", one, two
        yield "image names", _file_names(one), _file_names(two)


def _has_keys(stored: EmbeddingSet) -> bool:
    return stored.roles.id is not None or _paths(stored) is not None


def _file_names(paths: Sequence[str]) -> list[str]:
    return [PurePath(path).name for path in paths]


def _paths(stored: EmbeddingSet) -> list[str] | None:
    """Return the image paths of a set as imported or, without such a column, as found; None if there are none."""
    if stored.roles.image is not None:
        return [str(value) for value in stored.columns.column(stored.roles.image).to_pylist()]
    return None if stored.images is None else [str(path) for path in stored.images]
