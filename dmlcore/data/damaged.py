"""Exclusion of damaged images from a data set. To find them, every image is decoded once."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from dmlcore.data.dataset import DataError, ImageFile, Samples
from dmlcore.data.files import images
from dmlcore.data.files.cache_folder import create_once
from dmlcore.data.files.image_store import CHUNK, StoredImages, names, short_side
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.shards.index import ShardImages
from dmlcore.storage import atomic_files

ROWS = "rows.json"
NAMED = 5  # maximum number of damaged images that a note names

log = logging.getLogger(__name__)


def leave_out(samples: Samples) -> Samples:
    """Return the samples without images that cannot be decoded; a note added to them counts and names those images.

    The list of damaged images is cached until a file changes. Class numbers do not change, even if a class loses all
    its images. Raises DataError if the cache cannot be written.
    """
    files, keys = samples.files, samples.keys
    if files is None or not isinstance(samples.inputs, StoredImages):
        return samples
    side = samples.inputs.shape[-1]
    bad = _damaged_rows(files, short_side(side))
    if not bad:
        return samples
    kept = np.setdiff1d(np.arange(len(files)), bad)
    rows = kept.tolist()
    left: Sequence[ImageFile] = (
        ShardImages(files.shards, rows) if isinstance(files, ShardImages) else [files[row] for row in rows]
    )
    first = ", ".join(keys[row] if keys is not None else str(files[row]) for row in bad[:NAMED])
    more = ", …" if len(bad) > NAMED else ""
    note = f"{len(bad):,} of {len(files):,} images cannot be decoded and are left out: {first}{more}"
    log.info(note)
    return replace(
        samples,
        inputs=StoredImages(left, side),
        labels=samples.labels[kept],
        official_train=None if samples.official_train is None else samples.official_train[kept],
        gallery=None if samples.gallery is None else samples.gallery[kept],
        keys=None if keys is None else [keys[row] for row in rows],
        files=left,
        splits=samples.splits and {name: np.flatnonzero(np.isin(kept, of)) for name, of in samples.splits.items()},
        image=lambda index: images.thumbnail(left[index]),
        notes=(note, *samples.notes),
        facts={name: values[kept] for name, values in samples.facts.items()},
    )


def _damaged_rows(files: Sequence[ImageFile], short: int) -> list[int]:
    kind, name = names(files, short)
    folder = cache_folder() / "damaged"
    place = create_once(folder, kind, name, ROWS, partial(_find, files, short), "lists of damaged images")
    try:
        rows = [int(row) for row in json.loads((place / ROWS).read_text())]
    except (OSError, ValueError, TypeError):
        rows = [-1]
    if rows and not 0 <= min(rows) <= max(rows) < len(files):
        raise DataError(f"{place} is damaged; remove this folder, it will be recreated")
    return rows


def _find(files: Sequence[ImageFile], short: int, staging: Path) -> None:
    """Decode every image and write the indices of those that cannot be decoded into a file in `staging`."""
    log.info("decoding %s images to find damaged ones", f"{len(files):,}")
    rows: list[int] = []
    with ThreadPoolExecutor(images.WORKERS, "check") as pool:  # Pillow releases the GIL while it decodes
        for begin in range(0, len(files), CHUNK):
            faults = pool.map(partial(_is_damaged, short=short), files[begin : begin + CHUNK])
            rows += [begin + row for row, damaged in enumerate(faults) if damaged]
    atomic_files.replace_json(staging / ROWS, rows)


def _is_damaged(file: ImageFile, short: int) -> bool:
    try:
        images.with_short_side(file, short)
    except DataError:
        return True
    return False
