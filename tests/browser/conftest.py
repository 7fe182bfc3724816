"""Browser fixtures. Tests are skipped without Chromium, unless REQUIRE_BROWSER=1 makes that a failure."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dmlcore.jobs import launch
from dmlcore.storage.runs import RunStore
from tests.browser.harness import (
    BETWEEN,
    CHROMIUM_FLAGS,
    FOLLOW,
    PATIENCE,
    Server,
    chromium_path,
    eventually,
    served,
)
from tests.data import layouts

FAILED = pytest.StashKey[bool]()
SERVING = pytest.StashKey[Server]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rerun a failed test once, so that one slow frame on a loaded machine does not block a landing; reruns are
    reported and should be repaired.
    """
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def missing(reason: str) -> None:
    """Skip the test for lack of a requirement; with REQUIRE_BROWSER=1 fail instead."""
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def drivers() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    if chromium_path() is None:
        missing("no Chromium: apt-get install chromium")
    drivers = request.getfixturevalue("drivers")
    chromium = drivers.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forged CIFAR-100 and Omniglot files with a few images each, as the server finds them."""
    root = tmp_path_factory.mktemp("data")
    layouts.cifar100(root / "cifar-100-python", train=4, test=1)
    layouts.omniglot_for_collages(root / "omniglot-py", characters=16)
    return root


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, images: Path) -> Iterator[Server]:
    """Server shared by all browser tests of this process; each further server costs 12 s of CPU time."""
    with served(tmp_path_factory.mktemp("app") / "runs", images) as running:
        request.config.stash[SERVING] = running
        yield running


@pytest.fixture(scope="module", autouse=True)
def its_runs_go_with_a_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the runs of a module after its tests, since the table of runs counts and sorts all runs on the server."""
    yield
    if serving := request.config.stash.get(SERVING, None):
        for run in RunStore(serving.runs).list():
            if run.is_alive():
                launch.cancel(run)
            eventually(run.delete)


# Animations that start by themselves cost more than half a second of CPU time per second; tests of motion enable them.
DESKTOP = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}


@contextlib.contextmanager
def watched(browser: Any) -> Iterator[tuple[Callable[..., Any], list[str]]]:
    """Yield a function that opens a page in a fresh context, and the list of errors of these pages: JavaScript, content
    policy and cache.
    """
    contexts, errors = [], []

    def blocked(said: Any) -> None:
        # a report, opened as a file, has its own policy
        if "Content Security Policy" in said.text and said.page.url.startswith("http"):
            errors.append(said.text)
        if "ForwardMsg MISS" in said.text:  # the page does not react: see maxCachedMessageAge
            errors.append(said.text)

    def spoken(dialog: Any) -> None:
        errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def visit(**options: Any) -> Any:
        contexts.append(context := browser.new_context(**DESKTOP | options))
        context.set_default_timeout(1000 * PATIENCE)
        context.set_default_navigation_timeout(3000 * PATIENCE)  # the first page of a server loads the whole app
        context.on("weberror", lambda error: errors.append(str(error.error)))
        context.on("console", blocked)
        context.on("dialog", spoken)
        return context.new_page()

    yield visit, errors
    for context in contexts:
        context.close()


@pytest.fixture
def visitor(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page in a fresh context: `visitor(**options)`.

    Uncaught JavaScript errors, dialogs and blocked content fail the test.
    """
    with watched(browser) as (visit, errors):
        yield visit
    assert errors == []


@pytest.fixture(scope="module")
def window() -> dict[str, Any]:
    """Options of the browser context of `page`; modules may override this fixture."""
    return DESKTOP


class Tabs:
    """Tabs shared by tests, each in its own context, identified by server, window options and use."""

    def __init__(self, visit: Callable[..., Any], errors: list[str]) -> None:
        self.visit, self.errors = visit, errors
        self.opened: dict[str, tuple[Server, Any, Any]] = {}

    @contextlib.contextmanager
    def lent(self, use: str, server: Server, window: dict[str, Any], node: pytest.Item) -> Iterator[Any]:
        """Lend a tab to one test, showing a page on which nothing moves; after a failure the next test gets a fresh
        tab.
        """
        for key, (its, process, tab) in [*self.opened.items()]:
            # it would keep polling a server that has ended
            if its.process is not process or process.poll() is not None:
                tab.context.close()
                del self.opened[key]
        key = f"{use} {server.url} {window}"
        if key not in self.opened:
            self.opened[key] = server, server.process, self.visit(**window)
        *_, tab = self.opened[key]
        yield tab
        if self.errors or node.stash[FAILED] or not tab.url.startswith(server.url):
            tab.context.close()
            del self.opened[key]
            return
        for other in [other for other in tab.context.pages if other is not tab]:
            other.close()
        tab.unroute_all()
        tab.set_viewport_size(window["viewport"])
        tab.evaluate(FOLLOW, f"{server.url}/{BETWEEN}")
        tab.emulate_media(color_scheme="null", reduced_motion="reduce")


@pytest.fixture(scope="session")
def tabs(browser: Any) -> Iterator[Tabs]:
    with watched(browser) as (visit, errors):
        yield Tabs(visit, errors)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def page(request: pytest.FixtureRequest, tabs: Tabs, window: dict[str, Any], server: Server) -> Iterator[Any]:
    """Shared tab in which `go` has loaded the app once. See `visitor` for the errors that fail a test."""
    request.node.stash[FAILED] = False
    tabs.errors.clear()
    with tabs.lent("own", server, window, request.node) as tab:
        yield tab
    assert tabs.errors == []


@pytest.fixture
def in_motion(page: Any) -> None:
    """Remove the preference for reduced motion from `page`, so that animations play."""
    page.emulate_media(reduced_motion="no-preference")


@pytest.fixture
def guest(
    request: pytest.FixtureRequest, page: Any, tabs: Tabs, window: dict[str, Any], server: Server
) -> Iterator[Any]:
    """Tab of another person, who receives a link of `page`: another session with its own cookies and storage.

    The tab shows the app already. Tests for which the first page load matters use `page.context.new_page()`.
    """
    with tabs.lent("guest", server, window, request.node) as tab:
        yield tab


@pytest.fixture
def asked(page: Any) -> Iterator[list[str]]:
    """Addresses that `page` requests during the test."""
    urls: list[str] = []

    def note(request: Any) -> None:
        urls.append(request.url)

    page.on("request", note)
    yield urls
    page.remove_listener("request", note)
