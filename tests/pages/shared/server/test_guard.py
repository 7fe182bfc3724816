"""The guard in front of an app that answers everything: accepted requests, refused requests and response headers."""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from socket import create_server

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from pages.shared.server import host
from pages.shared.server.access import Access
from pages.shared.server.guard import MOST_BYTES, Guard
from tests.members import in_one_case

TOKEN = "a-token-of-sixteen"
HEADERS = {
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",
}


async def anything(scope, receive, send):
    """Respond with the requested path and query, with an error, or by echoing each message."""
    if scope["type"] == "http":
        if scope["path"] == "/fails":
            raise RuntimeError("a defect")
        text = f"{scope['path']}?{scope['query_string'].decode()}"
        await PlainTextResponse(text, headers={"Content-Security-Policy": "sandbox"})(scope, receive, send)
        return
    await receive()
    if scope["path"] == "/closes":
        await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": str(len(message.get("text") or message.get("bytes")))})


def client(url: str = "http://localhost:8501", **environment: str) -> TestClient:
    guard = Guard(anything, Access.from_environment(environment))
    return TestClient(guard, base_url=url, follow_redirects=False, raise_server_exceptions=False)


def socket(visitor: TestClient, path: str, **headers: str):
    """Open a WebSocket with the app's host name, because Starlette's client would send "testserver"."""
    return visitor.websocket_connect(f"ws://localhost:8501{path}", headers=headers)


@in_one_case(
    path=["/", "/fails", "/_stcore/metrics", "/?token=x"],
    headers=[{}, {"host": "evil.example"}, {"origin": "http://evil.example"}],
)
def test_every_answer_has_the_headers(path, headers):
    for visitor in (client(), client(DML_TOKEN=TOKEN), client("http://10.0.0.1:8501", DML_TOKEN="off")):
        answer = visitor.get(path, headers=headers)
        assert HEADERS.items() <= dict(answer.headers).items()
        policies = answer.headers.get_list("content-security-policy")
        assert "frame-ancestors 'self'" in policies[-1]
        assert "'unsafe-inline'" not in policies[-1].split("script-src")[1].split(";")[0]
        assert policies[:-1] == (["sandbox"] if answer.text.startswith("/?") else [])


@pytest.mark.parametrize(
    ("url", "token", "private"),
    [
        ("http://localhost:8501", TOKEN, True),
        ("http://localhost:8501", "auto", True),
        ("http://10.0.0.1:8501", None, True),
        ("http://localhost:8501", None, False),
        ("http://10.0.0.1:8501", "proxy", False),
    ],
)
def test_where_a_token_is_asked_for_other_accounts_read_no_file(url, token, private, tmp_path):
    os.umask(0o022)
    environment = {"DML_TOKEN": token} if token else {}
    client(url, **environment).get("/")
    (tmp_path / "file").touch()
    assert oct((tmp_path / "file").stat().st_mode & 0o777) == oct(0o600 if private else 0o644)
    os.umask(0o022)
    start(**environment)
    # a server that other machines can reach may open its socket later
    assert os.umask(0o022) == (0o077 if private and token else 0o022)


def test_a_handshake_that_the_app_refuses_has_the_headers_too():
    for path, headers in (("/closes", {}), ("/api/field", {"origin": "http://evil.example"})):
        with pytest.raises(WebSocketDenialResponse) as refusal, socket(client(), path, **headers):
            pass
        assert refusal.value.status_code == 403
        assert HEADERS.items() <= dict(refusal.value.headers).items()


def test_own_pages_pass():
    for headers in (
        {},
        {"origin": "http://localhost:8501"},
        {"sec-fetch-site": "same-origin", "sec-fetch-dest": "iframe"},
    ):
        assert client().get("/runs?run=a", headers=headers).text == "/runs?run=a"
    with socket(client(), "/api/field", origin="http://localhost:8501") as opened:
        opened.send_text("hello")
        assert opened.receive_text() == "5"


def test_a_link_elsewhere_may_be_followed_and_nothing_else():
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client().get("/", headers=link).status_code == 200
    for changed in ({"sec-fetch-dest": "iframe"}, {"sec-fetch-dest": "embed"}, {"sec-fetch-mode": "no-cors"}):
        assert client().get("/", headers=link | changed).status_code == 403
        assert client().get("/", headers=link | {"sec-fetch-site": "same-site"} | changed).status_code == 403
    assert client().post("/", headers=link).status_code == 403


def test_a_link_elsewhere_leads_to_pages_and_not_to_exports():
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for path in ("/api/charges/history.npz?step=3000", "/api/ready", "/lab/api/thumb/a/1"):
        assert client().get(path, headers=link).status_code == 403
        assert client().get(path, headers=link | {"sec-fetch-site": "same-site"}).status_code == 403
        assert client().get(path, headers=link | {"sec-fetch-site": "same-origin"}).status_code == 200
        assert client().get(path, headers=link | {"sec-fetch-site": "none"}).status_code == 200


@pytest.mark.parametrize("origin", ["https://lab.example.org", None])
def test_behind_a_proxy_that_ends_tls_the_public_address_is_the_own_one(origin):
    headers = {"host": "lab.example.org"} | ({"origin": origin} if origin else {})
    assert client(DML_HOSTS="https://lab.example.org").get("/", headers=headers).status_code == 200
    assert client(DML_HOSTS="lab.example.org").get("/", headers=headers).status_code == (403 if origin else 200)
    assert client().get("/", headers=headers).status_code == 403


@pytest.mark.parametrize("origin", ["http://lab.example.org", "https://lab.example.org:8501", "http://localhost:8501"])
def test_behind_a_proxy_other_origins_stay_foreign(origin):
    headers = {"host": "lab.example.org", "origin": origin}
    assert client(DML_HOSTS="https://lab.example.org").get("/", headers=headers).status_code == 403


def test_a_forwarded_host_that_anybody_may_send_opens_nothing():
    forged = {"x-forwarded-host": "localhost:8501", "x-forwarded-proto": "http", "forwarded": "host=localhost:8501"}
    assert client().get("/", headers=forged | {"host": "evil.example"}).status_code == 403
    assert client().get("/", headers=forged | {"origin": "http://evil.example"}).status_code == 403


@in_one_case(
    path=[
        "/_stcore/metrics",
        "/_stcore/metrics/",
        "/_stcore/script-health-check",
        "/_stcore/agent/interact",
        "/_stcore/agent/mcp",
    ]
)
def test_what_tells_of_or_drives_the_app_without_a_page_is_closed(path):
    for prefix in ("/_stcore/", "/lab/_stcore/"):
        assert client().get(prefix + path).status_code == client().post(prefix + path).status_code == 404


def test_a_message_beyond_the_bound_ends_the_connection():
    with socket(client(), "/api/field") as opened:
        opened.send_text("x" * MOST_BYTES)
        assert opened.receive_text() == str(MOST_BYTES)
        opened.send_bytes(b"x" * (MOST_BYTES + 1))
        with pytest.raises(WebSocketDisconnect) as end:
            opened.receive_text()
        assert end.value.code == 1009


def test_the_token_is_changed_for_a_cookie_and_leaves_the_address():
    visitor = client(DML_TOKEN=TOKEN)
    assert visitor.get("/runs").status_code == 403
    answer = visitor.get(f"/runs?run=a%20b&token={TOKEN}&tab=")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs?run=a+b&tab="
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("dml-lab-8501=")
    assert TOKEN not in cookie
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Lax")
    assert visitor.get(answer.headers["location"]).text == "/runs?run=a+b&tab="
    with socket(visitor, "/_stcore/stream") as opened:
        opened.send_text("x")
        assert opened.receive_text() == "1"


def test_behind_tls_the_cookie_is_for_tls_alone():
    headers = {"host": "lab.example.org"}
    answer = client(DML_TOKEN=TOKEN, DML_HOSTS="https://lab.example.org").get(f"/?token={TOKEN}", headers=headers)
    assert answer.headers["set-cookie"].startswith("dml-lab=")
    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/", "/%2F/evil.example/"])
def test_the_way_back_never_leads_to_another_server(path):
    answer = client(DML_TOKEN=TOKEN).get(f"http://localhost:8501{path}?token={TOKEN}")
    assert answer.status_code == 303
    assert not answer.headers["location"].startswith(("//", "/\\"))


@in_one_case(
    headers=[
        {},
        {"cookie": "dml-lab-8501=x"},
        {"cookie": f"dml-lab-8501={TOKEN}"},
        {"cookie": f"dml-lab-9999={Access.from_environment({'DML_TOKEN': TOKEN}).cookie()}"},
        {"cookie": f"dml-lab-8501={Access.from_environment({'DML_TOKEN': 'b-token-of-sixteen'}).cookie()}"},
        {"authorization": "Bearer x"},
        {"authorization": "Bearer "},
    ]
)
def test_without_the_token_nothing_is_answered(headers):
    visitor = client(DML_TOKEN=TOKEN)
    for path in ("/", "/api/assets/1/x.js", "/static/x.js", "/_stcore/host-config", "/?token=", "/?token=x"):
        assert visitor.get(path, headers=headers).status_code == 403
    for path in ("/_stcore/stream", "/api/field", "/_stcore/health", f"/api/field?token={TOKEN}"):
        with pytest.raises(WebSocketDenialResponse), socket(visitor, path, **headers):
            pass


def test_scripts_and_proxies_send_the_token_in_a_header():
    assert client(DML_TOKEN=TOKEN).get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_health_is_told_without_the_token():
    assert client(DML_TOKEN=TOKEN).get("/_stcore/health").status_code == 200
    assert client(DML_TOKEN=TOKEN).get("/_stcore/health", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("base", ["", "lab"])
def test_only_the_health_addresses_themselves_are_open_without_the_token(base, monkeypatch):
    monkeypatch.setattr(host.streamlit, "get_option", lambda name: base if name == "server.baseUrlPath" else None)
    at = f"/{base}".rstrip("/")
    visitor = client(DML_TOKEN=TOKEN)
    for name in ("/_stcore/health", "/api/ready"):
        assert visitor.get(at + name).status_code == 200
        for path in (f"{at}/runs{name}", f"{at}/static{name}", f"{at}{name}/", f"/x{name}", f"/{at}{name}"):
            assert visitor.get(f"http://localhost:8501{path}").status_code == 403, path


def test_a_browser_is_asked_for_the_token_in_words():
    page = client(DML_TOKEN=TOKEN).get("/", headers={"accept": "text/html"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "DML Lab requires its token" in page.text
    assert "This token is not valid" not in page.text
    assert "This token is not valid" in client(DML_TOKEN=TOKEN).get("/?token=x").text


def test_on_loopback_there_is_no_token_unless_asked_for_and_beyond_there_is():
    assert client().get("/").status_code == 200
    assert client(DML_TOKEN="auto").get("/").status_code == 403
    assert client("http://10.0.0.1:8501").get("/").status_code == 403
    assert client("http://10.0.0.1:8501", DML_TOKEN="proxy").get("/").status_code == 200
    refused = client("http://10.0.0.1:8501", DML_TOKEN="off").get("/")
    assert refused.status_code == 503
    assert "DML_TOKEN=proxy" in refused.text


def start(**environment: str) -> list[dict]:
    """Return the messages that the server receives at startup, including a marker if the app was started."""

    async def begin() -> None:
        guard = Guard(reached, Access.from_environment(environment) if "DML_HOSTS" not in environment else None)
        await guard({"type": "lifespan"}, receive, send)

    async def reached(scope, receive, send) -> None:
        told.append({"type": "reached"})

    async def receive() -> dict:
        return {"type": "lifespan.startup"}

    async def send(message: dict) -> None:
        told.append(message)

    told: list[dict] = []
    with ThreadPoolExecutor(1) as thread:  # browser tests keep an event loop running in the main thread
        thread.submit(asyncio.run, begin()).result()
    return told


def test_where_all_could_come_in_the_start_is_refused():
    with create_server(("0.0.0.0", 0)):
        (said,) = start(DML_TOKEN="off")
        assert said["type"] == "lifespan.startup.failed"
        assert said["message"].startswith("DML Lab does not start: it would listen on ")
        assert start() == start(DML_TOKEN="proxy") == [{"type": "reached"}]
    with create_server(("127.0.0.1", 0)):
        assert start(DML_TOKEN="off") == [{"type": "reached"}]


def test_a_setting_that_cannot_be_meant_is_told_at_the_start(monkeypatch):
    monkeypatch.setenv("DML_HOSTS", "*")
    (said,) = start(DML_HOSTS="*")
    assert said["type"] == "lifespan.startup.failed"
    assert said["message"].startswith("DML_HOSTS: ")


def test_a_failure_of_the_app_is_still_logged_by_the_server(caplog):
    visitor = TestClient(Guard(anything, Access.from_environment({})), base_url="http://localhost")
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match="a defect"):
        visitor.get("/fails")
