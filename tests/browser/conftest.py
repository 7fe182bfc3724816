"""Browser fixtures; without Chromium the tests skip, unless REQUIRE_BROWSER=1 makes that a failure."""

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
from tests.experiments.studies import forged

FAILED = pytest.StashKey[bool]()
SERVING = pytest.StashKey[Server]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One unlucky frame of a loaded machine refuses no landing; a rerun is listed, and a defect to repair."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def missing(reason: str) -> None:
    """Skip the test for want of something, which REQUIRE_BROWSER=1 makes a failure."""
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
    """What the server finds of CIFAR-100 and Omniglot: forged files, a few images each."""
    root = forged.cifar100(tmp_path_factory.mktemp("data"), train=4, test=1)
    layouts.omniglot_for_collages(root / "omniglot-py", characters=16)
    return root


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, images: Path) -> Iterator[Server]:
    """The server of all browser tests of this process: another one costs twelve seconds of processor."""
    with served(tmp_path_factory.mktemp("app") / "runs", images) as running:
        request.config.stash[SERVING] = running
        yield running


@pytest.fixture(scope="module", autouse=True)
def its_runs_go_with_a_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """The next one finds the server as if it were the first: the table of runs counts and sorts what there is."""
    yield
    if serving := request.config.stash.get(SERVING, None):
        for run in RunStore(serving.runs).list():
            if run.is_alive():
                launch.cancel(run)
            eventually(run.delete)


# What plays by itself costs more than half a second of processor a second: where motion is tested, a test asks for it.
DESKTOP = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}


@contextlib.contextmanager
def watched(browser: Any) -> Iterator[tuple[Callable[..., Any], list[str]]]:
    """What opens a page of a fresh context, and the errors of those pages: of JavaScript, of policy and of cache."""
    contexts, errors = [], []

    def blocked(said: Any) -> None:
        if "Content Security Policy" in said.text and said.page.url.startswith("http"):  # a report, a file, has its own
            errors.append(said.text)
        if "ForwardMsg MISS" in said.text:  # the page stands still: see maxCachedMessageAge
            errors.append(said.text)

    def spoken(dialog: Any) -> None:
        errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def visit(**options: Any) -> Any:
        contexts.append(context := browser.new_context(**DESKTOP | options))
        context.set_default_timeout(1000 * PATIENCE)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        context.on("console", blocked)
        context.on("dialog", spoken)
        return context.new_page()

    yield visit, errors
    for context in contexts:
        context.close()


@pytest.fixture
def visitor(browser: Any) -> Iterator[Callable[..., Any]]:
    """visitor(**options) is a page of a fresh context.

    An uncaught JavaScript error in its pages fails the test, and so do a dialog and what the content policy blocked.
    """
    with watched(browser) as (visit, errors):
        yield visit
    assert errors == []


@pytest.fixture(scope="module")
def window() -> dict[str, Any]:
    """Options of the context of `page`; a module may have its own."""
    return DESKTOP


class Tabs:
    """Tabs that tests share, each in a context of its own, by the server, window and use that a test names."""

    def __init__(self, visit: Callable[..., Any], errors: list[str]) -> None:
        self.visit, self.errors = visit, errors
        self.opened: dict[str, tuple[Server, Any, Any]] = {}

    @contextlib.contextmanager
    def lent(self, use: str, server: Server, window: dict[str, Any], node: pytest.Item) -> Iterator[Any]:
        """A tab for one test, on a page where nothing moves; a fresh one after a failure."""
        for key, (its, process, tab) in [*self.opened.items()]:
            if its.process is not process or process.poll() is not None:  # it would go on asking a server that ended
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
    """A tab that tests share: `go` loads the app in it once. See `visitor` for what fails a test."""
    request.node.stash[FAILED] = False
    tabs.errors.clear()
    with tabs.lent("own", server, window, request.node) as tab:
        yield tab
    assert tabs.errors == []


@pytest.fixture
def in_motion(page: Any) -> None:
    """`page` is of somebody who did not ask for stillness: what plays by itself plays."""
    page.emulate_media(reduced_motion="no-preference")


@pytest.fixture
def guest(
    request: pytest.FixtureRequest, page: Any, tabs: Tabs, window: dict[str, Any], server: Server
) -> Iterator[Any]:
    """The tab of somebody else, to whom a link of `page` is sent: another session, other cookies and storage.

    It has the app on its screen already. That a link may as well be the first thing that a browser loads is tried
    where that is a claim of its own, with `page.context.new_page()`.
    """
    with tabs.lent("guest", server, window, request.node) as tab:
        yield tab


@pytest.fixture
def asked(page: Any) -> Iterator[list[str]]:
    """The addresses that `page` asks for in this test."""
    urls: list[str] = []

    def note(request: Any) -> None:
        urls.append(request.url)

    page.on("request", note)
    yield urls
    page.remove_listener("request", note)
