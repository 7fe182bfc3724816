"""Access settings: the host names that the app answers to, its token, and the addresses on which it listens.

`DML_HOSTS` lists the host names under which people reach the app in addition to the loopback names, separated by
commas: `lab.example.org`, or `https://lab.example.org` if a proxy terminates TLS. `DML_TOKEN` is the token itself,
`auto` for a generated token, `off` for no token (loopback only), or `proxy` for no token because the port can be
reached only through an authenticating proxy. If `DML_TOKEN` is not set, a token is required if and only if the app
listens beyond loopback.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# minimum number of characters of a token set by the user; shorter ones can be guessed by brute force
SHORTEST_TOKEN = 16
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)  # characters that need no escaping in a URL or a cookie

OPEN_TO_ALL = (
    "DML Lab does not start: it would listen on {address} without a token, and anyone who reaches that address could "
    "start and delete runs. Unset DML_TOKEN to generate a token, or set DML_TOKEN=proxy if an authenticating proxy "
    "protects every way to the port (docs/reverse-proxy.md)."
)


class AccessError(ValueError):
    """Invalid access setting; the message is written for the person who starts the app."""


@dataclass(frozen=True)
class Access:
    """Access settings parsed from `DML_HOSTS` and `DML_TOKEN`.

    `hosts` maps a host name to the scheme of its URL, or to None if the scheme is that of the connection. `rule` is ""
    (a token is required if the app listens beyond loopback), "on", "off" or "proxy".
    """

    hosts: Mapping[str, str | None]
    token: str = field(repr=False)
    rule: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Access:
        """Return the access settings from the given environment variables. Raises AccessError if a value is invalid."""
        hosts: dict[str, str | None] = dict.fromkeys(LOOPBACK_NAMES)
        for entry in environment.get("DML_HOSTS", "").replace(",", " ").split():
            scheme, name = _named(entry)
            hosts[name] = scheme
        token = environment.get("DML_TOKEN")
        if token is None:
            return cls(hosts, secrets.token_urlsafe(24))
        if token in ("", "off", "proxy", "auto"):
            rule = {"": "off", "auto": "on"}.get(token, token)
            return cls(hosts, secrets.token_urlsafe(24), rule)
        if len(token) < SHORTEST_TOKEN or not _TOKEN.fullmatch(token):
            raise AccessError(
                f"DML_TOKEN needs at least {SHORTEST_TOKEN} characters (letters, digits, . _ ~ -), or one of "
                "auto, off and proxy."
            )
        return cls(hosts, token, "on")

    def names(self, host: str, own: str | None = None) -> str | None:
        """Return the host name in the Host header `host` if the app accepts requests to this name, else None.

        `own` is the local IP address of the connection. It is always allowed: an attacker can make a host name resolve
        to this machine, but not an IP address.
        """
        match = _HOST.fullmatch(host.lower())
        if match is None:
            return None
        name = match[1]
        return name if name in self.hosts or (own is not None and name == in_address(own)) else None

    def needs_token(self, beyond: bool) -> bool:
        """Return True if visitors must present the token. `beyond` is True if the app listens beyond loopback."""
        return self.rule == "on" or (self.rule == "" and beyond)

    def refuses(self, beyond: bool) -> bool:
        """Return True if the app must not start, because it would be reachable beyond loopback without a token."""
        return self.rule == "off" and beyond

    def accepts(self, token: str) -> bool:
        """Return True if `token` is the token of the app; compares in constant time."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def cookie(self) -> str:
        """Return the cookie value that proves knowledge of the token.

        The value is a digest, so that the cookie does not reveal a token that may also be used elsewhere.
        """
        return hmac.new(self.token.encode(), b"cookie of DML Lab", hashlib.sha256).hexdigest()

    def knows(self, cookie: str) -> bool:
        """Return True if `cookie` was issued for the current token; compares in constant time."""
        return hmac.compare_digest(cookie.encode(), self.cookie().encode())


def _named(entry: str) -> tuple[str | None, str]:
    scheme, _, rest = entry.lower().rpartition("://")
    name = rest.rstrip("/")
    match = _HOST.fullmatch(name)
    if scheme not in ("", "http", "https") or match is None or match[2]:
        raise AccessError(
            f"DML_HOSTS: {entry!r} is not a valid host name. Use names such as lab.example.org or "
            "https://lab.example.org, without port and path."
        )
    return scheme or None, name


def in_address(host: str) -> str:
    """Return a host as written in a URL: IPv6 in brackets, IPv4-mapped IPv6 as IPv4, host names unchanged."""
    with contextlib.suppress(ValueError):
        address = ip_address(host)
        if isinstance(address, IPv6Address):
            return str(address.ipv4_mapped or f"[{address}]")
    return host


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach `host`; True also for the path of a Unix socket."""
    if "/" in host or host == "localhost":
        return True
    try:
        address = ip_address(in_address(host).strip("[]"))
    except ValueError:
        return False
    return address.is_loopback


def listening() -> list[tuple[str, int]]:
    """Return the (address, port) pairs on which this process listens, including sockets opened by other libraries."""
    addresses = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as opened:
                    family, place = opened.family, opened.getsockname()
                    if family in (socket.AF_INET, socket.AF_INET6) and _accepts(opened):
                        addresses.append((str(place[0]), int(place[1])))
    return sorted(set(addresses))


def _accepts(opened: socket.socket) -> bool:
    return bool(opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
