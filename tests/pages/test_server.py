"""Routes of the app: those of the first page are loaded immediately, the others at the first request."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Coroutine
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from pages import _server
from pages._server import LATER, OPENED, ROUTES, routes
from pages.shared.server.wire import unpack
from tests.browser.harness import ROOT

pytestmark = pytest.mark.processes


@pytest.fixture
def client():
    with TestClient(Starlette(routes=ROUTES)) as client:
        yield client


def test_later_modules_answer_through_the_same_address(client):
    for path in ("/api/field", "/api/compare", "/api/sphere", "/api/charges", "/api/truth"):
        with client.websocket_connect(path) as socket:
            socket.send_text(json.dumps({"id": 1}))
            assert unpack(socket.receive_bytes())
    assert client.get("/api/field/export.json").json()
    for name in LATER:
        assert routes((name,)).routes, f"{name} has no route"


def finished(work: Coroutine[None, None, None]) -> None:
    """Run a coroutine that never waits without an event loop, because a browser driver may run one in this thread."""
    with pytest.raises(StopIteration):
        work.send(None)


def test_the_rest_waits_while_somebody_asks_but_not_for_ever(client, monkeypatch):
    now, asked = 100.0, False

    async def sleep(seconds):
        nonlocal now
        now += seconds
        if asked:
            _server.LOADED.heard = now

    monkeypatch.setattr(_server, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(_server, "asyncio", SimpleNamespace(sleep=sleep))
    with client.websocket_connect("/api/field") as socket:
        socket.send_text(json.dumps({"id": 1}))
        socket.receive_bytes()
    finished(_server._pause())
    assert now == 102.0
    asked = True
    finished(_server._pause())
    assert now == 102.0 + _server.MOST_PAUSES


def test_what_is_loaded_for_a_crowd_is_there():
    assert [name for name in OPENED if importlib.util.find_spec(name) is None] == []


def test_a_server_resumes_what_was_interrupted_where_it_is_asked_to(monkeypatch, tmp_path):
    stores = []
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    monkeypatch.delenv("DML_RECOVER", raising=False)
    monkeypatch.setattr("dmlcore.experiments.recovery.recover", lambda store, report: stores.append(store.root) or [])
    _server._recover()
    assert stores == []
    monkeypatch.setenv("DML_RECOVER", "1")
    _server._recover()
    assert stores == [tmp_path]


def test_an_unknown_address_is_refused(client):
    assert client.get("/api/nothing").status_code == 404
    assert client.get("/elsewhere").status_code == 404
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/nothing"):
        pass


def test_the_server_listens_before_it_loads():
    code = "import app, sys; print([m for m in ('torch', 'altair', 'dmlcore.losses') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip().splitlines()[-1] == "[]"


WHILE_PANDAS_IS_IMPORTED = """
import runpy, streamlit, sys, threading, time

def delay(event, arguments):
    if event == "import" and arguments[0] == "pandas.core":
        begun.set()
        time.sleep(4)

def report_pandas(**options):
    print(hasattr(sys.modules["pandas"], "Timestamp"))
    sys.exit()

begun = threading.Event()
sys.addaudithook(delay)
streamlit.set_page_config = report_pandas
threading.Thread(target=__import__, args=("pandas",)).start()
begun.wait()
runpy.run_path("pages/_main.py")
"""


def test_a_page_waits_for_a_pandas_that_another_thread_imports():
    """Pages opened right after the start once met a half-imported pandas and showed an error."""
    found = subprocess.run(
        [sys.executable, "-c", WHILE_PANDAS_IS_IMPORTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip().splitlines()[-1] == "True"


@pytest.fixture(scope="module")
def warmed():
    """Return the loaded heavy modules, frozen and tracked objects of a server that is ready for the first field."""
    heavy = ("scipy", "sklearn", "faiss", "matplotlib", "torch._dynamo", "pydantic")
    code = "import app, gc, json, sys; from pages._server import _warm_up; _warm_up(); print(json.dumps("
    code += f"[[m for m in {heavy} if m in sys.modules], gc.get_freeze_count(), len(gc.get_objects())]))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(found.stdout.strip().splitlines()[-1])


def test_the_first_field_loads_neither_scipy_nor_what_trains(warmed):
    assert warmed[0] == []


def test_row_27_the_collector_never_walks_what_is_loaded_at_the_start(warmed):
    """The load test itself is benchmarks/sessions.py."""
    _, frozen, walked = warmed
    assert frozen > 100_000
    assert walked < frozen / 50
