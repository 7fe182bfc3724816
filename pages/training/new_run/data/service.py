"""Data sets as the page shows them, read once for all: the keys are plain parameters and the state of the files."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from dmlcore import data
from dmlcore.data import DataError, Folds, checks, report
from dmlcore.data.dataset import Split, Validation
from dmlcore.data.files.image_table import folders_in
from dmlcore.data.report import Located, Report
from dmlcore.data.shards import scan
from pages.shared.state.cache import cached

SIDE = 96  # pixels, longest side of an image on the page
MOST_POINTS = 2000  # of a scatter
KEPT = 900  # seconds


@dataclass(frozen=True)
class Where:
    """A data set, the folder that was given for it, and its files: what a cache may be keyed by."""

    name: str
    root: str | None
    place: str
    changed: int  # nanoseconds
    seed: int = 0


@dataclass(frozen=True)
class Cut:
    """How it is split."""

    split: Split | None = None
    validation: Validation | None = None
    folds: int = 0
    fold: int = 1
    order: Literal["contiguous", "random"] = "contiguous"


def place_of(name: str, root: str | None) -> Path | None:
    """Where its files are; raises DataError."""
    return data.available(name, root)


ARRAYS = (".npy", ".npz", ".parquet", ".pt", ".pkl")  # files of embeddings or other arrays


def not_class_folders(place: Path) -> str:
    """Return why a folder cannot hold images in class folders; "" if it may."""
    if not place.is_dir() or folders_in(place) or scan.shards_in(place):
        return ""  # what is in the folders is seen when they are read
    files = sorted(path.name for path in place.iterdir() if not path.name.startswith("."))
    holds = f"{', '.join(files[:3])}{' …' if len(files) > 3 else ''}" if files else "nothing"
    arrays = next((name for name in files if name.lower().endswith(ARRAYS)), None)
    more = f" {arrays} looks like an array; training needs the images themselves." if arrays else ""
    return (
        f"{place} has no folders in it (it holds {holds}). Name a folder with one subfolder for each class, which "
        f"holds the images of that class.{more}"
    )


def where(name: str, root: str | None, place: Path, seed: int) -> Where:
    """The key of what lies at `place`."""
    try:
        changed = place.stat().st_mtime_ns if data.describe(name).needs_files else 0
    except OSError:
        changed = 0
    return Where(name, root, str(place), changed, seed)


@cached(4, KEPT)
def located(at: Where) -> Located:
    """What is there; reads the data set the first time."""
    read = report.find(at.name, at.root, seed=at.seed)
    report.remember(read)
    return read


@cached(8, KEPT)
def divided(at: Where, cut: Cut) -> Report:
    """The same, split and counted."""
    read = located(at)
    try:
        chosen = Folds(cut.folds, cut.fold, cut.order, at.seed) if cut.folds else None
    except DataError as error:
        return Report(read, None, (), (), (), (), (*read.problems, str(error)))
    return report.divide(read, split=cut.split, validation=cut.validation, folds=chosen, seed=at.seed)


@cached(2048, KEPT)  # some 4 kB each
def image_address(at: Where, index: int) -> str:
    """A sample as a small image in a data: address; raises DataError."""
    samples = located(at).samples
    if samples is None or samples.image is None:
        raise DataError(f"{at.name} has no images")
    pixels = samples.image(index)
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    if tiny := max(pixels.shape[:2]) <= SIDE:
        image.save(file, "PNG")
    else:
        image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
        image.save(file, "JPEG", quality=85)
    return f"data:image/{'png' if tiny else 'jpeg'};base64," + base64.b64encode(file.getvalue()).decode()


@cached(16, 60)
def stamp(at: Where) -> str:
    """What a check is compared with: sizes and times of all files, looked at once a minute."""
    samples = located(at).samples
    return checks.stamp_of(samples) if samples else ""


@cached(16, KEPT)
def plane(at: Where) -> tuple[Any, Any]:
    """Rows (n,) of a data set of vectors, and their first two principal components (n, 2)."""
    samples = located(at).samples
    assert samples is not None
    rows = np.random.default_rng(0).permutation(len(samples.labels))[:MOST_POINTS]
    vectors = np.asarray(samples.inputs[rows], np.float64)
    vectors -= vectors.mean(0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return rows, vectors @ axes[:, :-3:-1]


def forget() -> None:
    """Read everything anew: files were put in their place."""
    for kept in (located, divided, image_address, stamp, plane):
        kept.clear()
