"""Paths that visitors enter: any on a machine of one's own, only the data folders if the app is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlcore.data import DataError
from dmlcore.storage.home import HOME
from pages.shared.server import server_paths
from pages.shared.server.access import Access


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DML_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return tmp_path / "data"


def test_a_private_app_reads_any_path(data: Path) -> None:
    assert not server_paths.is_shared(Access.from_environment({}))
    assert server_paths.require_allowed(str(data.parent / "secret.csv")) == data.parent / "secret.csv"
    assert server_paths.require_allowed("docs/embeddings/digits.npy") == HOME / "docs" / "embeddings" / "digits.npy"


@pytest.mark.parametrize(
    ("places", "environment", "shared"),
    [
        ([("127.0.0.1", 8501)], {}, False),
        ([("127.0.0.1", 8501), ("0.0.0.0", 8501)], {}, True),
        ([("127.0.0.1", 8501)], {"DML_TOKEN": "proxy"}, True),
        ([("127.0.0.1", 8501)], {"DML_TOKEN": "auto"}, False),
    ],
)
def test_an_app_beyond_loopback_or_behind_a_proxy_is_shared(
    monkeypatch: pytest.MonkeyPatch, places: list[tuple[str, int]], environment: dict[str, str], shared: bool
) -> None:
    monkeypatch.setattr(server_paths, "listening", lambda: places)
    assert server_paths.is_shared(Access.from_environment(environment)) is shared


def test_a_shared_app_reads_the_data_folders_and_the_example(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_TOKEN", "proxy")
    assert server_paths.require_allowed(f"{data}/e.npy") == data / "e.npy"
    assert server_paths.require_allowed("docs/embeddings/digits.npy").is_file()
    (data / "link.csv").symlink_to(data.parent / "secret.csv")
    for path in (data.parent / "secret.csv", data / ".." / "secret.csv", data / "link.csv", "README.md"):
        with pytest.raises(DataError, match="is outside the data folder"):
            server_paths.require_allowed(str(path))


@pytest.mark.parametrize("path", ["a\0b", "~nobody-here/e.npy"])
def test_malformed_paths_are_refused(path: str) -> None:
    with pytest.raises(DataError, match="cannot be used"):
        server_paths.require_allowed(path)
