"""Index of tar files in WebDataset naming that other tools packed; it is created once and cached."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dmlcore.data.dataset import DataError
from dmlcore.data.files import cache_folder as folders
from dmlcore.data.files.image_table import ImageTable
from dmlcore.data.files.images import SUFFIXES
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.printable import encodable
from dmlcore.data.shards.index import MANIFEST, ROW, Shard, ShardIndex
from dmlcore.data.shards.pack import write_index

VERSION = 2  # version of this scan; cached indices with another version are ignored
LABELS = ("cls", "json")  # extensions of the files that hold the class of a sample, in order of preference
MOST = 2**20  # maximum number of bytes that are read of a label file
LARGEST_IMAGE = 2**32 - 1  # maximum size of an image in bytes; the index stores the size in four bytes
SPLITS = {"train": True, "training": True, "test": False, "val": False, "valid": False, "validation": False}


def shards_in(folder: Path) -> list[Path]:
    """Return the tar files directly in a folder, sorted by name."""
    return sorted(path for path in folder.glob("*.tar") if path.is_file() and not path.name.startswith("."))


def index_of(folder: Path, shards: list[Path]) -> ShardIndex:
    """Return the index of tar files in which each sample is KEY.jpg or KEY.png with KEY.cls or KEY.json.

    A .cls file contains the number or name of the class; a .json file has it under "label", "cls" or "class". Without
    either file, the class is the folder of the image in the tar file. If every tar file has a word such as train, test
    or val in its name, these words define the image-wise split or, if training and test files share no class, the
    class-disjoint split. Raises DataError naming the shard and the sample.
    """
    now = hashlib.sha256()
    for shard in shards:
        if encodable(shard.name) != shard.name:
            raise DataError(f"{shard}: the name of this tar file is not UTF-8; rename it")
        status = shard.stat()
        now.update(f"{shard.name}\0{status.st_size} {status.st_mtime_ns}\n".encode(errors="surrogateescape"))
    kind = hashlib.sha256(f"{VERSION} {os.path.realpath(folder)}".encode(errors="surrogateescape")).hexdigest()[:20]
    place = folders.create_once(
        *(cache_folder() / "shards", kind, now.hexdigest()[:20], MANIFEST),
        lambda staging: _make(staging, shards),
        "indices of shards",
    )
    return ShardIndex(place, folder)


class _Sample(NamedTuple):
    """Image in a tar file: its path, byte offset, size in bytes, and class name."""

    path: str
    offset: int
    size: int
    label: str


def _make(staging: Path, shards: list[Path]) -> None:
    rows, samples, listed = [], [], []
    for number, shard in enumerate(shards):
        in_shard = list(_samples(shard))
        samples += in_shard
        rows += [(number, sample.offset, sample.size) for sample in in_shard]
        listed.append(Shard(name=shard.name, samples=len(in_shard), size=shard.stat().st_size))
    table = np.zeros(len(rows), ROW)
    for field, values in zip(("shard", "offset", "size"), zip(*rows, strict=True), strict=False):
        table[field] = values
    write_index(staging, "folder", _table(shards, samples, table["shard"]), table, listed)


def _table(shards: list[Path], samples: list[_Sample], shard_of: np.ndarray) -> ImageTable:
    names = sorted({sample.label for sample in samples}, key=_by_number)
    if len(names) < 2:
        raise DataError(
            f"{shards[0].parent} has tar files with images of {len(names)} classes, but at least two are needed: "
            "KEY.jpg with KEY.cls or KEY.json next to it"
        )
    number = {name: place for place, name in enumerate(names)}
    labels = np.array([number[sample.label] for sample in samples], np.int64)
    train_classes, official = len(names) // 2, None
    notes: tuple[str, ...] = ()
    sides = [_side(shard) for shard in shards]
    if True in sides and False in sides and None not in sides:
        is_train = np.array(sides, bool)[shard_of]
        trained, tested = np.unique(labels[is_train]), np.unique(labels[~is_train])
        if np.intersect1d(trained, tested).size:
            official = is_train
            notes = ("shards of train and test: used as the image-wise split, because they share classes",)
        else:
            order = np.concatenate([trained, tested])
            labels, names = np.argsort(order)[labels], [names[place] for place in order]
            train_classes = len(trained)
            notes = ("shards of train and test: used as the class-disjoint split, because they share no class",)
    return ImageTable(
        paths=[f"{shards[shard].name}/{sample.path}" for sample, shard in zip(samples, shard_of, strict=True)],
        labels=labels,
        class_names=tuple(names),
        train_classes=train_classes,
        official_train=official,
        notes=notes,
    )


def _by_number(name: str) -> tuple[int, int, str]:
    """Return a sort key that orders numbers by value and puts them before other names."""
    return (0, int(name), name) if name.isdecimal() and len(name) < 20 else (1, 0, name)


def _side(shard: Path) -> bool | None:
    """Return True for training shards and False for test shards, by a word in the name; None without such a word."""
    words = shard.stem.lower().replace("_", "-").replace(".", "-").split("-")
    return next((SPLITS[word] for word in words if word in SPLITS), None)


@dataclass
class _Group:
    """Consecutive members of a tar file with one key: the image, and the contents of its label files by extension."""

    key: str
    image: tarfile.TarInfo | None
    labels: dict[str, bytes]


def _samples(shard: Path) -> Iterator[_Sample]:
    """Yield the samples of a tar file in order; raise DataError if the file is damaged or compressed."""
    try:
        group = _Group("", None, {})
        with tarfile.open(shard, "r:") as tar, shard.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2 * tarfile.BLOCKSIZE))
            if any(file.read()):
                raise DataError(f"{shard} lacks the zeros that end a tar file: it is truncated; copy it again")
            for member in tar:
                vars(tar)["members"] = []  # keeps tarfile from collecting all members in a list
                if member.isdir():
                    continue
                if not member.isreg() or member.issparse():
                    raise DataError(f"refusing {shard}: member {member.name!r} is neither a regular file nor a folder")
                key, ending = _split(member.name)
                if key != group.key:
                    yield from _sample(shard, group)
                    group = _Group(key, None, {})
                if f".{ending.rpartition('.')[2]}" in SUFFIXES:
                    group.image = member
                elif ending in LABELS and (content := tar.extractfile(member)):
                    group.labels[ending] = content.read(MOST)
        yield from _sample(shard, group)
    except (DataError, OSError):
        raise
    except Exception as error:  # invalid sizes and headers raise ValueError, OverflowError and other exceptions
        raise DataError(
            f"{shard} is not an uncompressed tar file ({error}); copy it again, or decompress it to .tar"
        ) from None


def _split(name: str) -> tuple[str, str]:
    """Return (key, lower-case extension) of a member; as in WebDataset, the extension begins at the first dot."""
    folder, _, file = name.removeprefix("./").rpartition("/")
    stem, _, ending = file.partition(".")
    return f"{folder}/{stem}" if folder else stem, ending.lower()


def _sample(shard: Path, group: _Group) -> Iterator[_Sample]:
    if group.image is not None:
        if not 0 <= group.image.size <= LARGEST_IMAGE:
            raise DataError(
                f"{shard}: image {group.image.name!r} claims {group.image.size:,} bytes, but at most "
                f"{LARGEST_IMAGE:,} can be read; copy the shard again"
            )
        path = group.image.name.removeprefix("./")
        yield _Sample(path, group.image.offset_data, group.image.size, _label(shard, group))


def _label(shard: Path, group: _Group) -> str:
    try:
        if "cls" in group.labels:
            label: object = group.labels["cls"].decode(errors="surrogateescape").strip()
        elif "json" in group.labels:
            known = json.loads(group.labels["json"])
            label = next(known[name] for name in ("label", "cls", "class") if name in known)
        else:
            label = group.key.rpartition("/")[0]
        if isinstance(label, str | int) and not isinstance(label, bool) and str(label):
            return str(label)
    except (ValueError, TypeError, StopIteration, RecursionError):
        pass
    raise DataError(
        f"{shard}: sample {group.key!r} has no class: next to the image there should be {group.key}.cls "
        f'with its number or name, or {group.key}.json with "label"'
    )
