"""Files fetched from an address, where any writer of the address can choose the names."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Mapping
from pathlib import Path

import fsspec
import pytest

from dmlcore.jobs.backends import address
from dmlcore.jobs.backends.address import Address
from dmlcore.storage.task import JobError

BUCKET = "bucket/dml/run.ab12"
PARTS = [
    *("..", ".", "", "...", "~", " ", "-", "a", "b.json", "run", ".queue", "outcome.json", "lock", "x\0y", "\n", "\\"),
    *("..\\..", "%2e%2e", "\udcff", "a" * 300, "é", "‥", "..;", "C:", "*", "order.json", "state.json"),
]


class Bucket:
    """File system with the given listing and contents."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def invalidate_cache(self) -> None:
        """Do nothing, as nothing is cached."""

    def exists(self, path: str) -> bool:
        return True

    def find(self, path: str, detail: bool) -> dict[str, dict[str, object]]:
        return {name: {"size": 1, "ETag": str(hash(held))} for name, held in self.files.items()}

    def open(self, path: str, mode: str) -> io.BytesIO:
        return io.BytesIO(self.files[path])


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch):
    """Return an address that contains these files."""

    def made(files: Mapping[str, bytes]) -> Address:
        monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (Bucket(files), BUCKET))
        return Address("s3://bucket")

    return made


def hostile_listing(chance: random.Random, roots: Path) -> dict[str, bytes]:
    """Return object store keys: most leave the folder, are absolute or malformed, or are both file and folder."""
    keys = [f"{BUCKET}/order.json"]
    for _ in range(chance.randint(1, 12)):
        climb = "../" * chance.choice([0, 0, 1, 2, 3, 4, 9])
        middle = "/".join(chance.choices(PARTS, k=chance.randint(1, 6)))
        begin = chance.choice([f"{BUCKET}/", f"{BUCKET}/", f"{BUCKET}/run/", f"{BUCKET}/{roots}/", f"{roots}/", BUCKET])
        keys.append(begin + chance.choice([climb + middle, f"{middle}/{climb}evil.txt"]))
    return dict.fromkeys(keys, b"evil")


def test_a_thousand_hostile_listings_write_nothing_outside_a_run(tmp_path: Path, at) -> None:
    chance = random.Random(29)
    roots = tmp_path.joinpath(*"abcdefghijklmnopqrst")  # deep enough that no path leaves the test's own folder
    climbing = arrived = 0
    for number in range(1000):
        files = hostile_listing(chance, roots)
        climbing += any(".." in key for key in files)
        root = roots / f"run.{number}"
        root.mkdir(parents=True)
        with contextlib.suppress(JobError):  # a name that is both a file and a folder
            at(files).fetch(root)
            arrived += (root / "order.json").read_bytes() == b"evil"
    assert climbing > 700
    assert arrived > 700
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    inside = {path for root in roots.glob("run.*") for path in root.rglob("*") if path.is_file()}
    assert len(inside) > 1000
    assert [path for path in written if path not in inside] == []


def test_names_that_are_left_there_are_named_once(tmp_path: Path, at, caplog: pytest.LogCaptureFixture) -> None:
    held = at({f"{BUCKET}/../../evil.txt": b"evil", f"{BUCKET}/run/metrics.jsonl": b"{}\n"})
    held.fetch(tmp_path)
    held.fetch(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "metrics.jsonl"]
    (warning,) = caplog.messages
    assert "'../../evil.txt'" in warning


def test_a_link_in_the_folder_is_not_followed_out_of_it(tmp_path: Path, at) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "run").symlink_to(tmp_path)
    with pytest.raises(JobError, match="run/evil: not a path inside"):
        at({f"{BUCKET}/run/evil": b"evil"}).fetch(tmp_path / "root")
    assert not (tmp_path / "evil").exists()


def test_files_and_bytes_have_a_ceiling_whatever_the_listing_says(tmp_path: Path, at, monkeypatch) -> None:
    monkeypatch.setattr(address, "MAX_FILES", 3)
    monkeypatch.setattr(address, "MAX_BYTES", 10)
    files = {f"{BUCKET}/{name}": b"1234" for name in "ab"}
    held = at(files)
    held.fetch(tmp_path)
    files[f"{BUCKET}/a"] = b"123456"  # replaces the previous one
    held.fetch(tmp_path)
    del files[f"{BUCKET}/b"]
    files[f"{BUCKET}/c"] = b"1"  # files of the previous one are still here
    with pytest.raises(JobError, match="a run may have at most 10 bytes"):
        held.fetch(tmp_path)
    with pytest.raises(JobError, match="a run may have at most 3 files"):
        at({f"{BUCKET}/{name}": b"" for name in "abcd"}).fetch(tmp_path)
