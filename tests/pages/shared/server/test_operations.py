import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from dmlcore.jobs import local_app
from dmlcore.storage.runs import RunStore
from pages import _server
from pages.shared.server import host, measured, operations, prometheus
from tests.made_runs import make_finished_run


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    prometheus.numbers.cache_clear()
    return TestClient(Starlette(routes=operations.ROUTES, middleware=[Middleware(measured.Metering)]))


def test_ready_says_why_not(client, monkeypatch, tmp_path):
    monkeypatch.setattr(operations, "LOADED", loaded := operations.threading.Event())
    early = client.get(operations.READY)
    assert (early.status_code, early.text) == (503, "starting: the first page is loading")
    loaded.set()
    assert (client.get(operations.READY).status_code, client.get(operations.READY).text) == (200, "ready")
    monkeypatch.setattr(operations.os, "access", lambda *_: False)
    full = client.get(operations.READY)
    assert full.status_code == 503
    assert str(tmp_path) in full.text


def test_an_app_tells_whether_it_serves_a_store(client, monkeypatch, tmp_path):
    monkeypatch.setattr(operations, "LOADED", loaded := operations.threading.Event())
    loaded.set()
    own, other = map(local_app.store_id, (tmp_path / "runs", tmp_path))
    assert client.get(f"{operations.READY}?store={own}").status_code == 200
    assert [client.get(f"{operations.READY}?store={text}").status_code for text in (other, "", "é")] == [409] * 3


def test_routes_lie_below_the_base_path(client, monkeypatch):
    monkeypatch.setattr(host.streamlit, "get_option", lambda name: "lab")
    below = TestClient(Starlette(routes=[_server.Loaded()]))
    assert below.get("/lab/api/ready").text == client.get("/api/ready").text
    assert below.get("/api/ready").status_code == below.get("/lab/x/api/ready").status_code == 404


def test_no_numbers_unless_they_are_asked_for(client, monkeypatch):
    monkeypatch.delenv("DML_METRICS", raising=False)
    assert client.get("/api/metrics").status_code == 404
    with measured.rerun("fields"):
        pass
    monkeypatch.setenv("DML_METRICS", "1")
    assert "fields" not in client.get("/api/metrics").text


def test_what_prometheus_reads(client, monkeypatch):
    """Responses are counted by route and status, reruns by page, runs by state; unknown routes share one label."""
    monkeypatch.setenv("DML_METRICS", "1")
    make_finished_run(RunStore(), [], 0.5)
    for number in range(50):
        client.get(f"/api/made-up-{number}")
    with measured.rerun("fields"):
        pass
    client.get(operations.READY)
    text = client.get("/api/metrics").text
    assert 'dml_requests_total{route="none",status="404"} 50.0' in text
    assert "made-up" not in text
    assert 'dml_rerun_seconds_count{page="fields"} 1.0' in text
    assert 'dml_runs{state="done"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert "dml_sessions 0.0" in text


def test_a_failure_is_counted_and_goes_on(client, monkeypatch):
    monkeypatch.setenv("DML_METRICS", "1")

    async def fails(scope, receive, send):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        measured.Metering(fails)({"type": "http", "path": "/"}, None, None).send(None)
    assert 'dml_requests_total{route="none",status="none"} 1.0' in client.get("/api/metrics").text
