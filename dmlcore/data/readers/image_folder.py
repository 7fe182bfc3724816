"""Reader of any folder of class folders, or of tar files in WebDataset naming; names define classes and splits."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files.image_table import ImageTable, PhotographSet, folders_in, samples
from dmlcore.data.files.images import SUFFIXES
from dmlcore.data.shards import scan
from dmlcore.data.shards.read import read as read_shards

NAMED_KINDS = 5  # maximum number of kinds of skipped files that a note names
# maximum number of folders to search; the largest public data sets have 22,000 classes, a whole disk has more folders
MOST_FOLDERS = 50_000
SILENT = ("thumbs.db", "desktop.ini")  # files that operating systems create; they are skipped without a note
# names of the top-level folders in a tree that is divided into splits
SPLITS = ("train", "test", "val", "valid", "validation")

INFO = PhotographSet(
    name="folder",
    title="Folder of class folders",
    sentence="Images of your own, one folder per class; by name, the first half of the classes train.",
    citation="Your own images.",
)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples in a folder or in its tar files; inputs are (N, 3, S, S) uint8, decoded when indexed."""
    if (shards := scan.shards_in(folder)) and not folders_in(folder):
        return read_shards(INFO, scan.index_of(folder, shards), image_size)
    return samples(INFO, folder, read_table(folder), image_size)


def read_table(folder: Path) -> ImageTable:
    """List the images in `folder`; each subfolder is a class, which contains all images in and below it.

    Classes are sorted by name and the first half of them train. If `folder` contains only one folder, which contains
    class folders, that folder is read instead. If the class folders are within train/, test/ and similar folders, these
    define the image-wise split or, if they share no class, the class-disjoint split. Skipped files are counted and
    named in the notes. Raises DataError for fewer than two classes or too many folders.
    """
    trunk = _innermost(folder)
    if divided := splits(folder):
        return _read_splits(folder, divided)
    listed, skipped = _classes(folder, trunk)
    rows = [(name, path, False) for name, path in listed]
    names = sorted({name for name, _, _ in rows})
    return _table(folder, rows, names, len(names) // 2, _empty(trunk, names), skipped)


def splits(folder: Path) -> list[Path]:
    """Return the folders train/, test/ and similar that contain the class folders; [] if there are none."""
    folders = folders_in(_innermost(folder))
    named = {split.name.lower() for split in folders}
    return folders if "train" in named and named <= set(SPLITS) else []


def _read_splits(folder: Path, splits: list[Path]) -> ImageTable:
    """List the images of a tree with class folders inside the folders `splits`, such as train/ and test/."""
    rows, skipped = [], []
    for split in splits:
        listed, without = _classes(folder, split)
        rows += [(name, path, split.name.lower() == "train") for name, path in listed]
        skipped += without
    trained, tested = ({name for name, _, is_train in rows if is_train == side} for side in (True, False))
    where = ", ".join(split.name for split in splits)
    if trained & tested:
        names = sorted(trained | tested)
        note = f"{where}: used as the image-wise split, because they share classes; by classes, the first half trains"
        return _table(folder, rows, names, len(names) // 2, (note,), skipped, image_wise=True)
    note = f"{where}: used as the class-disjoint split, because they share no class"
    return _table(folder, rows, sorted(trained) + sorted(tested), len(trained), (note,), skipped)


def _table(
    folder: Path,
    rows: list[tuple[str, str, bool]],
    names: list[str],
    train_classes: int,
    notes: tuple[str, ...],
    skipped: list[str],
    image_wise: bool = False,
) -> ImageTable:
    left = _skipped_note(skipped)
    if len(names) < 2:
        classes = "1 class" if names else "no class"
        raise DataError(
            f"{folder} contains images of {classes}, but at least two classes are needed. As root, give a folder "
            f"with one folder per class that contains its {', '.join(SUFFIXES)} files" + "".join(f"; {n}" for n in left)
        )
    label = {name: number for number, name in enumerate(names)}
    return ImageTable(
        paths=tuple(path for _, path, _ in rows),
        labels=np.array([label[name] for name, _, _ in rows], dtype=np.int64),
        class_names=tuple(names),
        train_classes=train_classes,
        official_train=np.array([is_train for _, _, is_train in rows]) if image_wise else None,
        notes=notes + left,
    )


def _classes(folder: Path, trunk: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (class, path relative to `folder`) of each image below `trunk`, sorted by class and path.

    Also return the skipped paths: files other than images, symbolic links to folders (marked by a final "/"), and files
    next to the class folders (marked by an initial "/").
    """
    listed, walked = [], 0
    skipped = [
        f"/{path.relative_to(folder)}" for path in sorted(trunk.iterdir()) if _counts(path.name) and path.is_file()
    ]
    for directory in folders_in(trunk):
        below: list[str] = []
        for base, folders, files in os.walk(directory):
            walked += 1
            if walked > MOST_FOLDERS:
                raise DataError(
                    f"{trunk} contains more than {MOST_FOLDERS:,} folders; give the folder that contains the class "
                    "folders only"
                )
            folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX"))]
            place = Path(base).relative_to(folder)
            skipped += [f"{place / name}/" for name in folders if os.path.islink(os.path.join(base, name))]
            for name in filter(_counts, files):
                (below if name.lower().endswith(SUFFIXES) else skipped).append((place / name).as_posix())
        listed += [(directory.name, path) for path in sorted(below)]
    return listed, skipped


def _counts(name: str) -> bool:
    return not name.startswith(".") and name.lower() not in SILENT


def _skipped_note(skipped: list[str]) -> tuple[str, ...]:
    """Return a note that counts the skipped files by kind and names the first of each kind; () if none were skipped."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for path in skipped:
        ending = Path(path).suffix.lower() or "without extension"
        if path.endswith("/"):
            kind = "linked folders"
        elif path.startswith("/"):
            kind = f"{ending} outside the class folders"
        else:
            kind = ending
        counts[kind] += 1
        first.setdefault(kind, path.strip("/"))
    if not counts:
        return ()
    kinds = ", ".join(f"{count:,} {kind} ({first[kind]})" for kind, count in counts.most_common(NAMED_KINDS))
    more = ", …" if len(counts) > NAMED_KINDS else ""
    return (f"{len(skipped):,} {'file was' if len(skipped) == 1 else 'files were'} skipped: {kinds}{more}",)


def _innermost(folder: Path) -> Path:
    """Follow chains of folders that contain a single folder, as unpacked archives often do; return the last one."""
    while len(inner := folders_in(folder)) == 1 and folders_in(inner[0]):
        folder = inner[0]
    return folder


def _empty(trunk: Path, names: list[str]) -> tuple[str, ...]:
    without = [path.name for path in folders_in(trunk) if path.name not in set(names)]
    shown = ", ".join(without[:5]) + (" …" if len(without) > 5 else "")
    return (f"{len(without)} folders without images were left out: {shown}",) if without else ()
