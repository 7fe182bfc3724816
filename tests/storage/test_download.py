"""Row 26 of the reliability table: downloads from a server on this machine."""

import hashlib
import io
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from dmlcore.storage import download
from dmlcore.storage.download import DownloadError, fetch, unreachable
from tests.storage.ranged_server import Server, serving

CONTENT = bytes(range(256)) * 4000  # 1,024,000 bytes
SHA256, MD5 = hashlib.sha256(CONTENT).hexdigest(), hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(CONTENT, monkeypatch) as made:
        yield made


def here(server: Server, into: Path, **wanted: object) -> Path:
    return fetch(server.url("weights.pth"), into, loopback=True, pause=0.0, **({"sha256": SHA256} | wanted))  # type: ignore[arg-type]


def kept(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


@pytest.mark.parametrize(
    "wanted", [{"sha256": SHA256}, {"sha256": None, "md5": MD5}, {"sha256": None, "sha256_prefix": SHA256[:8]}]
)
def test_a_file_arrives_whole_under_its_name(server: Server, tmp_path: Path, wanted: dict[str, str | None]) -> None:
    told = []
    path = here(server, tmp_path / "new" / "w.pth", progress=lambda *both: told.append(both), **wanted)
    assert path.read_bytes() == CONTENT
    assert kept(path.parent) == {"w.pth"}
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(CONTENT)
    here(server, tmp_path / "w.pth")
    assert server.asked == []


def test_a_cut_connection_is_resumed_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cut_after = [300_000, 200_000]
    assert here(server, tmp_path / "w.pth", size=len(CONTENT)).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-", "bytes=500000-"]


def test_a_later_call_goes_on_with_what_was_kept(server: Server, tmp_path: Path) -> None:
    server.cut_after = [300_000, *[0] * download.ATTEMPTS]
    with pytest.raises(DownloadError, match=r"cut, 300,000 bytes are kept, .* by hand, put the file at .*w\.pth"):
        here(server, tmp_path / "w.pth")
    assert kept(tmp_path) == {"w.pth.part"}
    server.asked.clear()
    assert here(server, tmp_path / "w.pth").read_bytes() == CONTENT
    assert server.asked == ["bytes=300000-"]


def test_a_server_without_ranges_starts_over(server: Server, tmp_path: Path) -> None:
    server.ranges, server.cut_after = False, [300_000]
    assert here(server, tmp_path / "w.pth").read_bytes() == CONTENT


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.status = [503, 429]
    assert here(server, tmp_path / "w.pth").read_bytes() == CONTENT


def test_what_does_not_exist_is_not_asked_for_twice(server: Server, tmp_path: Path) -> None:
    server.status = [404]
    with pytest.raises(DownloadError, match="responded with 404"):
        here(server, tmp_path / "w.pth")
    assert len(server.asked) == 1


@pytest.mark.parametrize("wanted", [{"sha256": "0" * 64}, {"sha256": None, "md5": "0" * 32}, {"size": 10}])
def test_a_wrong_file_is_not_kept(server: Server, tmp_path: Path, wanted: dict[str, object]) -> None:
    with pytest.raises(DownloadError, match="instead of"):
        here(server, tmp_path / "w.pth", **wanted)
    assert kept(tmp_path) == set()


def test_a_wrong_file_does_not_replace_the_old_one(server: Server, tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(b"old")
    with pytest.raises(DownloadError):
        here(server, tmp_path / "w.pth", sha256="0" * 64)
    assert (tmp_path / "w.pth").read_bytes() == b"old"


def test_a_part_of_another_file_is_given_up(server: Server, tmp_path: Path) -> None:
    for stale in (b"x" * 1000, b"x" * (len(CONTENT) + 1)):
        (tmp_path / "w.pth.part").write_bytes(stale)
        assert here(server, tmp_path / "w.pth").read_bytes() == CONTENT
        (tmp_path / "w.pth").unlink()


def test_a_part_that_is_complete_needs_no_more(server: Server, tmp_path: Path) -> None:
    (tmp_path / "w.pth.part").write_bytes(CONTENT)
    assert here(server, tmp_path / "w.pth").read_bytes() == CONTENT


def test_a_body_without_a_length_may_not_go_on_for_ever(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", 1000)
    with pytest.raises(DownloadError, match="larger than the limit of 1,000 bytes"):
        here(server, tmp_path / "w.pth")


def test_a_redirect_on_this_level_is_followed(server: Server, tmp_path: Path) -> None:
    server.redirect = "/target"
    assert here(server, tmp_path / "w.pth").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "target",
    [
        "http://10.0.0.1/x",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00::1]/x",
        "http://[::ffff:10.1.1.1]/x",
    ],
)
def test_a_redirect_inward_is_refused(server: Server, tmp_path: Path, target: str) -> None:
    server.redirect = target
    with pytest.raises(DownloadError, match="not a public address"):
        here(server, tmp_path / "w.pth")
    assert kept(tmp_path) == set()


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/x", "data:text/plain,x"])
def test_a_redirect_to_another_scheme_is_refused(server: Server, tmp_path: Path, target: str) -> None:
    server.redirect = target
    with pytest.raises(DownloadError, match=r"not a web address|not allowed"):
        here(server, tmp_path / "w.pth")
    assert kept(tmp_path) == set()


def test_a_redirect_from_https_to_http_is_refused() -> None:
    (handler,) = (h for h in download._opener(False).handlers if isinstance(h, urllib.request.HTTPRedirectHandler))
    request = urllib.request.Request("https://example.org/x")
    with pytest.raises(DownloadError, match="from https to"):
        handler.redirect_request(request, io.BytesIO(), 302, "", Message(), "http://example.org/x")
    assert handler.redirect_request(request, io.BytesIO(), 302, "", Message(), "https://example.net/x") is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_inside_too(server: Server, tmp_path: Path, host: str) -> None:
    url = server.url("weights.pth").replace("127.0.0.1", host)
    with pytest.raises(DownloadError, match="not a public address"):
        fetch(url, tmp_path / "w.pth", sha256=SHA256)
    assert server.asked == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x", "nonsense"])
def test_only_the_web_is_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="not a web address"):
        fetch(url, tmp_path / "w.pth", sha256=SHA256)


def test_offline_says_where_to_put_the_file(tmp_path: Path, server: Server) -> None:
    port = server.server_address[1]
    server.server_close()  # the server no longer listens
    with pytest.raises(DownloadError, match=r"could not be fetched: .*To install it by hand, put the file at .*w\.pth"):
        fetch(f"http://127.0.0.1:{port}/x", tmp_path / "w.pth", sha256=SHA256, loopback=True, pause=0.0, timeout=2.0)


def test_a_server_is_asked_whether_it_has_a_file(server: Server) -> None:
    assert unreachable(server.url("x"), loopback=True) is None
    assert "not a public address" in (unreachable(server.url("x")) or "")
    server.status.append(404)
    assert unreachable(server.url("x"), loopback=True) == "Not Found"
    server.server_close()
    assert unreachable(server.url("x"), loopback=True), "the server must not respond"


def test_a_digest_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        fetch("https://example.org/x", tmp_path / "w.pth", size=3)
