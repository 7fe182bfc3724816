"""Finds the folder of a data set in its official layout, or a known archive of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dmlcore.data import archives
from dmlcore.data.dataset import DataError, Description

REPOSITORY = Path(__file__).resolve().parents[2]


def search_folders() -> list[Path]:
    """Return the folders searched for data: $DML_DATA, then data, ../data and ../shared/data of the repository."""
    chosen = os.environ.get("DML_DATA")
    beside = [(REPOSITORY / folder).resolve() for folder in ("data", "../data", "../shared/data")]
    return ([Path(chosen).expanduser()] if chosen else []) + beside


def cache_folder() -> Path:
    """Return the folder for unpacked archives: $DML_CACHE, or ~/.cache/dml-lab."""
    return Path(os.environ.get("DML_CACHE") or "~/.cache/dml-lab").expanduser()


def find(info: Description, root: Path | None) -> Path | None:
    """Return the folder in the official layout, else a known archive, else None; unpacks nothing.

    root: that folder, a folder that holds it or an archive of it, or the archive itself; None: `search_folders()`.
    """
    if root is not None and root.is_file():
        return root
    bases = [root] if root is not None else search_folders()
    folders = [folder for base in bases for folder in _layouts(info, base)]
    # Copies of the lists alone are common: one with its pictures goes first.
    folders.sort(key=lambda folder: not (folder / info.pictures).is_dir())
    packed = [base / name for base in bases for name in info.archives if (base / name).is_file()]
    return next(iter(folders + packed), None)


def locate(info: Description, root: Path | None) -> Path:
    """Return the folder in the official layout, unpacking a known archive into the cache; raise DataError if absent."""
    found = find(info, root)
    if found is None:
        where = root if root is not None else ", ".join(map(str, search_folders()))
        raise DataError(
            f"{info.title} was not found: looked in {where} for the folder {info.folder} and for "
            f"{', '.join(info.archives)}. Download {info.url} and unpack it, or leave it packed, in "
            f"{root or search_folders()[0]}"
        )
    if found.is_dir():
        return found
    known = archives.identify(found)
    if known.name not in info.archives:
        raise DataError(f"{found} is not an archive of {info.title}; it needs one of {', '.join(info.archives)}")
    unpacked = cache_folder() / f"{found.name.partition('.')[0]}-{known.sha256[:16]}"
    if not unpacked.is_dir():
        try:
            archives.unpack(found, unpacked, sha256=known.sha256)
        except DataError:
            if not unpacked.is_dir():  # otherwise another process was faster
                raise
    folder = next(_layouts(info, unpacked), None)
    if folder is None:
        raise DataError(f"{unpacked} lacks the folder {info.folder}; remove it, so that {found} is unpacked again")
    return folder


def _layouts(info: Description, base: Path) -> Iterator[Path]:
    # Some copies nest the folder twice.
    for folder in (base, base / info.folder, base / info.folder / info.folder):
        if any((folder / marker).is_file() for marker in info.markers):
            yield folder
