"""Reports on data sets: sample counts compared with published ones, classes, problems, and export of splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dmlcore import data
from dmlcore.data.class_folds import Folds
from dmlcore.data.dataset import DataError, Dataset, MissingImages, Samples, Split, Validation
from dmlcore.data.files import archives, locate
from dmlcore.data.published_counts import PUBLISHED, SplitSize
from dmlcore.data.shards.index import ShardImages, Size, size_of
from dmlcore.storage import atomic_files
from dmlcore.storage.csv_text import as_csv
from dmlcore.typing import Ints

SMALL = 200 * 2**20  # archives up to this number of bytes are unpacked without asking the user
COLUMNS = ("part", "index", "class_number", "class_name", "key")  # columns of a saved split


@dataclass(frozen=True, eq=False)
class Located:
    """Data set found on this machine, before splitting.

    Attributes:
        name: Name of the data set.
        place: Folder or archive with its files; None if absent.
        samples: All samples that the data set lists; None if it cannot be read.
        problems: Error messages raised while reading.
        missing: Paths of image files that are listed but do not exist.
    """

    name: str
    place: Path | None
    samples: Samples | None
    problems: tuple[str, ...] = ()
    missing: Sequence[Path] = ()


class SplitCount(NamedTuple):
    """Number of samples and classes in a split, and the published size if one exists."""

    name: str
    samples: int
    classes: int
    published: SplitSize | None = None

    @property
    def deviation(self) -> str:
        """Differences from the published size as text; "" if there are none or no size is published."""
        if self.published is None:
            return ""
        pairs = (
            (self.samples - self.published.samples, "sample", "samples"),
            (self.classes - self.published.classes, "class", "classes"),
        )
        differences = [
            f"{abs(by):,} {one if abs(by) == 1 else many} too {'many' if by > 0 else 'few'}"
            for by, one, many in pairs
            if by
        ]
        return ", ".join(differences)


class Class(NamedTuple):
    """Class of a data set: number from 0, name, names of the splits that contain it, and number of samples."""

    number: int
    name: str
    split: str
    samples: int


@dataclass(frozen=True, eq=False)
class Report:
    """Report on a data set after splitting. If splitting fails, `dataset` is None and the counts are empty."""

    located: Located
    dataset: Dataset | None
    splits: tuple[SplitCount, ...]
    # Sizes compared with those of the published class-disjoint splits; "train" includes validation.
    compared: tuple[SplitCount, ...]
    classes: tuple[Class, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def find(name: str, root: Path | str | None = None, *, seed: int = 0, image_size: int | None = None) -> Located:
    """Find and read a data set, unpacking archives into the cache; return errors as `problems`, do not raise them."""
    place = None
    try:
        place = data.available(name, root)
        if place is None:
            return Located(name, None, None)
        samples = data.read(name, root=root, seed=seed, image_size=image_size)
        return Located(name, place, samples)
    except MissingImages as error:
        return Located(name, place, error.samples, (str(error),), error.missing)
    except DataError as error:
        return Located(name, place, None, (str(error),))


def is_packed(place: Path) -> bool:
    """Return True if `place` is an archive over SMALL bytes that has not been unpacked into the cache."""
    if not place.is_file() or place.stat().st_size <= SMALL:
        return False
    try:
        return not locate.unpacked_at(archives.identify(place)).is_dir()
    except DataError:
        return False  # reading the archive later will report the problem


def packed_size(made: Samples | Dataset | None) -> Size | None:
    """Return the number and total bytes of the shards of a data set; None if it is not stored in shards."""
    files = made.files if made else None
    return size_of(files.shards.manifest) if isinstance(files, ShardImages) else None


def divide(
    listed: Located,
    *,
    split: Split | None = None,
    validation: Validation | None = None,
    folds: Folds | None = None,
    seed: int = 0,
) -> Report:
    """Split a located data set and count its samples and classes; for the arguments see `data.load`."""
    if listed.samples is None:
        return Report(listed, None, (), (), (), (), listed.problems)
    try:
        made = data.divide(listed.name, listed.samples, split=split, validation=validation, folds=folds, seed=seed)
    except DataError as error:
        return Report(listed, None, (), (), (), listed.samples.notes, (*listed.problems, str(error)))
    splits = tuple(SplitCount(name, *_size(made, rows)) for name, rows in made.splits.items())
    return Report(listed, made, splits, _compare_splits(made), _classes(made), _without_counts(made), listed.problems)


def report(
    name: str,
    root: Path | str | None = None,
    *,
    split: Split | None = None,
    validation: Validation | None = None,
    folds: Folds | None = None,
    seed: int = 0,
) -> Report:
    """Find, read and split a data set, and report on it; `checks.run` also reads every sample."""
    return divide(find(name, root, seed=seed), split=split, validation=validation, folds=folds, seed=seed)


def _size(made: Dataset, rows: Ints) -> SplitSize:
    return SplitSize(len(rows), len(np.unique(made.labels[rows])))


def _compare_splits(made: Dataset) -> tuple[SplitCount, ...]:
    published = PUBLISHED.get(made.name)
    if published is None or made.settings.get("split") != "classes":
        return ()
    rows = dict(made.splits)
    held_out = rows.pop("validation")
    rows["train"] = np.concatenate([rows["train"], held_out])
    title = {"train": "train and validation" if len(held_out) else "train"}
    return tuple(SplitCount(title.get(name, name), *_size(made, rows[name]), size) for name, size in published.items())


def _classes(made: Dataset) -> tuple[Class, ...]:
    counts = {
        name: np.bincount(made.labels[rows], minlength=len(made.class_names)) for name, rows in made.splits.items()
    }
    totals = np.bincount(made.labels, minlength=len(made.class_names))
    return tuple(
        Class(number, name, ", ".join(split for split in counts if counts[split][number]), int(totals[number]))
        for number, name in enumerate(made.class_names)
    )


def _without_counts(made: Dataset) -> tuple[str, ...]:
    """Return the notes except those on split sizes and deviations, which the report contains as numbers."""
    lines = [f"{split}: {len(rows):,} samples" for split, rows in made.splits.items()]
    lines += ["not the published data set"] if _compare_splits(made) else []
    return tuple(note for note in made.notes if not note.startswith(tuple(lines)))


def rows_of(made: Dataset) -> Iterator[tuple[str, int, int, str, str]]:
    """Yield one row per sample with the values named in COLUMNS, split by split."""
    for split, rows in made.splits.items():
        for index in rows.tolist():
            label = int(made.labels[index])
            yield split, index, label, made.class_names[label], made.keys[index] if made.keys is not None else ""


def split_text(made: Dataset, form: str = "json") -> str:
    """Return the splits as JSON or CSV text: name of the data set, split settings, and one row per sample."""
    if form == "csv":
        head, how = ("data_set", *made.settings, *COLUMNS), (made.name, *made.settings.values())
        return as_csv([head, *((*how, *row) for row in rows_of(made))])
    if form != "json":
        raise DataError(f"a split can be saved as json or csv, got {form!r}")
    about = {"data_set": made.name, "settings": dict(made.settings)}
    about |= {"parts": {name: dict(_size(made, rows)._asdict()) for name, rows in made.splits.items()}}
    rows = ",\n".join(json.dumps(row) for row in rows_of(made))
    return f'{json.dumps(about)[:-1]},\n"columns": {json.dumps(COLUMNS)},\n"rows": [\n{rows}\n]}}\n'


def save_split(made: Dataset, path: Path) -> None:
    """Write the splits to `path` atomically as JSON or CSV; raise DataError unless it ends in .json or .csv."""
    form = path.suffix.removeprefix(".").lower()
    if form not in ("json", "csv"):
        raise DataError(f"{path} must end in .json or .csv")
    content = split_text(made, form).encode()
    atomic_files.replace(path, lambda file: file.write(content))


class DataSummary(NamedTuple):
    """Summary of a data set: number of samples, number of classes, and True if reading it raised problems."""

    samples: int
    classes: int
    damaged: bool


def remember(listed: Located) -> None:
    """Cache the summary of a located data set, so that a list of all data sets can be shown without reading them."""
    if listed.place is None or listed.samples is None:
        return
    path = _remembered_at(listed.name, listed.place)
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = DataSummary(len(listed.samples.labels), len(listed.samples.class_names), bool(listed.problems))
    if read_summary(listed.name, listed.place) != summary:
        atomic_files.replace_json(path, [*summary])


def read_summary(name: str, place: Path) -> DataSummary | None:
    """Return the cached summary of a data set if `place` has not changed since it was stored, else None."""
    try:
        samples, classes, damaged = json.loads(_remembered_at(name, place).read_text())
        return DataSummary(int(samples), int(classes), bool(damaged))
    except (OSError, ValueError, TypeError):
        return None


def counts_folder() -> Path:
    """Return the folder in which `remember` caches summaries."""
    return locate.cache_folder() / "counts"


def _remembered_at(name: str, place: Path) -> Path:
    try:
        state = place.stat()
        now = f"{place.resolve()} {state.st_size if place.is_file() else ''} {state.st_mtime_ns}"
    except OSError:
        now = ""
    if not data.describe(name).needs_files:
        now = "generated or bundled"
    return counts_folder() / f"{name}-{hashlib.sha256(now.encode()).hexdigest()[:16]}.json"
