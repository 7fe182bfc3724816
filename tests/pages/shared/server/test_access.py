"""Access: names of hosts, tokens, and detection of a server that other machines can reach."""

from __future__ import annotations

import socket

import pytest

from pages.shared.server.access import Access, AccessError, in_address, is_loopback, listening
from tests.members import in_one_case


def access(**environment: str) -> Access:
    return Access.from_environment(environment)


@in_one_case(host=["localhost", "localhost:8501", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:8501"])
def test_loopback_names_are_allowed_by_default(host):
    assert access().names(host)


@in_one_case(
    host=[
        *("", "evil.example", "evil.example:8501", "localhost.evil.example", "localhost.", "127.0.0.1.", "127.0.0.2"),
        *("a@localhost", "localhost:80@evil.example", "localhost/", "localhost:x", "localhost:", "localhost#", "::1"),
        *("[::1", "0.0.0.0", "localhost, evil.example", "local\u017fost", "127.1", "2130706433", "lab.example.org"),
    ]
)
def test_other_names_are_not(host):
    assert access().names(host) is None


def test_hosts_are_configured_with_the_scheme_of_their_proxy():
    found = access(DML_HOSTS="https://Lab.example.org, box.local")
    assert found.names("lab.example.org") == "lab.example.org"
    assert found.hosts["lab.example.org"] == "https"
    assert found.names("box.local:8501") == "box.local"
    assert found.hosts["box.local"] is None
    assert found.names("sub.lab.example.org") is None


def test_the_address_of_the_connection_is_a_name_of_the_app():
    assert access().names("10.1.2.3:8501", "10.1.2.3")
    assert access().names("[fd00::5]:8501", "fd00::5")
    assert access().names("10.1.2.3", "::ffff:10.1.2.3")
    assert access().names("10.1.2.4:8501", "10.1.2.3") is None


@in_one_case(entry=["*", "lab.example:8501", "ftp://lab.example", "https://lab.example/x", "a b@c"])
def test_a_host_that_cannot_be_meant_is_refused_by_name(entry):
    with pytest.raises(AccessError, match=r"DML_HOSTS: .* is not a valid host name"):
        access(DML_HOSTS=entry)


@in_one_case(token=["short", "a" * 15, "with space and more", "semi;colon;semi;colon", "éééééééééééééééé"])
def test_a_token_that_is_short_or_cannot_be_written_is_refused(token):
    with pytest.raises(AccessError, match="DML_TOKEN needs at least 16"):
        access(DML_TOKEN=token)


@pytest.mark.parametrize(
    ("said", "here", "beyond", "refused"),
    [
        (None, False, True, False),
        ("auto", True, True, False),
        ("a-token-of-sixteen", True, True, False),
        ("", False, False, True),
        ("off", False, False, True),
        ("proxy", False, False, False),
    ],
)
def test_where_a_token_is_asked_for_and_where_none_is_refused(said, here, beyond, refused):
    found = access(**({} if said is None else {"DML_TOKEN": said}))
    assert found.needs_token(beyond=False) is here
    assert found.needs_token(beyond=True) is beyond
    assert found.refuses(beyond=True) is refused
    assert not found.refuses(beyond=False)


def test_tokens_made_at_the_start_are_long_and_differ():
    tokens = {access().token for _ in range(8)} | {access(DML_TOKEN="auto").token}
    assert len(tokens) == 9
    assert min(map(len, tokens)) >= 32


def test_the_token_and_its_cookie_are_known_and_nothing_else():
    found = access(DML_TOKEN="a-token-of-sixteen")
    assert found.accepts("a-token-of-sixteen")
    assert found.knows(found.cookie())
    for other in ("", "a-token-of-sixtee", "a-token-of-sixteen ", "é", access(DML_TOKEN="b-token-of-sixteen").cookie()):
        assert not found.accepts(other)
        assert not found.knows(other)
    assert "a-token-of-sixteen" not in found.cookie()
    assert not found.knows(found.token)
    assert "a-token-of-sixteen" not in repr(found)


@in_one_case(host=["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1", "localhost", "/run/dml.sock"])
def test_loopback_is_known(host):
    assert is_loopback(host)


@in_one_case(host=["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "box.local", ""])
def test_all_else_is_beyond(host):
    assert not is_loopback(host)


def test_an_address_is_written_as_a_browser_does():
    assert [in_address(h) for h in ("::1", "::ffff:10.0.0.1", "10.0.0.1", "box")] == [
        "[::1]",
        "10.0.0.1",
        "10.0.0.1",
        "box",
    ]


def test_the_sockets_that_listen_are_found_and_no_others():
    before = set(listening())
    with socket.create_server(("127.0.0.1", 0)) as opened, socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))
        with socket.create_connection(opened.getsockname()):
            assert set(listening()) - before == {opened.getsockname()}
    assert set(listening()) == before


@pytest.mark.parametrize("compare", ["accepts", "knows"])
def test_tokens_and_cookies_are_compared_in_constant_time(compare, monkeypatch):
    found, compared = access(DML_TOKEN="a-token-of-sixteen"), []
    monkeypatch.setattr("hmac.compare_digest", lambda *sides: compared.append(sides) or False)
    assert getattr(found, compare)("a-token-of-sixteen") is False
    assert compared
