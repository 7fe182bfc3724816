"""Downloads of data sets from a local server: detached, resumed, verified, usable, cancelled."""

import hashlib
import io
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.data.files import archives, sources
from dmlcore.storage import download, locks
from dmlcore.storage.task import JobError, ProgressState
from tests.data import served
from tests.started import until
from tests.storage.ranged_server import Server, serving

CHILD = Path(served.__file__)


def cub_archive() -> bytes:
    """Return an archive of four classes, two of them for testing, with three images each."""
    classes = {1: "001.A", 2: "002.B", 101: "101.C", 102: "102.D"}
    images = [(number, f"{name}/{i}.png") for number, name in classes.items() for i in range(3)]
    ids = range(1, len(images) + 1)
    files = {
        "images.txt": "".join(f"{i} {path}\n" for i, (_, path) in zip(ids, images, strict=True)),
        "image_class_labels.txt": "".join(f"{i} {number}\n" for i, (number, _) in zip(ids, images, strict=True)),
        "classes.txt": "".join(f"{number} {name}\n" for number, name in classes.items()),
        "train_test_split.txt": "".join(f"{i} {i % 2}\n" for i in ids),
    }
    content = {f"CUB_200_2011/{name}": text.encode() for name, text in files.items()}
    content["CUB_200_2011/README"] = random.Random(0).randbytes(3 * download.CHUNK)  # so that it comes in pieces
    for i, (_, path) in zip(ids, images, strict=True):
        image = io.BytesIO()
        Image.effect_noise((40, 30), 10 * i).convert("RGB").save(image, "PNG")
        content[f"CUB_200_2011/images/{path}"] = image.getvalue()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, body in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return packed.getvalue()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DML_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(archives, "KNOWN", archives.KNOWN)
    monkeypatch.setattr(sources, "SOURCES", sources.SOURCES)
    with serving(cub_archive(), monkeypatch) as made:
        pin(made)
        yield made


def pin(server: Server, content: bytes | None = None) -> tuple[str, str]:
    """Pin an archive by digest and size in place of the official one."""
    meant = server.content if content is None else content
    digest = hashlib.sha256(meant).hexdigest()
    served.pin(server.url("CUB_200_2011.tgz"), digest, len(meant))
    return digest, str(len(meant))


def test_it_is_verified_unpacked_and_then_found_and_read(server: Server, tmp_path: Path) -> None:
    assert data.available("cub", tmp_path / "data") is None
    said = sources.download("cub", loopback=True, pause=0.0)
    assert f"{len(server.content):,} bytes downloaded to {tmp_path / 'data'}" in said
    state = sources.task_of("cub").state()
    assert (state.state, state.done, state.total) == ("done", len(server.content), len(server.content))
    assert data.locate("cub", tmp_path / "data").is_relative_to(tmp_path / "cache")
    splits = data.load("cub", validation="none").splits
    assert {part: len(rows) for part, rows in splits.items()} == {"train": 6, "validation": 0, "test": 6}
    sources.download("cub", loopback=True)
    assert server.asked == [None], "existing files must not be downloaded again"


def test_another_file_than_the_pinned_one_is_refused_and_the_state_says_so(server: Server, tmp_path: Path) -> None:
    pin(server, server.content[:-1] + b"x")
    with pytest.raises(Exception, match="not the expected file"):
        sources.download("cub", loopback=True, pause=0.0)
    state = sources.task_of("cub").state()
    assert state.state == "failed"
    assert "SHA256" in state.message
    assert f"put the file at {tmp_path / 'data' / 'CUB_200_2011.tgz'}" in state.message
    assert data.available("cub", tmp_path / "data") is None


def test_a_detached_download_is_cancelled_while_the_server_is_silent_and_goes_on_later(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.hold_after = download.CHUNK + 1000
    task = sources.task_of("cub")
    command = (str(CHILD), server.url("CUB_200_2011.tgz"), str(tmp_path / "data"), *pin(server))
    monkeypatch.setenv("PYTHONPATH", str(Path(served.__file__).parents[2]))
    task.start(command, ProgressState())
    assert task.is_busy()
    part = tmp_path / "data" / "CUB_200_2011.tgz.part"
    until(lambda: part.is_file() and part.stat().st_size == download.CHUNK, task.log_tail)
    with pytest.raises(JobError, match="cub"):
        task.start(command, ProgressState())
    with pytest.raises(locks.Busy):
        sources.download("cub", loopback=True)
    task.cancel()
    until(lambda: task.status() == "cancelled", task.log_tail)
    assert part.stat().st_size == download.CHUNK
    server.go.set()
    task.start(command, ProgressState())
    until(lambda: task.status() == "done", task.log_tail)
    assert server.asked == [None, f"bytes={download.CHUNK}-"]
    assert len(data.load("cub", validation="none").labels) == 12


@pytest.mark.parametrize(
    ("name", "what"), [("cars", "are offline"), ("sop", "ftp://cs.stanford.edu"), ("inshop", "Drive")]
)
def test_what_is_not_fetched_says_where_the_files_go(name: str, what: str, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DML_DATA", str(tmp_path / "mine"))
    with pytest.raises(DataError, match=f"Put it into {tmp_path / 'mine'}") as told:
        sources.start(name)
    assert what in str(told.value)
    for layout in sources.SOURCES[name].layouts:
        assert layout in str(told.value)


def test_every_address_is_https_and_pinned_by_a_digest() -> None:
    for name, source in sources.SOURCES.items():
        assert bool(source.urls) != bool(source.by_hand), name
        assert source.terms
        assert source.layouts
        for url, file in zip(source.urls, source.files, strict=True):
            assert url.startswith("https://")
            assert file.digest
            assert file.name in data.describe(name).archives or any(
                file.name in beside for beside in data.describe(name).companions.values()
            )
    needing = {name for name in data.names() if data.describe(name).needs_files}
    assert all(sources.source_of(name) for name in needing)
    assert sources.source_of("digits") is None
    assert sources.task_of("collage").path == sources.task_of("cifar100").path


def test_a_disk_without_room_is_told_before_the_first_byte(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(DataError, match=r"1,150,585,339 bytes remain to be downloaded, but .* has 1,000 bytes free"):
        sources.start("cub", tmp_path)
