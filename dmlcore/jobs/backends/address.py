"""Access to remote folders through fsspec (s3://, gs://, sftp://, ...), for nodes without a shared file system."""

from __future__ import annotations

import contextlib
import logging
import re
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from dmlcore.storage.run_directory import LOCK
from dmlcore.storage.task import JobError

MAX_FILES = 20_000  # files of one run
MAX_BYTES = 2**38  # maximum size in bytes of one run with all its checkpoints
NAME = re.compile(r"(?!.*(^|/)\.{1,2}(/|$))[A-Za-z0-9._-]{1,200}(/[A-Za-z0-9._-]{1,200}){0,7}", re.ASCII)
log = logging.getLogger("dmlcore")
_CHUNK = 2**22  # bytes
# Suffixes of files that are written after all others, in this order: a checkpoint must not arrive before the metric
# rows up to its step.
_LATE = (".ckpt", "outcome.json")


def is_address(folder: str) -> bool:
    """Return True if a folder is an fsspec address and not a path on a shared file system."""
    return "://" in folder


class Address:
    """Remote folder at an fsspec address; the object remembers which files it has sent or fetched."""

    def __init__(self, address: str) -> None:
        """Open the file system of `address`; raises JobError if no installed package supports it."""
        try:
            import fsspec

            self._files, self._path = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise JobError(f"folder {address}: {error}") from None
        self._sent: dict[str, tuple[int, int]] = {}
        self._fetched: dict[str, tuple[str, ...]] = {}
        self._sizes: dict[str, int] = {}
        self._refused: set[str] = set()

    def send(self, root: Path) -> None:
        """Upload the new files below `root`, each one atomically; checkpoints and the result are uploaded last."""
        new = {name: path for name, path in _below(root).items() if self._sent.get(name) != _signature(path)}
        with ExitStack() as opened:
            files = {}
            # Open checkpoints first: an open file keeps its contents even if its name is replaced before it is read.
            for name in sorted(new, key=_order, reverse=True):
                with contextlib.suppress(FileNotFoundError):  # the file is just being replaced; the next call sends it
                    files[name] = opened.enter_context(open(new[name], "rb")), _signature(new[name])
            for name in sorted(files, key=_order):
                source, signature = files[name]
                self.write(name, source.read())
                self._sent[name] = signature

    def write(self, name: str, contents: bytes = b"") -> None:
        """Write one remote file atomically."""
        path = f"{self._path}/{name}"
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        file = self._files.open(path, "wb", autocommit=False)
        with file:
            file.write(contents)
        file.commit()

    def fetch(self, root: Path, only: str = "") -> None:
        """Download new files into a local folder.

        Checkpoints are downloaded first and renamed to their final names last, so that the metric rows up to their step
        are always present. Anyone with write access to the address can choose file names, so a name that no file of a
        run can have is skipped with a warning.

        Args:
            root: Folder that receives the files; nothing is written outside it.
            only: Name of the single file to fetch; all files if "".

        Raises:
            JobError: There are more than MAX_FILES files or MAX_BYTES bytes, or a name is both a file and a folder.
        """
        there = self._there()
        if len(there.keys() | self._fetched.keys()) > MAX_FILES:
            raise JobError(f"{self._path}: a run may have at most {MAX_FILES:,} files, and this folder has more")
        new = []
        try:
            for name, (path, signature) in sorted(there.items(), key=lambda item: _order(item[0]), reverse=True):
                if self._fetched.get(name) != signature and (not only or name == only):
                    place = _inside(root, name)
                    temporary = place.with_name(f".{place.name}.tmp")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with self._files.open(path, "rb") as source, open(temporary, "wb") as into:
                        self._copy(source, into, name)
                    new.append((temporary, place, name, signature))
            for temporary, place, name, signature in reversed(new):
                temporary.replace(place)
                self._fetched[name] = signature
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise JobError(f"{self._path}: {error.filename} is used both as a file and as a folder") from None

    def _copy(self, source: IO[bytes], into: IO[bytes], name: str) -> None:
        """Copy the contents of one file.

        Raises JobError if the sizes of all copied files sum to more than MAX_BYTES. The bytes are counted here because
        the sizes in the remote listing cannot be trusted.
        """
        others = sum(self._sizes.values()) - self._sizes.pop(name, 0)
        size = 0
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if others + size > MAX_BYTES:
                raise JobError(f"{self._path}: a run may have at most {MAX_BYTES:,} bytes, and this folder has more")
            into.write(chunk)
        self._sizes[name] = size

    def mark_all_fetched(self) -> None:
        """Mark all remote files as fetched; call this after `send`, so that sent files are not fetched back."""
        self._fetched = {name: signature for name, (_, signature) in self._there().items()}

    def _there(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return path and signature of each remote file with a valid name, by path relative to the remote folder."""
        self._files.invalidate_cache()
        listed = self._files.find(self._path, detail=True) if self._files.exists(self._path) else {}
        keys = ("size", "ETag", "mtime", "LastModified", "created")
        there = {}
        for path, info in listed.items():
            name = path.removeprefix(f"{self._path}/")
            if name != path and NAME.fullmatch(name):
                there[name] = path, tuple(str(info.get(key)) for key in keys)
            elif path not in self._refused and len(self._refused) < MAX_FILES:
                self._refused.add(path)
                log.warning("%s: not copied, because no file of a run has the name %.200r", self._path, name)
        return there

    def remove(self) -> None:
        """Remove the remote folder."""
        if self._files.exists(self._path):
            self._files.rm(self._path, recursive=True)


def _inside(root: Path, name: str) -> Path:
    """Return the path `root`/`name`; raises JobError if it is outside `root`, for example through a symbolic link."""
    place = root / name
    if not place.resolve().is_relative_to(root.resolve()):
        raise JobError(f"{name}: not a path inside {root}")
    return place


def _below(root: Path) -> dict[str, Path]:
    files = (path for path in root.rglob("*") if path.is_file() and path.name != LOCK)
    return {str(path.relative_to(root)): path for path in files if not path.name.startswith(".")}


def _signature(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _order(name: str) -> tuple[int, str]:
    return next((rank for rank, end in enumerate(_LATE, 1) if name.endswith(end)), 0), name
