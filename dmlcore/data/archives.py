"""Unpacks data set archives: known by SHA-256, plain files only, under ceilings, completely or not at all."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from dmlcore.data.dataset import DataError

MAX_FILES = 100_000
MAX_BYTES = 8 * 2**30
MAX_EXPANSION = 100  # unpacked over packed bytes; gzip itself reaches 1032, lists of paths about 10
_BLOCK = 2**20


@dataclass(frozen=True)
class Archive:
    """A known archive: file name, bytes, SHA-256."""

    name: str
    size: int
    sha256: str


KNOWN = (
    # Official archives.
    Archive("cifar-100-python.tar.gz", 169_001_437, "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
    Archive("cifar-10-python.tar.gz", 170_498_071, "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
    Archive("CUB_200_2011.tgz", 1_150_585_339, "0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081"),
    # Small packs in the same layouts.
    Archive("cifar-100-python.tar.gz", 19_623_674, "726050b4bbad660d4b314a04738b7b760c0ba36c4cdb356bac359dce3a203ac5"),
    Archive(
        "cifar-10-batches-py.tar.gz", 6_377_907, "32a144c5e707bcbdefe7ee91b1dacf1dcdade33001946875a806c1f51abb247f"
    ),
    Archive("cub-mini-images.tar.gz", 7_888_365, "060ec0e858a1c0a3da830f13b4247fd2d49383679a3ce43ec6833fe3171bbd9a"),
    Archive("cub-annotations.tar.gz", 1_207_461, "3e111bd37fd7192be17c2e0fe3d474c689a6a4e6a03e1fb65b9d7dbbc9b518c5"),
)


def identify(archive: Path) -> Archive:
    """Return the known archive that `archive` claims to be by name and size; raise DataError if there is none."""
    size = archive.stat().st_size
    namesakes = [known for known in KNOWN if known.name == archive.name]
    for known in namesakes:
        if known.size == size:
            return known
    if not namesakes:
        raise DataError(f"{archive} is not a known archive; known are {', '.join(sorted({a.name for a in KNOWN}))}")
    sizes = " or ".join(f"{known.size:,}" for known in namesakes)
    raise DataError(f"{archive} has {size:,} bytes instead of {sizes}: cut short or altered; fetch it again")


def unpack(archive: Path, into: Path, *, sha256: str | None = None) -> Path:
    """Unpack a gzipped tar file into the new folder `into` and return it.

    The digest must be `sha256`, or without it that of the known archive of this name and size. Links, devices and
    names that lead outside are refused; files, bytes and expansion have ceilings. The folder appears complete, by one
    rename, or not at all. Raises DataError.
    """
    if not archive.is_file():
        raise DataError(f"archive {archive} is missing")
    if into.exists():
        raise DataError(f"{into} exists already; remove it to unpack {archive.name} again")
    expected = sha256 or identify(archive).sha256
    into.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".unpacking-{into.name}-", dir=into.parent))
    try:
        with archive.open("rb") as packed:
            digest = hashlib.file_digest(packed, "sha256").hexdigest()
            if digest != expected:
                raise DataError(
                    f"{archive} has SHA-256 {digest} instead of {expected}: damaged or altered; fetch it again"
                )
            _extract(archive, packed, staging)
        staging.rename(into)
    except (tarfile.TarError, zlib.error, OSError, EOFError) as error:
        raise DataError(f"{archive} cannot be unpacked into {into}: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return into


def _extract(archive: Path, packed: BinaryIO, folder: Path) -> None:
    """Write the members by hand: a folder that never holds a link leaves nothing for a later member to follow."""
    packed.seek(0)
    ceiling = min(MAX_BYTES, MAX_EXPANSION * archive.stat().st_size + _BLOCK)
    with _MeteredGzip(archive, packed, ceiling) as stream, tarfile.open(fileobj=stream, mode="r|") as members:
        for count, member in enumerate(members, start=1):
            if count > MAX_FILES:
                raise DataError(f"{archive} holds more than {MAX_FILES:,} files; refused")
            target = folder.joinpath(*_safe_parts(archive, member))
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            content = members.extractfile(member)
            assert content is not None  # _safe_parts lets only plain files and folders pass
            with target.open("xb") as file:  # x: a doubled name is an error, not a replacement
                shutil.copyfileobj(content, file, _BLOCK)
        while stream.read(_BLOCK):  # tar stops at its end mark; only the end of the gzip stream proves its checksum
            pass


def _safe_parts(archive: Path, member: tarfile.TarInfo) -> tuple[str, ...]:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
        raise DataError(f"{archive}: member {member.name!r} leads outside the folder; refused")
    if not (member.isdir() or member.isfile()) or member.issparse():
        raise DataError(f"{archive}: member {member.name!r} is neither a plain file nor a folder; refused")
    return path.parts


class _MeteredGzip(gzip.GzipFile):
    """Refuses to unpack more than `ceiling` bytes, tar headers included."""

    def __init__(self, archive: Path, packed: BinaryIO, ceiling: int) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._archive, self._ceiling, self._bytes = archive, ceiling, 0

    def read(self, size: int | None = -1) -> bytes:
        block = super().read(size)
        self._bytes += len(block)
        if self._bytes > self._ceiling:
            raise DataError(f"{self._archive} unpacks to more than {self._ceiling:,} bytes; refused")
        return block
