"""What the server needs beside the pages: its own routes, and a warm-up that no visitor waits for."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import anyio.to_thread
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send
from streamlit import App

from pages._ui import assets, field_service

# Modules with ROUTES of pages other than the first: together they load for longer than the first page may take.
LATER = (
    "charges_service",
    "compare_export",
    "compare_service",
    "exports",
    "microscope_export",
    "microscope_service",
    "sphere_export",
    "sphere_service",
    "thumbnails",
    "truth_service",
)
QUIET = 6.0  # seconds after the start in which the first visitor has the machine to himself


@cache
def later_routes() -> Router:
    """The routes of LATER, whose modules are loaded by the first call."""
    modules = (importlib.import_module(f"pages._ui.{name}") for name in LATER)
    return Router([route for module in modules for route in module.ROUTES])


class Later(BaseRoute):
    """Hands every other address under /api/ to `later_routes`."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Full for /api/..., none otherwise."""
        ours = scope["type"] in ("http", "websocket") and scope["path"].startswith("/api/")
        return (Match.FULL if ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the route that matches; 404 if none does."""
        router = await anyio.to_thread.run_sync(later_routes)
        await router(scope, receive, send)


ROUTES: list[BaseRoute] = [*assets.ROUTES, *field_service.ROUTES, Later()]


def _warm_up() -> None:
    """What the first field needs."""
    import torch

    # Fields are small: one thread answers them, and trainings are processes of their own.
    torch.set_num_threads(1)
    field_service.answer({})


def _warm_up_later() -> None:
    """What the other pages need: their modules, and the second that the first step of an optimiser imports for."""
    from dmlcore.simulation import Simulation, Spec

    later_routes()
    Simulation(Spec(per_class=4)).frame(1)
    field_service.answer({"settle": True})
    _freeze()


def _freeze() -> None:
    """The collector never walks again what is loaded now (measured: 193 -> 30 ms a rerun)."""
    gc.collect()
    gc.freeze()


async def _in_quiet() -> None:
    await asyncio.sleep(QUIET)
    await anyio.to_thread.run_sync(_warm_up_later)
    await field_service.CREW.start()


@asynccontextmanager
async def lifespan(_: App) -> AsyncIterator[None]:
    """Warm up for the first field, serve, and load the rest once the first visitor has seen it."""
    await anyio.to_thread.run_sync(_warm_up)
    _freeze()
    rest = asyncio.create_task(_in_quiet())
    yield
    rest.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await rest
    field_service.CREW.stop()
