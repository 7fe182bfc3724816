"""Count of the rows of an embedding set that have an image, before anything is imported or unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from dmlcore.data.embedding_sets.source import shown


@dataclass(frozen=True)
class ImageMatch:
    """Result of assigning image files to rows by name.

    Attributes:
        rows: Number of rows N.
        matched: Number of rows that have an image, 0..N.
        files: Number of image files.
        reason: Message that says why rows have no image; "" if all have one.
    """

    rows: int
    matched: int
    files: int
    reason: str


def match_images(
    files: Sequence[str], rows: int, paths: Sequence[str | None] | None, ids: Sequence[str | None] | None
) -> ImageMatch:
    """Assign image files to rows as `images.assign` does, but count the rows instead of raising an error.

    Args:
        files: Paths of the image files, relative to their folder or archive, with "/" as separator.
        rows: Number of rows N.
        paths: Values of the image column (N,); None without such a column.
        ids: Identifiers of the rows (N,); None without such a column.
    """
    by_path = set(files)
    by_name = {name for path in files for name in (PurePosixPath(path).name, PurePosixPath(path).stem)}
    for kind, values in (("image column", paths), ("ids", ids if paths is None else None)):
        if values is None:
            continue
        has_image = [value is not None and PurePosixPath(value).as_posix() in by_path for value in values]
        if not any(has_image):
            has_image = [value is not None and PurePosixPath(value).name in by_name for value in values]
        matched = sum(has_image)
        if matched or kind == "image column":
            return ImageMatch(rows, matched, len(files), _first_without(has_image, values))
    if len(files) == rows:
        return ImageMatch(rows, rows, rows, "")
    return ImageMatch(rows, 0, len(files), "no column names the files, so there must be as many files as rows")


def _first_without(has_image: Sequence[bool], values: Sequence[str | None]) -> str:
    """Return a message that names the first row without an image; "" if there is none."""
    if all(has_image):
        return ""
    row = has_image.index(False)
    value = values[row]
    return f"row {row + 1:,} is the first without one" + (f" ({shown(value)})" if value else "")
