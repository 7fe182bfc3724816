"""Reader of data sets in shards. It returns the same samples, in the same order, as the reader of the image files."""

from __future__ import annotations

from pathlib import Path

from dmlcore.data.dataset import DataError, Description, LazySequence, Samples
from dmlcore.data.files.image_table import ImageTable, of_files
from dmlcore.data.shards.index import ShardImages, ShardIndex


def read(info: Description, index: ShardIndex, image_size: int | None) -> Samples:
    """Return the samples that an index lists, with inputs (N, 3, S, S) uint8 that are decoded when indexed."""
    manifest, rows = index.manifest, index.rows
    table = ImageTable(
        paths=LazySequence(range(len(rows)), index.key),
        labels=rows["label"].astype("int64"),
        class_names=index.class_names,
        train_classes=manifest.train_classes,
        official_train=rows["train"].copy() if manifest.image_wise else None,
        gallery=rows["gallery"].copy() if manifest.searched else None,
        notes=manifest.notes,
    )
    return of_files(info, ShardImages(index), table, image_size)


def read_folder(info: Description, place: Path, image_size: int | None) -> Samples:
    """Return the samples of data set `info` in a folder of shards; raise DataError if it holds another data set."""
    index = ShardIndex(place)
    if index.manifest.data != info.name:
        raise DataError(f"{place} contains the shards of {index.manifest.data}; choose that data set, not {info.name}")
    return read(info, index, image_size)
