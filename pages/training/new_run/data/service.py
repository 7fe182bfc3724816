"""Data sets for the Data page, in caches shared by all visitors.

Cache keys consist of plain values and the modification times of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dmlcore import data
from dmlcore.data import DataError, Folds, checks, report
from dmlcore.data.dataset import Split, Validation
from dmlcore.data.files.image_table import folders_in
from dmlcore.data.report import Located, Report
from dmlcore.data.shards import scan
from dmlcore.inspection.images import data_uri, fit_into
from pages.shared.state.cache import cached

SIDE = 96  # longest side of a thumbnail in pixels
MOST_POINTS = 2000  # in the scatter plot
LIFETIME = 900  # lifetime of the caches in seconds


@dataclass(frozen=True)
class DataKey:
    """Cache key of a data set: name, entered folder, path and modification time of its files, and seed.

    `root` is the folder that the visitor entered, or None for the default folders.
    """

    name: str
    root: str | None
    place: str
    changed: int  # modification time of the files in nanoseconds; 0 for generated data
    seed: int = 0


@dataclass(frozen=True)
class SplitSettings:
    """Settings that divide a data set into training, validation and test splits."""

    split: Split | None = None
    validation: Validation | None = None
    folds: int = 0
    fold: int = 1
    order: Literal["contiguous", "random"] = "contiguous"


ARRAYS = (".npy", ".npz", ".parquet", ".pt", ".pkl")  # file name extensions of embeddings and other arrays


def not_class_folders(place: Path) -> str:
    """Return an error message if a folder cannot contain one subfolder per class, otherwise ""."""
    if not place.is_dir() or folders_in(place) or scan.shards_in(place):
        return ""  # subfolders are examined when the data set is read
    files = sorted(path.name for path in place.iterdir() if not path.name.startswith("."))
    holds = f"{', '.join(files[:3])}{' …' if len(files) > 3 else ''}" if files else "nothing"
    arrays = next((name for name in files if name.lower().endswith(ARRAYS)), None)
    more = f" {arrays} looks like an array; training needs the images themselves." if arrays else ""
    return (
        f"{place} has no folders in it (it holds {holds}). Name a folder with one subfolder for each class, which "
        f"holds the images of that class.{more}"
    )


def data_key(name: str, root: str | None, place: Path, seed: int) -> DataKey:
    """Return the cache key of the data set at `place`."""
    try:
        changed = place.stat().st_mtime_ns if data.describe(name).needs_files else 0
    except OSError:
        changed = 0
    return DataKey(name, root, str(place), changed, seed)


@cached(4, LIFETIME)
def load(at: DataKey) -> Located:
    """Return the data set as found on disk; the first call reads the files, later calls use the cache."""
    read = report.find(at.name, at.root, seed=at.seed)
    report.remember(read)
    return read


@cached(8, LIFETIME)
def split_report(at: DataKey, cut: SplitSettings) -> Report:
    """Return a report on the data set, divided into splits by the settings `cut`."""
    read = load(at)
    try:
        chosen = Folds(cut.folds, cut.fold, cut.order, at.seed) if cut.folds else None
    except DataError as error:
        return Report(read, None, (), (), (), (), (*read.problems, str(error)))
    return report.divide(read, split=cut.split, validation=cut.validation, folds=chosen, seed=at.seed)


@cached(2048, LIFETIME)  # about 4 kB each
def image_address(at: DataKey, index: int) -> str:
    """Return a thumbnail of sample `index` as a data: URL.

    Raises:
        DataError: If the data set has no images, or the image cannot be read.
    """
    samples = load(at).samples
    if samples is None or samples.image is None:
        raise DataError(f"{at.name} has no images")
    return data_uri(fit_into(samples.image(index), SIDE))


@cached(16, 60)
def fingerprint(at: DataKey) -> str:
    """Return a digest of the sizes and modification times of all files; "" if the data set cannot be read.

    The digest is updated at most once a minute.
    """
    samples = load(at).samples
    return checks.stamp_of(samples) if samples else ""


@cached(16, LIFETIME)
def project(at: DataKey) -> tuple[Any, Any]:
    """Return the indices of random samples, shape (n,), and their first two principal components, shape (n, 2).

    The data set must consist of vectors; n is at most MOST_POINTS.
    """
    samples = load(at).samples
    assert samples is not None
    rows = np.random.default_rng(0).permutation(len(samples.labels))[:MOST_POINTS]
    vectors = np.asarray(samples.inputs[rows], np.float64)
    vectors -= vectors.mean(0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return rows, vectors @ axes[:, :-3:-1]


def clear_caches() -> None:
    """Clear all caches of this module, to be called after files were added or replaced."""
    for function in (load, split_report, image_address, fingerprint, project):
        function.clear()
