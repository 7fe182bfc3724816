"""Resumable downloads of files with known digests, from public hosts only.

A file gets its final name only after its digest is verified.
"""

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
MAX_BYTES = 64 << 30  # maximum size in bytes of a file without an expected size
ATTEMPTS = 5  # consecutive attempts without a new byte after which a download fails
AGENT = "dml-lab"
Progress = Callable[[int, int | None], object]  # called with (bytes so far, total bytes if known)


class DownloadError(RuntimeError):
    """Error for a failed download; the message gives the reason and the path for a manual download."""


@dataclass(frozen=True)
class Digest:
    """Expected size in bytes and digests (hexadecimal) of a file; `sha256_prefix` is the start of its SHA-256."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    sha256_prefix: str | None = None

    def __post_init__(self) -> None:
        if not (self.sha256 or self.md5 or self.sha256_prefix):
            raise ValueError("a download needs a SHA-256, the first digits of one, or an MD5")

    def refusal(self, path: Path) -> str | None:
        """Return why `path` is not the expected file, or None if it is."""
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
    """Download `url` to the file `into` unless it exists already, and return `into`.

    Partial downloads are kept in `into`.part. They are resumed, by up to four retries in a row without progress and by
    the next call. A file with a wrong digest is removed.

    Args:
        url: http or https address of a public host. Redirects are followed, but not from https to http.
        into: Path of the file.
        size: Expected size in bytes.
        sha256: Expected SHA-256; at least one digest is required.
        md5: Expected MD5.
        sha256_prefix: Expected start of the SHA-256.
        progress: Called with (bytes so far, total bytes or None).
        timeout: Seconds without a response after which an attempt fails.
        pause: Seconds before the first retry, doubled for each further consecutive one.
        loopback: Allow servers on this machine, for tests.

    Raises:
        DownloadError: The file cannot be downloaded or has a wrong digest.
        ValueError: No digest is given.
    """
    wanted = Digest(size, sha256, md5, sha256_prefix)
    try:
        _require_web(url, loopback)
        into.parent.mkdir(parents=True, exist_ok=True)
        with ProcessLock(into.with_name(f".{into.name}.lock"), wait=3600.0):
            # Another process may have downloaded the file while this one waited for the lock.
            if into.is_file() and wanted.refusal(into) is None:
                return into
            part = into.with_name(f"{into.name}.part")
            resumed = part.is_file() and part.stat().st_size > 0
            transfer = _Transfer(url, part, wanted, progress, timeout, pause, _opener(loopback))
            transfer.complete()
            refusal = wanted.refusal(part)
            # the bytes kept from an earlier call may belong to another file, so download again from the start
            if refusal and resumed:
                part.unlink()
                transfer.complete()
                refusal = wanted.refusal(part)
            if refusal:
                part.unlink()
                raise DownloadError(f"{url} is not the expected file: {refusal}; the download was removed")
            # Flush the file before it gets its final name, so that a power failure leaves no truncated file under that
            # name.
            with part.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(part, into)
            sync_directory(into.parent)
            return into
    except Busy:
        raise DownloadError(
            f"another process has been downloading {into.name} for an hour; wait for it, or stop it"
        ) from None
    except DownloadError as error:
        raise DownloadError(f"{error}. To install it by hand, put the file at {into}") from None
    except OSError as error:
        raise DownloadError(f"{into} cannot be written: {error}; free some space, or choose another folder") from None


def unreachable(url: str, timeout: float = 3.0, *, loopback: bool = False) -> str | None:
    """Return why `url` cannot be downloaded at present, or None if its server offers the file.

    Args:
        url: Address to test; the body of the response is not read.
        timeout: Limit of the whole request in seconds, name resolution included.
        loopback: Allow servers on this machine, for tests.
    """
    reasons: list[str | None] = []

    def ask() -> None:
        request = urllib.request.Request(url, headers={"User-Agent": AGENT})
        try:
            _require_web(url, loopback)
            _opener(loopback).open(request, timeout=timeout).close()
            reasons.append(None)
        except (DownloadError, urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            reasons.append(str(getattr(reason, "strerror", None) or reason) or type(error).__name__)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout)
    return reasons[0] if reasons else f"no response within {timeout:g} seconds"


@dataclass
class _Transfer:
    """Transfer of one URL into the partial file `part`, with retries."""

    url: str
    part: Path
    wanted: Digest
    progress: Progress | None
    timeout: float
    pause: float
    opener: urllib.request.OpenerDirector

    def complete(self) -> None:
        """Download until `part` is complete; on failure, raises DownloadError and keeps the bytes received."""
        failures, furthest = 0, self._length()
        while True:
            try:
                if self._piece(self._length()):
                    return
                reason = "the connection was cut"
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code not in (408, 416, 429):
                    raise DownloadError(f"{self.url} responded with {error.code} {error.reason}") from None
                if error.code == 416:  # 416, range not satisfiable: `part` is complete, or it belongs to another file
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
                kept = f", {self._length():,} bytes are kept, and the next attempt resumes from there"
                raise DownloadError(f"{self.url} could not be fetched: {reason}{kept if self._length() else ''}")
            time.sleep(self.pause * 2 ** max(0, failures - 1))

    def _length(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _piece(self, start: int) -> bool:
        """Request the bytes from offset `start` on; return True if the file is complete after that."""
        if self.wanted.size is not None and start == self.wanted.size:
            return True
        request = urllib.request.Request(self.url, headers={"User-Agent": AGENT, "Accept-Encoding": "identity"})
        if start:
            request.add_header("Range", f"bytes={start}-")
        with self.opener.open(request, timeout=self.timeout) as answer:
            if answer.status != 206:
                start = 0  # the server ignored the Range header and sends the whole file
            elif _first_byte(answer.headers) != start:
                raise DownloadError(f"{self.url} sent a different range of the file than requested")
            rest = answer.headers.get("Content-Length")
            total = start + int(rest) if rest and rest.isdigit() else None
            if self.wanted.size is not None and total not in (None, self.wanted.size):
                raise DownloadError(f"{self.url} has {total:,} bytes instead of {self.wanted.size:,}")
            with _writable(self.part, "ab" if start else "wb") as file:
                received = self._copy(answer, file, start, total)
        return total is None or received == total

    def _copy(self, answer: IO[bytes], file: IO[bytes], received: int, total: int | None) -> int:
        most = self.wanted.size or MAX_BYTES
        while chunk := answer.read(CHUNK):
            received += len(chunk)
            if received > most:
                raise DownloadError(f"{self.url} is larger than the limit of {most:,} bytes")
            try:
                file.write(chunk)
            except OSError as error:
                raise _Unwritable(error) from None
            if self.progress is not None:
                self.progress(received, total or self.wanted.size)
        return received


class _Unwritable(Exception):
    """Error while writing to the disk; such a download is not retried."""

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
    """Return a urllib opener that connects to public addresses only; redirects lead to http and https only.

    The caller checks the scheme of the first address with `_require_web`.
    """

    def connect(address: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
        host, port = address
        addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for name in addresses:
            _require_public(name, host, loopback)
        # Connect to the checked address, since another lookup of the name could return a different one.
        for name in addresses[:-1]:
            try:
                return socket.create_connection((name, port), timeout, source)
            except OSError:
                continue
        return socket.create_connection((addresses[-1], port), timeout, source)

    def guarded(connection: type[http.client.HTTPConnection], proxied: bool) -> Callable[..., Any]:
        def make(*arguments: Any, **options: Any) -> http.client.HTTPConnection:
            made = connection(*arguments, **options)
            if not proxied:  # a proxy is configured by the user and may have a private address
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

    class Redirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, request: Any, file: Any, code: Any, message: Any, headers: Any, url: str) -> Any:
            _require_web(url, loopback)
            if urlsplit(request.full_url).scheme == "https" and urlsplit(url).scheme != "https":
                raise DownloadError(f"{request.full_url} redirects from https to {url}, which is refused")
            return super().redirect_request(request, file, code, message, headers, url)

    return urllib.request.build_opener(Http, Https, Redirect)


def _require_web(url: str, loopback: bool) -> None:
    """Raise DownloadError if the scheme is not http or https, or if the host is a private IP address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DownloadError(f"{url} is not a web address; only http and https are supported")
    try:
        ipaddress.ip_address(parts.hostname)
    except ValueError:
        return
    _require_public(parts.hostname, parts.hostname, loopback)


def _require_public(address: str, host: str, loopback: bool) -> None:
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if (not ip.is_global or ip.is_multicast) and not (loopback and ip.is_loopback):
        raise DownloadError(f"{host} resolves to {address}, which is not a public address; no connection was made")
