"""Assignment of image files to the rows of an embedding set.

Relative paths must stay inside the folder of the images; absolute paths must be below folders that the caller allows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.source import shown
from dmlcore.data.files.images import SUFFIXES
from dmlcore.data.printable import encodable

MAX_FOLDERS = 50_000
NAMED = 3  # maximum number of rows that a message about missing files names


def assign(folder: Path, rows: int, paths: Sequence[str | None] | None, ids: Sequence[str] | None) -> list[str]:
    """Return the image of each row, relative to `folder`, with "/" as separator.

    Args:
        folder: Folder of the images.
        rows: Number of rows N.
        paths: Values of the image column, relative to `folder`; None without such a column. If none of them exists, but
            files below `folder` have the same names, as after packing or moving the folder, these are assigned.
        ids: Identifiers of the rows. Without `paths`, the image of a row is the file whose name, or name without
            suffix, is its identifier. If no file has such a name, or without identifiers, the image files sorted by
            path are assigned in order, if there are N.

    Raises:
        DataError: If files are missing, a path leaves the folder, or a file is not an image.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the folder of the images")
    assigned = _listed(folder, paths) if paths is not None else _unnamed(folder, rows, ids)
    _require_utf8(str(folder.absolute()), assigned)
    return assigned


def find(folder: Path | None, paths: Sequence[str | None], roots: Sequence[Path]) -> tuple[Path, list[str]]:
    """Return a folder that contains all images of a column, and their paths relative to it, as `assign` returns them.

    Args:
        folder: Folder of the relative paths; None if there is none.
        paths: Values of the image column, of which some are absolute.
        roots: Folders below which absolute paths are accepted.

    Raises:
        DataError: If files are missing, not images, or outside `roots` or `folder`.
    """
    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the folder of the images")
    full: list[str] = []
    missing: list[str] = []
    directories: dict[str, set[str]] = {}
    for row, path in enumerate(paths, start=1):
        if not path or not path.strip():
            missing.append(f"row {row:,} has no path")
            continue
        is_absolute = path.startswith("/")
        if folder is None and not is_absolute:
            raise DataError(f"row {row:,}: the image path {shown(path)} is relative; give the folder of the images")
        require_inside(path.lstrip("/"), row)
        target = os.path.abspath(os.path.join(folder or "/", path))
        allowed = roots if is_absolute or folder is None else [folder]
        place, name = os.path.split(target)
        if place not in directories:
            is_allowed = any(_is_inside(root, place) for root in allowed)
            directories[place] = _plain_files(Path(place)) if is_allowed else set()
        if name not in directories[place]:
            if not any(_is_inside(root, target) for root in allowed):
                raise _outside(path, row)
            if not os.path.isfile(target):
                missing.append(f"row {row:,} ({shown(path)})")
        full.append(target)
    if missing:
        raise _missing(folder, missing)
    common = os.path.commonpath([os.path.dirname(path) for path in full])
    relative = [os.path.relpath(path, common) for path in full]
    _require_utf8(common, relative)
    return Path(common), relative


def are_absolute(paths: Sequence[str | None]) -> bool:
    """Return True if at least one path is absolute."""
    return any(path is not None and path.startswith("/") for path in paths)


def _unnamed(folder: Path, rows: int, ids: Sequence[str] | None) -> list[str]:
    """Return the image of each row by identifier, or by order if no file is named like an identifier."""
    present = sorted(images_below(folder))
    if ids is not None:
        named = _by_name(folder, present, ids)
        if named is not None:
            return named
    if len(present) != rows:
        raise DataError(
            f"{folder} has {len(present):,} image files for {rows:,} rows, and no column names them; add a column with "
            "the path of each image, or one with ids that are the names of the files"
        )
    return present


def require_named(folder: Path, ids: Sequence[str]) -> list[str]:
    """Return the image named like each identifier, relative to `folder`; raise DataError if one is missing."""
    named = _by_name(folder, sorted(images_below(folder)), ids)
    if named is None:
        raise _missing(folder, [f"row {row:,} ({shown(name)})" for row, name in enumerate(ids, start=1)])
    _require_utf8(str(folder.absolute()), named)
    return named


def images_below(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all image files in and below `folder`, except hidden files and links outside."""
    for count, (base, folders, files) in enumerate(os.walk(folder), start=1):
        if count > MAX_FOLDERS:
            raise DataError(f"{folder} contains more than {MAX_FOLDERS:,} folders; give the folder of the images only")
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX"))]
        for name in files:
            path = os.path.join(base, name)
            if name.lower().endswith(SUFFIXES) and not name.startswith(".") and _is_inside(folder, path):
                yield os.path.relpath(path, folder).replace(os.sep, "/")


def require_inside(path: str, row: int) -> None:
    """Raise DataError unless `path` is relative, stays in its folder and has the suffix of an image."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path or "\\" in path:
        raise _outside(path, row)
    if not path.lower().endswith(SUFFIXES):
        raise DataError(f"row {row:,}: {shown(path)} is not an image; supported suffixes: {', '.join(SUFFIXES)}")


def copy(folder: Path, paths: Sequence[str], into: Path) -> None:
    """Copy image files into a new folder, under the same relative paths; raise DataError if one cannot be copied."""
    for path in dict.fromkeys(paths):
        target = into / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, target)
        except OSError as error:
            raise DataError(f"the image {shown(path)} cannot be copied ({error.strerror}); check the files") from error


def _listed(folder: Path, paths: Sequence[str | None]) -> list[str]:
    """Check the paths of an image column; each directory is listed once, because a stat per file is slow."""
    checked, missing = [], []
    directories: dict[str, set[str]] = {}
    for row, path in enumerate(paths, start=1):
        if not path or not path.strip():
            missing.append(f"row {row:,} has no path")
            continue
        require_inside(path, row)
        clean = PurePosixPath(path).as_posix()
        place, _, name = clean.rpartition("/")
        if place not in directories:
            directories[place] = _plain_files(folder / place) if _is_inside(folder, folder / place) else set()
        if name not in directories[place]:
            target = folder / clean
            if os.path.lexists(target) and not _is_inside(folder, target):
                raise DataError(
                    f"row {row:,}: the image {shown(path)} is a link that leads outside {folder}; copy the file"
                )
            if not target.is_file():
                missing.append(f"row {row:,} ({shown(path)})")
        checked.append(clean)
    if missing and len(missing) == len(paths):
        names = [(path or "").rpartition("/")[2] for path in paths]
        if (named := _by_name(folder, sorted(images_below(folder)), names)) is not None:
            return named
    if missing:
        raise _missing(folder, missing)
    return checked


def _plain_files(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
    except OSError:
        return set()


def _is_inside(folder: Path, path: Path | str) -> bool:
    root, real = os.path.realpath(folder), os.path.realpath(path)
    return real == root or real.startswith(os.path.join(root, ""))


def _by_name(folder: Path, present: list[str], ids: Sequence[str]) -> list[str] | None:
    """Return the file of each identifier, or None if no file is named like one."""
    by_name: dict[str, list[str]] = {}
    for path in present:
        name = path.rpartition("/")[2]
        for key in {name, name.rpartition(".")[0], path}:
            by_name.setdefault(key, []).append(path)
    if not any(name in by_name for name in ids):
        return None
    images, missing = [], []
    for row, name in enumerate(ids, start=1):
        paths = by_name.get(name, [])
        if len(paths) > 1:
            raise DataError(
                f"row {row:,}: {shown(paths[0])} and {shown(paths[1])} both have the name {shown(name)}; add a column "
                "with the path of each image"
            )
        if not paths:
            missing.append(f"row {row:,} ({shown(name)})")
        images += paths
    if missing:
        raise _missing(folder, missing)
    return images


def _require_utf8(folder: str, paths: Sequence[str]) -> None:
    for row, path in enumerate([folder, *paths]):
        if encodable(path) != path:
            where = f"row {row:,}: the image" if row else "the folder"
            raise DataError(f"{where} {shown(path)} has a name that is not UTF-8; rename it")


def _outside(path: str, row: int) -> DataError:
    return DataError(
        f"row {row:,}: the image path {shown(path)} leads outside the folder of the images; give paths relative to "
        "that folder"
    )


def _missing(folder: Path | None, missing: list[str]) -> DataError:
    rows = ", ".join(missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
    what = "image is" if len(missing) == 1 else "images are"
    where = f" in {folder}" if folder else ""
    return DataError(f"{len(missing):,} {what} missing{where}: {rows}; add the files, or correct the paths")
