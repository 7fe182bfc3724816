"""Server set-up that does not belong to a page: API routes, and a warm-up that runs while the browser loads."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import anyio.to_thread
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Message, Receive, Scope, Send
from streamlit import App

from dmlcore.monitoring import logs
from pages.shared.server import descriptors, host, uploads
from pages.shared.widgets import session_state

# Modules that define ROUTES. FIRST lists those that the first page needs, LATER all others. None of them is imported at
# the top of this file, so that the server listens immediately (importing torch alone takes 1.5 s).
FIRST = ("pages.shared.server.static_files", "pages.shared.server.operations", "pages.shared.plane.service")
LATER = (
    "pages.losses.charges.service",
    "pages.losses.fields.compare.export",
    "pages.losses.fields.compare.service",
    "pages.inspection.failures.service",
    "pages.losses.fields.landscape.export",
    "pages.losses.fields.landscape.service",
    "pages.losses.fields.plane.export",
    "pages.inspection.neighbours.service",
    "pages.pooling.gap_vs_gsp.service",
    "pages.inspection.explore.service",
    "pages.inspection.thresholds.service",
    "pages.losses.fields.pair_weights.export",
    "pages.losses.fields.pair_weights.service",
    "pages.pooling.prototypes.export",
    "pages.pooling.prototypes.service",
    "pages.losses.fields.sphere.export",
    "pages.losses.fields.sphere.service",
    "pages.shared.server.thumbnails",
    "pages.losses.toy_training.scores",
    "pages.losses.toy_training.service",
    "pages.pooling.transport.export",
    "pages.pooling.transport.service",
    "pages.library.errata.service",
    "pages.lessons.export",
)
log = logging.getLogger("dmlcore")
# Modules that the other pages would import when they are first opened. They are imported in advance, because the import
# takes two seconds of CPU time, during which all concurrent visitors would have to wait.
OPENED = (
    "PIL.Image",
    "dmlcore.data.report",
    "dmlcore.monitoring.estimate.estimate",
    "dmlcore.figures.baselines",
    "dmlcore.figures.confusions",
    "dmlcore.figures.curves",
    "dmlcore.figures.studies",
    "dmlcore.training.forks.fork_spec",
    "dmlcore.inspection.export",
    "dmlcore.inspection.distance_density",
    "dmlcore.monitoring.comparability",
    "dmlcore.published.reference",
    "dmlcore.published.tournament",
    "pyarrow",
    "sklearn.datasets",
)
# Pages that visitors rarely open first. `host.open_pages` skips them, because they take 3.6 s of the 12 s of CPU time
# that all pages take.
RARELY_FIRST = ("sphere", "collage", "differences")
QUIET = 6.0  # seconds after the start of the server before the modules of the other pages are loaded
# maximum number of seconds for which `_pause` waits for a second without a request
MOST_PAUSES = 60


@cache
def routes(modules: tuple[str, ...]) -> Router:
    """Return a router with the routes of `modules`; the first call imports the modules."""
    loaded = map(importlib.import_module, modules)
    return Router([route for module in loaded for route in module.ROUTES])


class Loaded(BaseRoute):
    """Route that forwards every request under /api/ to the modules listed in FIRST and LATER."""

    heard = float("-inf")  # time.monotonic() when the last message arrived from a browser

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return a full match for /api/... below the base path of the app, no match otherwise."""
        ours = scope["type"] in ("http", "websocket") and host.route(scope).startswith("api/")
        return (Match.FULL if ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the first route that matches, or with 404 if no route matches."""

        async def heard() -> Message:
            message = await receive()
            self.heard = time.monotonic()
            return message

        # the routes below match paths without the base path
        scope = dict(scope, path=f"/{host.route(scope)}", root_path="")
        for modules in (FIRST, LATER):
            router = await anyio.to_thread.run_sync(routes, modules)
            if modules == LATER or any(r.matches(scope)[0] == Match.FULL for r in router.routes):
                await router(scope, heard, send)
                return


LOADED = Loaded()
ROUTES: list[BaseRoute] = [LOADED]


def _warm_up() -> None:
    """Import the routes of the first page, compute one field as a warm-up, and report the server as ready.

    pandas is imported first, as in _main.py. Otherwise a page that is opened meanwhile may find it half-imported.
    """
    import pandas  # noqa: F401

    from pages.shared.plane import service as plane_service
    from pages.shared.server import operations

    routes(FIRST)
    plane_service.warm_up()
    _freeze()
    if not for_a_crowd():
        operations.LOADED.set()


def for_a_crowd() -> bool:
    """Return True if all pages must be loaded before /api/ready reports success (DML_WARM=all), for example for a
    lecture.
    """
    return os.environ.get("DML_WARM") == "all"


def _warm_up_later() -> None:
    """Import the modules of the other pages and make the slow first calls, so that no visitor has to wait for them.

    This includes one optimiser step, because the first step spends a second on imports. Files that crashed processes
    left in the run store are removed as well.
    """
    from dmlcore.simulation import Simulation, Spec
    from dmlcore.storage import leftovers
    from dmlcore.storage.runs import RunStore
    from pages.shared.plane import service as plane_service

    routes(LATER)
    for module in OPENED:
        importlib.import_module(module)
    leftovers.sweep(RunStore().root)
    RunStore().list()  # fills the cache that the pages use to look up runs
    Simulation(Spec(per_class=4)).frame(1)
    plane_service.answer({"settle": True})
    _freeze()


def _freeze() -> None:
    """Exclude all existing objects from garbage collection, which shortens a rerun from 193 ms to 30 ms."""
    gc.collect()
    gc.freeze()


def _recover() -> None:
    """Resume interrupted work after a machine crash if DML_RECOVER=1; log a warning if the store cannot be read."""
    if os.environ.get("DML_RECOVER") == "1":
        from dmlcore.experiments import recovery
        from dmlcore.storage.runs import RunStore

        try:
            resumed = recovery.recover(RunStore(), report=log.info)
            log.info("%d interrupted runs, studies and jobs resumed", len(resumed))
        except OSError as error:
            log.warning("nothing could be resumed: %s", error)


async def _pause() -> None:
    """Wait for a second without a request, at most MOST_PAUSES seconds, so that imports do not stall an animation."""
    for _ in range(MOST_PAUSES):
        await asyncio.sleep(1)
        if time.monotonic() - LOADED.heard > 1:
            return


async def _load() -> None:
    await anyio.to_thread.run_sync(_warm_up)
    await anyio.to_thread.run_sync(_recover)
    crowd = for_a_crowd()
    if not crowd:
        await asyncio.sleep(QUIET)
        await _pause()
    await anyio.to_thread.run_sync(_warm_up_later)
    from pages.shared.plane import service as plane_service
    from pages.shared.server import operations
    from pages.shared.widgets import menu

    await plane_service.WORKERS.start()
    if crowd:
        await host.open_pages(address for address in menu.PAGES if address not in RARELY_FIRST)
        await anyio.to_thread.run_sync(_freeze)
        operations.LOADED.set()


@asynccontextmanager
async def lifespan(_: App) -> AsyncIterator[None]:
    """Set up the server; load the first page's modules in the background, and those of other pages after a delay."""
    logs.configure_server_logs()
    descriptors.raise_limit()
    asyncio.set_event_loop_policy(descriptors.SessionLoopPolicy())
    session_state.look_up_one_by_one()
    host.be_done_with_left_pages()
    loading, purging = asyncio.create_task(_load()), asyncio.create_task(uploads.purge())
    yield
    for task in (loading, purging):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    # If the server stops early, the warm-up thread may still be importing this module. No workers have been started
    # then, so there is nothing to stop.
    if (pool := getattr(sys.modules.get("pages.shared.plane.service"), "WORKERS", None)) is not None:
        pool.stop()
