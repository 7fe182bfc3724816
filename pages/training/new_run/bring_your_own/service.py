"""Uploaded files on disk, and previews of files, for the page Bring your own."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Protocol

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import files, image_match, images
from dmlcore.data.embedding_sets.image_match import ImageMatch
from dmlcore.data.embedding_sets.preview import Preview, preview
from dmlcore.data.embedding_sets.table import VectorTable
from dmlcore.data.files.images import SUFFIXES
from dmlcore.data.printable import encodable
from dmlcore.experiments.imports import Import, ImportRequest
from pages.shared.state.cache import cached

MAX_NAME = 200  # bytes of a file name
LOOSE = "loose"  # name of the folder that holds single images
LIFETIME = 900  # lifetime of the cache in seconds
MOST_COUNTED = 100_000  # number of images at which counting stops
COUNT_LIFETIME = 30  # lifetime of a list of images in seconds; a change in a subfolder does not touch its parent


class Uploaded(Protocol):
    """Uploaded file as Streamlit returns it."""

    @property
    def name(self) -> str: ...

    @property
    def file_id(self) -> str: ...

    def getbuffer(self) -> memoryview: ...


def store_file(place: Import, role: str, file: Uploaded) -> Path:
    """Write an uploaded file into the folder of an import, unless it is there, and return its path.

    Raises:
        DataError: If the disk is full.
    """
    name = file_name(file.name)
    folder = place.files / role / _digits(file.file_id)
    if not (folder / name).is_file():
        _write(folder / name, file)
    return folder / name


def store_images(place: Import, uploads: Sequence[Uploaded]) -> Path:
    """Write uploaded images into a folder, or a single .zip file without unpacking it, and return the path.

    Raises:
        DataError: If there are several .zip files, two images have the same name, or the disk is full.
    """
    packed = [file for file in uploads if file.name.lower().endswith(".zip")]
    if packed and len(uploads) > 1:
        raise DataError(f"{packed[0].name} is one of {len(uploads):,} files; give one .zip file, or images only")
    if packed:
        return store_file(place, "images", packed[0])
    names = [file_name(file.name) for file in uploads]
    if repeated := sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []:
        raise DataError(f"two images have the name {repeated[0]}; upload the folder that contains both")
    folder = place.files / "images" / LOOSE
    for name, file in zip(names, uploads, strict=True):
        if not (folder / name).is_file():
            _write(folder / name, file)
    kept = {folder / name for name in names}
    for path in list(folder.iterdir()):
        if path not in kept:  # removed by the visitor
            path.unlink(missing_ok=True)
    return folder


def file_name(name: str) -> str:
    """Return the name of an uploaded file without folders and of limited length; its suffix is kept."""
    name = encodable(name).replace("\\", "/").rpartition("/")[2].replace("\0", "")
    stem, suffix = os.path.splitext(name)
    while len(f"{stem}{suffix}".encode()) > MAX_NAME:
        stem, suffix = stem[:-1], suffix[:20]
    return f"{stem or 'file'}{suffix}" if name not in (".", "..") else "file"


def preview_files(file: Path, labels: Path | None, vectors: str | None) -> Preview:
    """Return a preview, cached until a file changes; raises DataError as `preview` does."""
    return _preview(str(file), _stamp(file), str(labels) if labels else None, _stamp(labels), vectors)


@cached(16, LIFETIME)
def _preview(file: str, changed: str, labels: str | None, labels_changed: str, vectors: str | None) -> Preview:
    return preview(file, labels, vectors=vectors)


def count_images(path: Path) -> int | None:
    """Return the number of image files in a folder or .zip file, at most MOST_COUNTED; None if it cannot be read."""
    names = _image_names(str(path), _stamp(path))
    return None if names is None else len(names)


def match_images(given: ImportRequest) -> ImageMatch | None:
    """Return how many rows have an image; None if this is not known before the import.

    It is not known if the files cannot be read, are too many to be listed, or have absolute paths.
    """
    if given.images is None:
        return None
    names = _image_names(given.images, _stamp(Path(given.images)))
    if names is None or len(names) >= MOST_COUNTED:
        return None
    changed = " ".join(_stamp(Path(path) if path else None) for path in (given.file, given.labels, given.images))
    return _match(given.model_copy(update={"name": ""}), changed)


@cached(16, COUNT_LIFETIME)
def _match(given: ImportRequest, changed: str) -> ImageMatch | None:
    names = _image_names(given.images or "", _stamp(Path(given.images or "")))
    try:
        table = files.read_labelled(given.file, given.labels, vectors=given.vectors)
        if names is None or table.vectors.shape[0] > MOST_COUNTED:
            return None
        paths, ids = (_texts(table, name) for name in (given.image, given.id))
    except (DataError, OSError, KeyError):
        return None  # the import reports the reason
    if paths is not None and images.are_absolute(paths):
        return None
    return image_match.match_images(names, table.vectors.shape[0], paths, ids)


def _texts(table: VectorTable, name: str | None) -> list[str | None] | None:
    if name is None:
        return None
    return [None if value is None else str(value) for value in table.columns.column(name).to_pylist()]


@cached(16, COUNT_LIFETIME)
def _image_names(path: str, changed: str) -> tuple[str, ...] | None:
    try:
        if os.path.isdir(path):
            return tuple(islice(images.images_below(Path(path)), MOST_COUNTED))
        with zipfile.ZipFile(path) as archive:
            return tuple(name for name in archive.namelist()[:MOST_COUNTED] if _is_image(PurePosixPath(name)))
    except (DataError, OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return None  # the import reports the reason


def _is_image(path: PurePosixPath) -> bool:
    hidden = any(name.startswith((".", "__MACOSX")) for name in path.parts)
    return path.name.lower().endswith(SUFFIXES) and not hidden


def without_folders(place: Import, message: str) -> str:
    """Return an error message in which uploaded files are named without the folders of the server."""
    for folder in (place.files / "images" / LOOSE, place.path.parent):
        message = message.replace(str(folder), "the uploaded images")
    return message


def image_suffixes() -> list[str]:
    """Return the suffixes of images and of archives of images, without dots."""
    return ["zip", *(suffix.removeprefix(".") for suffix in SUFFIXES)]


def _stamp(path: Path | None) -> str:
    try:
        status = path.stat() if path else None
    except (OSError, ValueError):
        status = None
    return f"{status.st_size} {status.st_mtime_ns}" if status else ""


def _write(path: Path, file: Uploaded) -> None:
    """Write an uploaded file; it appears under its name only when it is complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name[:100]}.part")
        partial.write_bytes(file.getbuffer())
        partial.replace(path)
    except OSError as error:
        raise DataError(
            f"{path.name} cannot be stored ({error.strerror}); free space on the server, or give a path"
        ) from error


def _digits(file_id: str) -> str:
    return "".join(sign for sign in file_id if sign.isalnum() or sign == "-")[:64] or "file"
