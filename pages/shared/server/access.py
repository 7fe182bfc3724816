"""Who may come in: the names the app answers to, its token, and whether it listens beyond this machine.

`DML_HOSTS` names the hosts under which people reach the app beside those of loopback, separated by commas:
`lab.example.org`, or `https://lab.example.org` where a proxy ends TLS. `DML_TOKEN` is the token itself, `auto` for one
made at the start, `off` for none on loopback, `proxy` for none because an authenticating proxy stands before every way
to the port. Without it there is a token exactly where the app listens beyond loopback.
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
SHORTEST_TOKEN = 16  # characters that a person chose: fewer can be tried out
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)  # what an address and a cookie carry as it is

OPEN_TO_ALL = (
    "DML Lab does not start: it would listen on {address} and let whoever reaches it start training runs and delete "
    "runs. "
    "Leave DML_TOKEN away to get an address with a token, or set DML_TOKEN=proxy if a proxy that asks who comes stands "
    "before every way to it (docs/reverse-proxy.md)."
)


class AccessError(ValueError):
    """A setting that cannot be meant, in a sentence for who starts the app."""


@dataclass(frozen=True)
class Access:
    """What `DML_HOSTS` and `DML_TOKEN` say.

    `hosts` maps a name to the scheme of its address, None for that of the connection; `rule` is "" (a token where the
    app listens beyond loopback), "on", "off" or "proxy".
    """

    hosts: Mapping[str, str | None]
    token: str = field(repr=False)
    rule: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Access:
        """The settings; AccessError for those that cannot be meant."""
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
                f"DML_TOKEN needs at least {SHORTEST_TOKEN} letters, digits and . _ ~ - (or is auto, off or proxy)."
            )
        return cls(hosts, token, "on")

    def names(self, host: str, own: str | None = None) -> str | None:
        """The name in a Host header if it is allowed, else None; `own` is the address that the connection came in on.

        That address needs no list: a stranger can make a name point here, not a number.
        """
        match = _HOST.fullmatch(host.lower())
        if match is None:
            return None
        name = match[1]
        return name if name in self.hosts or (own is not None and name == in_address(own)) else None

    def needs_token(self, beyond: bool) -> bool:
        """Whether a visitor must show the token, where the app listens beyond loopback or not."""
        return self.rule == "on" or (self.rule == "" and beyond)

    def refuses(self, beyond: bool) -> bool:
        """Whether the app would be open to everybody beyond this machine."""
        return self.rule == "off" and beyond

    def accepts(self, token: str) -> bool:
        """Whether this is the token, in a time that tells nothing."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def cookie(self) -> str:
        """What the cookie of a visitor with the token holds: not the token, which may be in use elsewhere."""
        return hmac.new(self.token.encode(), b"cookie of DML Lab", hashlib.sha256).hexdigest()

    def knows(self, cookie: str) -> bool:
        """Whether this cookie was given for the token, in a time that tells nothing."""
        return hmac.compare_digest(cookie.encode(), self.cookie().encode())


def _named(entry: str) -> tuple[str | None, str]:
    scheme, _, rest = entry.lower().rpartition("://")
    name = rest.rstrip("/")
    match = _HOST.fullmatch(name)
    if scheme not in ("", "http", "https") or match is None or match[2]:
        raise AccessError(
            "DML_HOSTS names hosts such as lab.example.org or https://lab.example.org, without port and path; "
            f"not {entry!r}."
        )
    return scheme or None, name


def in_address(host: str) -> str:
    """A host as an address writes it: IPv6 in brackets, IPv4 also where a socket of both kinds shows it as IPv6."""
    with contextlib.suppress(ValueError):
        address = ip_address(host)
        if isinstance(address, IPv6Address):
            return str(address.ipv4_mapped or f"[{address}]")
    return host


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; so it is with a Unix socket, whose path is no address."""
    if "/" in host or host == "localhost":
        return True
    try:
        address = ip_address(in_address(host).strip("[]"))
    except ValueError:
        return False
    return address.is_loopback


def listening() -> list[tuple[str, int]]:
    """Addresses and ports on which this process listens, whoever opened them."""
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
