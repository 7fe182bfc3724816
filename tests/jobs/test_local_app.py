"""The app on this machine: the choice of one that serves the store, and the messages if none can be started."""

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator

import pytest

from dmlcore.jobs import local_app, servers
from dmlcore.jobs.local_app import AppError, LocalApp

ANSWERS = {"ready": (200, b"ready"), "starting": (503, b"starting: x"), "other": (409, b"another run store")}


@contextlib.contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the port of a server that gives these answers in turn, the last one forever, and the requested paths."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answers[min(len(asked), len(answers) - 1)]
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, asked
        server.shutdown()


def test_the_first_app_that_serves_the_store_is_found(tmp_path):
    page = (200, b"<html>another program</html>")
    with (
        answering(page) as (first, _),
        answering(ANSWERS["other"]) as (second, _),
        answering(ANSWERS["starting"], ANSWERS["ready"]) as (third, asked),
    ):
        assert local_app.find(tmp_path, (first, second, third)) == LocalApp(third)
        assert asked[0] == f"/api/ready?store={local_app.store_id(tmp_path)}"
        assert local_app.find(tmp_path, (first, second)) is None
        assert local_app.ensure(tmp_path, (third,)).url == f"http://127.0.0.1:{third}"


def test_a_proxy_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with answering(ANSWERS["ready"]) as (port, _):
        assert local_app.find(tmp_path, (port,)) == LocalApp(port)


def test_a_server_of_another_protocol_is_no_app(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond() -> None:
            with contextlib.closing(server.accept()[0]) as connection:
                connection.recv(1000)
                connection.sendall(b"220 mail\r\n")

        threading.Thread(target=respond, daemon=True).start()
        assert local_app.find(tmp_path, (server.getsockname()[1],)) is None


def test_two_paths_of_one_store_have_one_id(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert local_app.store_id(tmp_path / "link") == local_app.store_id(tmp_path)
    assert local_app.store_id(tmp_path) != local_app.store_id(tmp_path / "runs")


def test_without_the_repository_the_command_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "APP", tmp_path / "app.py")
    with pytest.raises(AppError, match=r"no pages.*dml serve --port 1 --runs"):
        local_app.ensure(tmp_path, (1,))


def test_if_all_ports_are_in_use_the_command_names_another(tmp_path):
    with answering(ANSWERS["other"]) as (port, _), pytest.raises(AppError, match=r"in use.*--port 8600"):
        local_app.ensure(tmp_path, (port,))


def test_an_app_that_fails_shows_its_last_words(tmp_path, monkeypatch):
    failing = ["python", "-c", "raise SystemExit('no memory')"]
    monkeypatch.setattr(servers, "server_command", lambda address, port: failing)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(AppError, match=r"(?s)ended with status 1.*no memory"):
        local_app.ensure(tmp_path, (port,))
