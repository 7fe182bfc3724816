"""What the server needs beside the pages: its own routes, and a warm-up that runs while the browser loads."""

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

# Modules with ROUTES: what the first page needs, and the rest, which loads for longer than the first page may take.
# Neither is imported here: the server listens first (torch alone takes a second and a half).
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
# What the other pages import when they are first opened: two seconds of CPU, which a crowd would wait for together.
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
    "dmlcore.monitoring.estimate.speed",
    "pandas",
    "pyarrow",
    "sklearn.datasets",
)
# Of the 12 s of processor that opening all pages takes, these take 3.6.
RARELY_FIRST = ("sphere", "collage", "differences")
QUIET = 6.0  # seconds after the start in which the first visitor has the machine to himself
MOST_PAUSES = 60  # seconds in which the rest waits for a second without a request


@cache
def routes(modules: tuple[str, ...]) -> Router:
    """The routes of these modules, which the first call loads."""
    loaded = map(importlib.import_module, modules)
    return Router([route for module in loaded for route in module.ROUTES])


class Loaded(BaseRoute):
    """Hands every address under /api/ to the modules above."""

    heard = float("-inf")  # when anything last came in, by time.monotonic

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Full for /api/... below the path the app is served under, none otherwise."""
        ours = scope["type"] in ("http", "websocket") and host.route(scope).startswith("api/")
        return (Match.FULL if ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the route that matches; 404 if none does."""

        async def heard() -> Message:
            message = await receive()
            self.heard = time.monotonic()
            return message

        scope = dict(scope, path=f"/{host.route(scope)}", root_path="")  # the routes below know no base path
        for modules in (FIRST, LATER):
            router = await anyio.to_thread.run_sync(routes, modules)
            if modules == LATER or any(r.matches(scope)[0] == Match.FULL for r in router.routes):
                await router(scope, heard, send)
                return


LOADED = Loaded()
ROUTES: list[BaseRoute] = [LOADED]


def _warm_up() -> None:
    """What the first field needs."""
    from pages.shared.plane import service as plane_service
    from pages.shared.server import operations

    routes(FIRST)
    plane_service.warm_up()
    _freeze()
    if not for_a_crowd():
        operations.LOADED.set()


def for_a_crowd() -> bool:
    """Whether many come at once, after /api/ready has said so: then all pages are loaded before."""
    return os.environ.get("DML_WARM") == "all"


def _warm_up_later() -> None:
    """What the other pages need: their modules, and the second that the first step of an optimiser imports for.

    What crashes have left in the run store is swept away meanwhile.
    """
    from dmlcore.simulation import Simulation, Spec
    from dmlcore.storage import leftovers
    from dmlcore.storage.runs import RunStore
    from pages.shared.plane import service as plane_service

    routes(LATER)
    for module in OPENED:
        importlib.import_module(module)
    leftovers.sweep(RunStore().root)
    RunStore().list()  # what the pages look runs up in
    Simulation(Spec(per_class=4)).frame(1)
    plane_service.answer({"settle": True})
    _freeze()


def _freeze() -> None:
    """The collector never walks again what is loaded now (measured: 193 -> 30 ms a rerun)."""
    gc.collect()
    gc.freeze()


def _recover() -> None:
    """After a crash of the machine, where DML_RECOVER=1 asks for it; a store that cannot be read stops nothing."""
    if os.environ.get("DML_RECOVER") == "1":
        from dmlcore.experiments import recovery
        from dmlcore.storage.runs import RunStore

        try:
            resumed = recovery.recover(RunStore(), report=log.info)
            log.info("%d interrupted runs, studies and jobs go on", len(resumed))
        except OSError as error:
            log.warning("nothing could be resumed: %s", error)


async def _pause() -> None:
    """Until nobody has asked for a second: a figure that plays or is dragged would stand still for as long."""
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
    """Serve at once; load what the first field needs meanwhile, and the rest once the first visitor has seen it."""
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
    # The thread above may still be importing this module: then no worker of it has begun.
    if (pool := getattr(sys.modules.get("pages.shared.plane.service"), "WORKERS", None)) is not None:
        pool.stop()
