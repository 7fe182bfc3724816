"""Atomic replacement of files, safe against kill -9 and power failure, and reading of files with a size limit."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any


def replace(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Atomically replace the contents of `path` with what `write(file)` writes.

    After a crash, the file holds either the complete old or the complete new contents.
    """
    # The name is fixed, so that the next call overwrites a temporary file left by a killed process.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def open_regular(path: Path, most: int) -> IO[bytes]:
    """Open a regular file of at most `most` bytes for reading; raises OSError for anything else.

    Pipes and devices are refused because reading them could block or never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return open(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, above the limit of {most:,}", str(path))


def read_bytes(path: Path, most: int) -> bytes:
    """Return the contents of a regular file of at most `most` bytes; raises OSError for anything else."""
    with open_regular(path, most) as file:
        return file.read()


def read_json(path: Path, most: int = 2**24) -> Any:
    """Return the value of a JSON file of at most `most` bytes; raises OSError, or ValueError for invalid JSON."""
    try:
        return json.loads(read_bytes(path, most))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Return the regular files among `paths`, most recently written first; skip files that disappear meanwhile."""
    dated = []
    for path in paths:
        with contextlib.suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                dated.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(dated, reverse=True)]


def replace_json(path: Path, value: Any) -> None:
    """Atomically replace `path` with `value` as JSON."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    replace(path, lambda file: file.write(text.encode()))


def sync_directory(path: Path) -> None:
    """Flush the entries of directory `path` to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
