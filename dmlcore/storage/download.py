"""Downloads of pinned files: resumed after a cut, verified by digest before they get their name, never from inside."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from dmlcore.storage.atomic_files import sync_directory
from dmlcore.storage.locks import Busy, ProcessLock

CHUNK = 1 << 20
MOST_BYTES = 64 << 30  # of a file whose size is not pinned
ATTEMPTS = 5  # without a new byte, one after another
AGENT = "dml-lab"
Progress = Callable[[int, int | None], object]  # bytes so far, bytes in all if known


class DownloadError(RuntimeError):
    """A file that could not be fetched; the message says why and where to put it by hand."""


@dataclass(frozen=True)
class Digest:
    """What a file must be: its size in bytes, its digests in hexadecimal, or how its SHA-256 begins."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    sha256_prefix: str | None = None

    def __post_init__(self) -> None:
        if not (self.sha256 or self.md5 or self.sha256_prefix):
            raise ValueError("a download needs a SHA-256, how one begins, or an MD5")

    def refusal(self, path: Path) -> str | None:
        """Why the file is not the one meant, or None if it is."""
        if self.size is not None and path.stat().st_size != self.size:
            return f"it has {path.stat().st_size:,} bytes instead of {self.size:,}"
        for name, wanted in (("sha256", self.sha256 or self.sha256_prefix), ("md5", self.md5)):
            if wanted:
                with path.open("rb") as file:
                    actual = hashlib.file_digest(file, name).hexdigest()
                if not actual.startswith(wanted.lower()):
                    return f"its {name.upper()} is {actual} instead of {wanted}"
        return None


def fetch(
    url: str,
    into: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    md5: str | None = None,
    sha256_prefix: str | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    pause: float = 1.0,
    loopback: bool = False,
) -> Path:
    """Download `url` to the file `into` unless it is there, and return it; at least one digest is needed.

    What arrived before a cut stays in `into`.part and is resumed, here up to four times in a row and by the next call.
    A file that fails its digest is removed. progress is told (bytes so far, bytes in all or None). timeout: seconds
    without an answer. pause: seconds before the first retry, doubled each time. Only http and https to public hosts,
    redirects included, https never to http; loopback=True admits this machine, for tests. Raises DownloadError, and
    ValueError without a digest.
    """
    wanted = Digest(size, sha256, md5, sha256_prefix)
    try:
        _require_web(url, loopback)
        into.parent.mkdir(parents=True, exist_ok=True)
        with ProcessLock(into.with_name(f".{into.name}.lock"), wait=3600.0):
            # Another process may have finished it while this one waited for the lock.
            if into.is_file() and wanted.refusal(into) is None:
                return into
            part = into.with_name(f"{into.name}.part")
            resumed = part.is_file() and part.stat().st_size > 0
            transfer = _Transfer(url, part, wanted, progress, timeout, pause, _opener(loopback))
            transfer.complete()
            refusal = wanted.refusal(part)
            if refusal and resumed:  # what was resumed may have been another file
                part.unlink()
                transfer.complete()
                refusal = wanted.refusal(part)
            if refusal:
                part.unlink()
                raise DownloadError(f"{url} is not the file that is known: {refusal}; nothing was kept")
            # On the disk before it has its name, so that a cut of power leaves no half file under it.
            with part.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(part, into)
            sync_directory(into.parent)
            return into
    except Busy:
        raise DownloadError(f"another process has been downloading {into.name} for an hour; wait or end it") from None
    except DownloadError as error:
        raise DownloadError(f"{error}. By hand: put the file at {into}") from None
    except OSError as error:
        raise DownloadError(f"{into} cannot be written: {error}; free some space, or choose another folder") from None


def unreachable(url: str, timeout: float = 3.0, *, loopback: bool = False) -> str | None:
    """Return why `url` cannot be downloaded at present, or None if its server offers the file.

    Args:
        url: The address; nothing is read but the head of the answer.
        timeout: Seconds that the whole request may take, name resolution included.
        loopback: Admit servers on this machine, for tests.
    """
    reasons: list[str | None] = []

    def ask() -> None:
        request = urllib.request.Request(url, headers={"User-Agent": AGENT})
        try:
            _opener(loopback).open(request, timeout=timeout).close()
            reasons.append(None)
        except (DownloadError, urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            reasons.append(str(getattr(reason, "strerror", None) or reason) or type(error).__name__)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout)
    return reasons[0] if reasons else f"no answer within {timeout:g} seconds"


@dataclass
class _Transfer:
    """One file on its way into `part`."""

    url: str
    part: Path
    wanted: Digest
    progress: Progress | None
    timeout: float
    pause: float
    opener: urllib.request.OpenerDirector

    def complete(self) -> None:
        """Bring `part` to its full length; raises DownloadError and leaves what has arrived."""
        failures, furthest = 0, self._length()
        while True:
            try:
                if self._piece(self._length()):
                    return
                reason = "the connection was cut"
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code not in (408, 416, 429):
                    raise DownloadError(f"{self.url} answers {error.code} {error.reason}") from None
                if error.code == 416:  # the part is as long as the file, or longer and of another one
                    if self.wanted.refusal(self.part) is None:
                        return
                    self.part.unlink()
                reason = f"{error.code} {error.reason}"
            except _Unwritable as error:
                raise error.cause from None
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                cause = getattr(error, "reason", error)
                reason = str(cause) or type(cause).__name__
            failures = 0 if self._length() > furthest else failures + 1
            furthest = max(furthest, self._length())
            if failures >= ATTEMPTS:
                kept = f", {self._length():,} bytes are kept and the next try goes on from there"
                raise DownloadError(f"{self.url} could not be fetched: {reason}{kept if self._length() else ''}")
            time.sleep(self.pause * 2 ** max(0, failures - 1))

    def _length(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _piece(self, start: int) -> bool:
        """Ask for what is missing from `start` on; True once everything has arrived."""
        if self.wanted.size is not None and start == self.wanted.size:
            return True
        request = urllib.request.Request(self.url, headers={"User-Agent": AGENT, "Accept-Encoding": "identity"})
        if start:
            request.add_header("Range", f"bytes={start}-")
        with self.opener.open(request, timeout=self.timeout) as answer:
            if answer.status != 206:
                start = 0  # all of it, whatever was asked for
            elif _first_byte(answer.headers) != start:
                raise DownloadError(f"{self.url} answers with another part than it was asked for")
            rest = answer.headers.get("Content-Length")
            total = start + int(rest) if rest and rest.isdigit() else None
            if self.wanted.size is not None and total not in (None, self.wanted.size):
                raise DownloadError(f"{self.url} has {total:,} bytes instead of {self.wanted.size:,}")
            with _writable(self.part, "ab" if start else "wb") as file:
                received = self._copy(answer, file, start, total)
        return total is None or received == total

    def _copy(self, answer: IO[bytes], file: IO[bytes], received: int, total: int | None) -> int:
        most = self.wanted.size or MOST_BYTES
        while chunk := answer.read(CHUNK):
            received += len(chunk)
            if received > most:
                raise DownloadError(f"{self.url} is longer than the {most:,} bytes it may have")
            try:
                file.write(chunk)
            except OSError as error:
                raise _Unwritable(error) from None
            if self.progress is not None:
                self.progress(received, total or self.wanted.size)
        return received


class _Unwritable(Exception):
    """The disk refused, which no retry mends."""

    def __init__(self, cause: OSError) -> None:
        self.cause = cause


def _writable(path: Path, mode: str) -> IO[Any]:
    try:
        return path.open(mode)
    except OSError as error:
        raise _Unwritable(error) from None


def _first_byte(headers: Message) -> int | None:
    unit, _, span = (headers.get("Content-Range") or "").partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdigit() else None


def _opener(loopback: bool) -> urllib.request.OpenerDirector:
    """Opens http and https only, to public addresses only, wherever a name or a redirect leads."""

    def connect(address: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
        host, port = address
        addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for name in addresses:
            _require_public(name, host, loopback)
        # The address that was checked, not the name once more: it could have changed.
        for name in addresses[:-1]:
            try:
                return socket.create_connection((name, port), timeout, source)
            except OSError:
                continue
        return socket.create_connection((addresses[-1], port), timeout, source)

    def guarded(connection: type[http.client.HTTPConnection], proxied: bool) -> Callable[..., Any]:
        def make(*arguments: Any, **options: Any) -> http.client.HTTPConnection:
            made = connection(*arguments, **options)
            if not proxied:  # a proxy is what the user set up, and may be inside
                made._create_connection = connect  # type: ignore[attr-defined]
            return made

        return make

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(guarded(http.client.HTTPConnection, request.has_proxy()), request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            tunnel = request.has_proxy() or bool(getattr(request, "_tunnel_host", None))
            return self.do_open(guarded(http.client.HTTPSConnection, tunnel), request)

    class Check(urllib.request.BaseHandler):
        handler_order = 0  # before the proxies

        def default_open(self, request: urllib.request.Request) -> None:
            _require_web(request.full_url, loopback)

    class Redirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, request: Any, file: Any, code: Any, message: Any, headers: Any, url: str) -> Any:
            _require_web(url, loopback)
            if urlsplit(request.full_url).scheme == "https" and urlsplit(url).scheme != "https":
                raise DownloadError(f"{request.full_url} redirects from https to {url}, which is refused")
            return super().redirect_request(request, file, code, message, headers, url)

    opener = urllib.request.OpenerDirector()
    for handler in (
        Check(),
        urllib.request.ProxyHandler(),
        Http(),
        Https(),
        Redirect(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _require_web(url: str, loopback: bool) -> None:
    """Refuse other schemes, and addresses of the inside written as numbers."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DownloadError(f"{url} is no address of the web; only http and https are")
    try:
        ipaddress.ip_address(parts.hostname)
    except ValueError:
        return
    _require_public(parts.hostname, parts.hostname, loopback)


def _require_public(address: str, host: str, loopback: bool) -> None:
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if (not ip.is_global or ip.is_multicast) and not (loopback and ip.is_loopback):
        raise DownloadError(f"{host} is {address}, which is no public address; it is not asked")
