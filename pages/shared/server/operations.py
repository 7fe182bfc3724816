"""Routes for monitoring: /api/ready (readiness probe) and, with DML_METRICS=1, /api/metrics (Prometheus).

`/api/ready?store=ID` responds 409 if the app serves another run store (`dmlcore.jobs.local_app`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections import Counter as Count
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dmlcore.jobs import local_app
from pages.shared.server.host import sessions
from pages.shared.server.measured import measured

if TYPE_CHECKING:
    from dmlcore.storage.runs import RunStore

READY = "/api/ready"
# upper bounds of the histogram buckets in seconds
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)
LOADED = threading.Event()  # set once the first page is loaded and the server is ready for visitors


class _Store(Collector):
    """Prometheus collector for the number of runs by state and the free disk space, read whenever Prometheus asks for
    metrics.
    """

    def collect(self) -> Iterator[Metric]:
        store = _store()
        runs = GaugeMetricFamily("dml_runs", "Runs by state", labels=["state"])
        for state, count in sorted(Count(run.status() for run in store.list()).items()):
            runs.add_metric([state], count)
        yield runs
        yield GaugeMetricFamily(
            "dml_store_free_bytes", "Free disk space for runs", value=shutil.disk_usage(_there(store)).free
        )


class Metrics:
    """Prometheus metrics of requests, open sockets, page reruns, sessions, runs and the server process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        registry.register(_Store())
        self.requests = Counter("dml_requests", "Responses", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "dml_request_seconds", "Duration of requests", ["route"], buckets=SECONDS, registry=registry
        )
        self.sockets = Gauge("dml_sockets", "Open WebSockets", registry=registry)
        self.reruns = Histogram("dml_rerun_seconds", "Reruns of a page", ["page"], buckets=SECONDS, registry=registry)
        Gauge("dml_sessions", "Connected tabs", registry=registry).set_function(sessions)


@cache
def numbers() -> Metrics:
    """Return the metrics of this server; the first call creates them."""
    return Metrics()


def _store() -> RunStore:
    from dmlcore.storage.runs import RunStore  # imported late, because the first page does not use the run store

    return RunStore()


def _there(store: RunStore) -> Path:
    """Return the run store's folder, or the closest parent that exists."""
    return next(path for path in (store.root, *store.root.parents) if path.exists())


def _lacks() -> str:
    """Return the reason why the server is not ready for visitors; "" if it is ready."""
    if not LOADED.is_set():
        return "starting: the first page is loading"
    if not os.access(_there(store := _store()), os.W_OK):
        return f"runs cannot be written to {store.root}"
    return ""


def _serves(store_id: str) -> bool:
    return secrets.compare_digest(store_id.encode(), local_app.store_id(_store().root).encode())


async def _ready(request: Request) -> Response:
    store_id = request.query_params.get("store")
    if store_id is not None and not await anyio.to_thread.run_sync(_serves, store_id):
        return PlainTextResponse("another run store", 409, {"Cache-Control": "no-store"})
    lacks = await anyio.to_thread.run_sync(_lacks)
    return PlainTextResponse(lacks or "ready", 503 if lacks else 200, {"Cache-Control": "no-store"})


async def _metrics(_: Request) -> Response:
    if not measured():
        return PlainTextResponse("Not found", 404)
    text = await anyio.to_thread.run_sync(generate_latest, numbers().registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


ROUTES: list[BaseRoute] = [Route(READY, _ready), Route("/api/metrics", _metrics)]
