"""Input files: opening them safely, and errors that name the file and a remedy."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dmlcore.data.dataset import DataError
from dmlcore.data.printable import printable

MAX_EXPANSION = 100  # maximum ratio of unpacked to packed bytes; compressed embeddings reach about 2
FREE_EXPANSION = 2**27  # unpacked bytes that are allowed for a file of any size
LONGEST = 60  # maximum length of a value in a message, in characters


@dataclass(frozen=True)
class SourceFile:
    """Regular file that is read in several passes; `open` refuses it if it has changed since the first one.

    Attributes:
        path: Path of the file.
        name: File name for messages.
        size: Size in bytes.
        stamp: Device, inode and modification time in ns.
    """

    path: Path
    name: str
    size: int
    stamp: tuple[int, int, int]

    @property
    def budget(self) -> int:
        """Maximum number of bytes that the contents of this file may take when they are unpacked."""
        return FREE_EXPANSION + MAX_EXPANSION * self.size

    def open(self) -> IO[bytes]:
        """Open the file for reading; raise DataError if it has changed."""
        file, now = _open(self.path)
        if now != self:
            file.close()
            raise DataError(f"{self.name} changed while it was read; wait until it is complete and try again")
        return file

    def require_plausible(self, unpacked: int, what: str = "its contents") -> None:
        """Raise DataError if `what` is declared to take more bytes than a file of this size can plausibly hold."""
        if unpacked > self.budget:
            raise DataError(
                f"{self.name}: {what} would take {unpacked:,} bytes, more than {MAX_EXPANSION} times its {self.size:,} "
                "bytes; the file is damaged or hostile: save the embeddings again"
            )


def source_file(path: Path | str) -> SourceFile:
    """Return the regular file `path`; raise DataError for a missing or empty file, a folder, a pipe or a device."""
    file, source = _open(Path(path))
    file.close()
    if source.size == 0:
        raise DataError(f"{source.name} is empty; save the embeddings again")
    return source


def _open(path: Path) -> tuple[IO[bytes], SourceFile]:
    name = printable(path.name or str(path), 100)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        if getattr(error, "errno", 0) == errno.ENOENT:
            raise DataError(f"{printable(str(path), 300)}: no such file; check the path") from None
        if getattr(error, "errno", 0) == errno.ENXIO:
            raise DataError(f"{name} is not a regular file; give a file that holds embeddings") from None
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{name} cannot be opened ({reason}); check the path and its permissions") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise DataError(f"{name} is {what}; give a file that holds embeddings")
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns)
    return open(descriptor, "rb"), SourceFile(path, name, status.st_size, stamp)


@contextmanager
def reading(source: SourceFile, form: str) -> Iterator[None]:
    """Return a context manager that converts any exception of a parser into a DataError that names file and format."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # a truncated or forged file can raise almost any exception, including MemoryError
        reason = printable((str(error).strip() or type(error).__name__).splitlines()[0], 200)
        raise DataError(
            f"{source.name} cannot be read as {form} ({reason}); it is damaged, incomplete or has the wrong suffix: "
            "save it again"
        ) from error


def shown(value: object) -> str:
    """Return a value as quoted text for a message, shortened to LONGEST characters."""
    return repr(printable(value, LONGEST)) if isinstance(value, str) else printable(str(value), LONGEST)


def listed(names: list[str], most: int = 12) -> str:
    """Return the first `most` names, separated by commas, for messages; "none" for an empty list."""
    few = ", ".join(printable(name, LONGEST) for name in names[:most])
    return (few or "none") + (f" and {len(names) - most:,} more" if len(names) > most else "")
