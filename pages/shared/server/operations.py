"""Routes for monitoring: /api/ready (readiness probe) and, with DML_METRICS=1, /api/metrics (Prometheus).

`/api/ready?store=ID` responds 409 if the app serves another run store (`dmlcore.jobs.local_app`).
"""

from __future__ import annotations

import os
import secrets
import threading

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dmlcore.jobs import local_app
from pages.shared.server.measured import measured
from pages.shared.server.prometheus import nearest_folder, numbers, run_store

READY = "/api/ready"
LOADED = threading.Event()  # set once the first page is loaded and the server is ready for visitors


def _lacks() -> str:
    """Return the reason why the server is not ready for visitors; "" if it is ready."""
    if not LOADED.is_set():
        return "starting: the first page is loading"
    if not os.access(nearest_folder(store := run_store()), os.W_OK):
        return f"runs cannot be written to {store.root}"
    return ""


def _ready(request: Request) -> Response:
    store_id = request.query_params.get("store")
    if store_id is not None and not secrets.compare_digest(
        store_id.encode(), local_app.store_id(run_store().root).encode()
    ):
        return PlainTextResponse("another run store", 409, {"Cache-Control": "no-store"})
    lacks = _lacks()
    return PlainTextResponse(lacks or "ready", 503 if lacks else 200, {"Cache-Control": "no-store"})


def _metrics(_: Request) -> Response:
    if not measured():
        return PlainTextResponse("Not found", 404)
    return Response(
        generate_latest(numbers().registry), media_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
    )


ROUTES: list[BaseRoute] = [Route(READY, _ready), Route("/api/metrics", _metrics)]
