"""Search for the folder of a data set in its official layout, or for a known archive of the data set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dmlcore.data.dataset import DataError, Description
from dmlcore.data.files import archives
from dmlcore.data.shards.index import is_sharded, read_manifest
from dmlcore.storage.home import HOME


def search_folders() -> list[Path]:
    """Return the folders to search for data sets, without duplicates: $DML_DATA, then data, ../data and ../shared/data.

    The last three are relative to the repository or, if the library was installed without a repository, to the working
    directory.
    """
    chosen = os.environ.get("DML_DATA")
    return list(
        dict.fromkeys([*([Path(chosen).expanduser().resolve()] if chosen else []), *_neighbouring_folders(HOME)])
    )


@cache
def _neighbouring_folders(home: Path) -> tuple[Path, ...]:
    return tuple((home / folder).resolve() for folder in ("data", "../data", "../shared/data"))


def cache_folder() -> Path:
    """Return the cache folder: $DML_CACHE, or ~/.cache/dml-lab."""
    return Path(os.environ.get("DML_CACHE") or "~/.cache/dml-lab").expanduser()


def find(info: Description, root: Path | None) -> Path | None:
    """Return the location of a data set: its official layout, else its shards, else a known archive, else None.

    An archive is not unpacked.

    Args:
        info: Description of the data set.
        root: Folder of the data set, its parent, an archive, or the folder that contains the archive. None searches
            `search_folders()`.
    """
    if root is not None and root.is_file():
        return root
    if not info.folder:
        return root if root is not None and root.is_dir() else None
    bases = [root] if root is not None else search_folders()
    layouts = [(base, folder) for base in bases for folder in _layouts(info, base)]
    places = [folder for _, folder in layouts if any((folder / images).is_dir() for images in info.images)]
    places += [folder for base in bases for folder in (base, base / shards_folder(info)) if _has_shards(folder, info)]
    # Folders without images come last: many copies have only the lists, sometimes next to an archive of the images.
    for base in bases:
        places += [base / name for name in info.archives if (base / name).is_file()]
        places += [folder for other, folder in layouts if other == base]
    return next(iter(places), None)


def locate(info: Description, root: Path | None) -> Path:
    """Return the folder of a data set, unpacking a known archive into the cache; raise DataError if there is none."""
    places = find(info, root)
    if places is None and not info.folder:
        raise DataError(f"{info.title}: root must be {_any_folder(info)}, got {root or 'no folder'}")
    if places is None:
        where = root if root is not None else ", ".join(map(str, search_folders()))
        raise DataError(
            f"{info.title} was not found: looked in {where} for the folder "
            f"{' or '.join((info.folder, *info.other_folders))}, for {shards_folder(info)} and for "
            f"{', '.join(info.archives)}. "
            f"Download {info.url} and unpack it, or leave it packed, in {root or search_folders()[0]}"
        )
    if places.is_dir():
        return places
    if not info.folder:
        raise DataError(f"{places} is a file; {info.title} needs {_any_folder(info)}")
    known = archives.identify(places)
    if known.name not in info.archives:
        raise DataError(f"{places} is not an archive of {info.title}; it needs one of {', '.join(info.archives)}")
    unpacked = unpacked_at(known)
    if not unpacked.is_dir():
        try:
            companions = [places.with_name(name) for name in info.companions.get(known.name, ())]
            archives.unpack(places, unpacked, companions=companions)
        except DataError:
            if not unpacked.is_dir():  # otherwise another process has unpacked the archive in the meantime
                raise
    folder = next(_layouts(info, unpacked), None)
    if folder is None:
        raise DataError(f"{unpacked} lacks the folder {info.folder}; remove it, so that {places} is unpacked again")
    return folder


def _any_folder(info: Description) -> str:
    """Return which folder a data set without a fixed folder name needs, for messages."""
    return f"a folder with the file {info.markers[0]}" if info.markers else "a folder of class folders"


def shards_folder(info: Description) -> str:
    """Return the name of the folder that holds the data set if it is packed into shards."""
    return f"{info.name}-shards"


def _has_shards(folder: Path, info: Description) -> bool:
    return is_sharded(folder) and read_manifest(folder).data == info.name


def unpacked_at(archive: archives.Archive) -> Path:
    """Return the path of the cache folder into which a known archive is unpacked, whether or not it exists."""
    return cache_folder() / f"{archive.name.partition('.')[0]}-{archive.digest[:16]}"


def _layouts(info: Description, base: Path) -> Iterator[Path]:
    if not base.is_dir():  # exits early, because pages look for all data sets in all folders
        return
    # Some copies contain the data set folder nested in a folder of the same name.
    names = (info.folder, *info.other_folders)
    for folder in (base, *(base / name for name in names), *(base / name / name for name in names)):
        if folder.is_dir() and any(next(folder.glob(marker), None) is not None for marker in info.markers):
            yield folder
