"""Safe and atomic extraction of data set archives: verifies digests, accepts only plain files, and limits sizes."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from dmlcore.data.dataset import DataError

MAX_FILES = 250_000  # maximum number of files in an archive; the largest official archive holds about 120,100
MAX_BYTES = 8 * 2**30
# maximum ratio of unpacked to packed bytes; gzip can reach 1032, but lists of paths only about 10
MAX_EXPANSION = 100
_BLOCK = 2**20


@dataclass(frozen=True)
class Archive:
    """Known archive or annotation file: name, size in bytes (None if unknown), and SHA-256 or, if unknown, MD5."""

    name: str
    size: int | None
    sha256: str = ""
    md5: str = ""

    @property
    def digest(self) -> str:
        return self.sha256 or self.md5


KNOWN = (
    # Official archives.
    Archive("cifar-100-python.tar.gz", 169_001_437, "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
    Archive("cifar-10-python.tar.gz", 170_498_071, "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
    Archive("CUB_200_2011.tgz", 1_150_585_339, "0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081"),
    Archive("cars_train.tgz", 979_269_282, "512b227b30e2f0a8aab9e09485786ab4479582073a144998da74d64b801fd288"),
    Archive("cars_test.tgz", 977_350_468, "bffea656d6f425cba3c91c6d83336e4c5f86c6cffd8975b0f375d3a10da8e243"),
    Archive("car_devkit.tgz", 330_960, "b97deb463af7d58b6bfaa18b2a4de9829f0f79e8ce663dfa9261bf7810e9accd"),
    Archive(
        "cars_test_annos_withlabels.mat", 185_758, "790f75be8ea34eeded134cc559332baf23e30e91367e9ddca97d26ed9b895f05"
    ),
    Archive(
        "Stanford_Online_Products.zip",
        3_083_860_082,
        "b04fa78210e69fab050ce73939550e1cd0f96890bdd98ec9fee732c3b756ef48",
    ),
    Archive("fgvc-aircraft-2013b.tar.gz", None, md5="d4acdd33327262359767eeaa97a4f732"),
    Archive("102flowers.tgz", 344_862_509, "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246"),
    Archive("imagelabels.mat", 502, "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d"),
    Archive("setid.mat", 14_989, "46b8678f91fd95d3c8f4feab80d271a6c834a1dd896fe29fd3e6ad9ce5c8dccd"),
    Archive("images_background.zip", None, md5="68d2efa1b9178cc56df9314c21c6e718"),
    Archive("images_evaluation.zip", None, md5="6b91aef0f799c5bb55b94e3f2daec811"),
    Archive(
        "images_background_small1.zip", 1_319_022, "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4"
    ),
    Archive(
        "images_background_small2.zip", 1_580_917, "3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f"
    ),
    # Small subsets and lists of data sets, packed in the layouts of the official archives.
    Archive("cifar-100-python.tar.gz", 19_623_674, "726050b4bbad660d4b314a04738b7b760c0ba36c4cdb356bac359dce3a203ac5"),
    Archive(
        "cifar-10-batches-py.tar.gz", 6_377_907, "32a144c5e707bcbdefe7ee91b1dacf1dcdade33001946875a806c1f51abb247f"
    ),
    Archive("cub-mini-images.tar.gz", 7_888_365, "060ec0e858a1c0a3da830f13b4247fd2d49383679a3ce43ec6833fe3171bbd9a"),
    Archive("cub-annotations.tar.gz", 1_207_461, "3e111bd37fd7192be17c2e0fe3d474c689a6a4e6a03e1fb65b9d7dbbc9b518c5"),
    Archive("cars-annotations.tar.gz", 717_553, "3226601e3d72c4ecf422c74b0638a21ca375e5f38bfb326683186f007bc261fb"),
    Archive("sop-lists.tar.gz", 733_816, "3ac6f6b1862c7645f51ba8f8601b24f0470cd4407aae5e07a4286dbcfa0da4c3"),
    Archive(
        "inshop-partition-surrogate.tar.gz",
        264_614,
        "241b39e3b45cd70d87cd6f9070bca21a88b300c6ef8948822a8db55e0f9171e6",
    ),
    Archive("flowers102-labels.tar.gz", 15_490, "3febb4953f0d4fa41574409a30d492b6bacca6dbd5e35e0632d8bbbebba66509"),
    Archive("aircraft-lists.tar.gz", 85_451, "85f7398bd33fd249a26f0cf180619de03b8e8e0d455cd8277cb7ad1b3759b48d"),
)


def identify(archive: Path) -> Archive:
    """Return the known archive with the name and size of `archive`; raise DataError if there is none."""
    size = archive.stat().st_size
    namesakes = [known for known in KNOWN if known.name == archive.name]
    for known in namesakes:
        if known.size in (size, None):
            return known
    if not namesakes:
        raise DataError(
            f"{archive} is not a known archive; known archives: {', '.join(sorted({a.name for a in KNOWN}))}"
        )
    sizes = " or ".join(f"{known.size:,}" for known in namesakes)
    raise DataError(f"{archive} has {size:,} bytes instead of {sizes}: truncated or altered; download it again")


def unpack(archive: Path, into: Path, *, sha256: str | None = None, companions: Sequence[Path] = ()) -> Path:
    """Unpack a gzipped tar file or a zip file into the new folder `into` and return it.

    The folder is created atomically: complete or not at all. An archive with links, devices or paths that lead outside
    the folder is refused, as is one with too many files, too many bytes, or too many unpacked bytes per packed byte.

    Args:
        archive: Archive to unpack.
        into: Folder to create.
        sha256: Required SHA-256 of `archive`; by default the digest of the known archive with this name and size.
        companions: Known archives or plain files to put into the same folder.

    Raises:
        DataError: If the archive is unknown, damaged or refused.
    """
    for file in (archive, *companions):
        if not file.is_file():
            raise DataError(f"archive {file} is missing" + (f"; {archive.name} needs it" if file in companions else ""))
    if into.exists():
        raise DataError(f"{into} already exists; remove it to unpack {archive.name} again")
    wanted: list[tuple[Path, Archive | None]]
    wanted = [(archive, Archive(archive.name, None, sha256) if sha256 else identify(archive))]
    wanted += [(file, identify(file)) for file in companions]
    return _unpack_all(wanted, into, MAX_BYTES)


def unpack_unknown(archive: Path, into: Path, max_bytes: int = MAX_BYTES) -> Path:
    """Unpack a zip file of a user into the new folder `into`, as `unpack` does but without a known digest.

    Raises:
        DataError: If the archive is damaged, refused, or unpacks to more than `max_bytes` bytes.
    """
    return _unpack_all([(archive, None)], into, max_bytes)


def _unpack_all(files: Sequence[tuple[Path, Archive | None]], into: Path, max_bytes: int) -> Path:
    """Unpack archives into one new folder atomically; verify the digests of known archives."""
    into.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".unpacking-{into.name}-", dir=into.parent))
    file = files[0][0]
    try:
        for file, known in files:
            with file.open("rb") as packed:
                if known is not None:
                    _require_digest(file, packed, known)
                _extract(file, packed, staging, max_bytes)
        staging.rename(into)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        NotImplementedError,  # a zip with a compression method that Python lacks
        RuntimeError,  # a zip with a password
    ) as error:
        raise DataError(f"{file} cannot be unpacked into {into}: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return into


def _require_digest(file: Path, content: io.BufferedReader, known: Archive) -> None:
    algorithm, name = ("sha256", "SHA-256") if known.sha256 else ("md5", "MD5")
    digest = hashlib.file_digest(content, algorithm).hexdigest()
    if digest != known.digest:
        raise DataError(f"{file} has {name} {digest} instead of {known.digest}: damaged or altered; download it again")
    content.seek(0)


def _extract(archive: Path, packed: BinaryIO, folder: Path, max_bytes: int) -> None:
    """Write the members of an archive into `folder`; refuse links, through which a member could leave the folder."""
    gauge = _Gauge(archive, min(max_bytes, MAX_EXPANSION * archive.stat().st_size + _BLOCK))
    if archive.suffix == ".mat":
        with (folder / archive.name).open("xb") as file:
            shutil.copyfileobj(packed, file)
    elif archive.suffix.lower() == ".zip":
        with zipfile.ZipFile(packed) as members:
            for member in members.infolist():
                kind = stat.S_IFMT(member.external_attr >> 16)  # 0 if packed on a system without file modes
                is_plain = kind in (0, stat.S_IFDIR if member.is_dir() else stat.S_IFREG)
                gauge.admit(member.orig_filename, is_plain, member.is_dir())
                gauge.count(member.file_size)  # zipfile reads no more than this
            members.extractall(folder)
    else:
        with gzip.open(packed) as unpacked:
            stream: Any = _Metered(unpacked, gauge)  # counts tar headers as well
            with tarfile.open(fileobj=stream, mode="r|") as members:
                members.extractall(folder, filter=gauge.filter)
            # tarfile stops at the end mark of the tar file, but gzip verifies its checksum only at the end.
            while stream.read(_BLOCK):
                pass


class _Gauge:
    """Check of the members of an archive and of their total size, `ceiling` bytes; raises DataError or OSError."""

    def __init__(self, archive: Path, ceiling: int) -> None:
        self._archive, self._ceiling = archive, ceiling
        self._members, self._bytes = 0, 0
        self._files: set[PurePosixPath] = set()

    def admit(self, name: str, is_plain: bool, is_folder: bool) -> None:
        """Refuse a member that leads outside the folder, is not `is_plain`, repeats a file, or is one too many."""
        self._members += 1
        if self._members > MAX_FILES:
            raise DataError(f"refusing {self._archive}: it has more than {MAX_FILES:,} files")
        if not is_plain:
            raise DataError(f"refusing {self._archive}: member {name!r} is neither a regular file nor a folder")
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise DataError(f"refusing {self._archive}: member {name!r} leads outside the folder")
        if path in self._files:
            raise FileExistsError(f"member {name!r} exists twice")
        if not is_folder:
            self._files.add(path)

    def filter(self, member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
        """Admit a member of a tar file, without its owner, mode and time; a filter for `TarFile.extractall`."""
        self.admit(member.name, member.isdir() or (member.isfile() and not member.issparse()), member.isdir())
        return member.replace(mode=None, mtime=None, uid=None, gid=None, uname=None, gname=None, deep=False)  # type: ignore[arg-type]

    def count(self, unpacked: int) -> None:
        """Add a number of unpacked bytes to the total."""
        self._bytes += unpacked
        if self._bytes > self._ceiling:
            raise DataError(f"refusing {self._archive}: it unpacks to more than {self._ceiling:,} bytes")


class _Metered:
    """Readable content of which each byte read is counted."""

    def __init__(self, content: gzip.GzipFile, gauge: _Gauge) -> None:
        self._content, self._gauge = content, gauge

    def read(self, size: int, /) -> bytes:
        block = self._content.read(size)
        self._gauge.count(len(block))
        return block
