"""Browser fixtures; without Chromium the tests skip, unless REQUIRE_BROWSER=1 makes that a failure."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.harness import (
    BETWEEN,
    CHROMIUM_FLAGS,
    FOLLOW,
    PATIENCE,
    Server,
    chromium_path,
    served,
)

FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One unlucky frame of a loaded machine refuses no landing; a rerun is listed, and a defect to repair."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if chromium_path() is None:
        reason = "no Chromium: apt-get install chromium"
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("app") / "runs") as running:
        yield running


DESKTOP = {"viewport": {"width": 1440, "height": 900}}


@contextlib.contextmanager
def watched(browser: Any) -> Iterator[tuple[Callable[..., Any], list[str]]]:
    """What opens a page of a fresh context, and the errors of those pages: of JavaScript, and of the content policy."""
    contexts, errors = [], []

    def blocked(said: Any) -> None:
        if "Content Security Policy" in said.text and said.page.url.startswith("http"):  # a report, a file, has its own
            errors.append(said.text)

    def visit(**options: Any) -> Any:
        contexts.append(context := browser.new_context(**DESKTOP | options))
        context.set_default_timeout(1000 * PATIENCE)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        context.on("console", blocked)
        return context.new_page()

    yield visit, errors
    for context in contexts:
        context.close()


@pytest.fixture
def visitor(browser: Any) -> Iterator[Callable[..., Any]]:
    """visitor(**options) is a page of a fresh context.

    An uncaught JavaScript error in its pages fails the test, and so does what the app's content policy blocked.
    """
    with watched(browser) as (visit, errors):
        yield visit
    assert errors == []


@pytest.fixture(scope="module")
def window() -> dict[str, Any]:
    """Options of the context of `page`; a module may have its own."""
    return DESKTOP


@pytest.fixture(scope="session")
def tabs(browser: Any) -> Iterator[tuple[Callable[..., Any], list[str], dict[str, Any]]]:
    """What opens a tab, the errors in it, and the one that is open, by its server and window."""
    with watched(browser) as (visit, errors):
        yield visit, errors, {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def page(
    request: pytest.FixtureRequest,
    tabs: tuple[Callable[..., Any], list[str], dict[str, Any]],
    window: dict[str, Any],
    server: Server,
) -> Any:
    """A tab that tests share: `go` loads the app in it once. See `visitor`."""
    visit, errors, opened = tabs
    request.node.stash[FAILED] = False
    key = f"{server.url} {window}"
    for other in opened.keys() - {key}:
        opened.pop(other).context.close()
    errors.clear()
    if key not in opened:
        opened[key] = visit(**window)
    yield (shared := opened[key])
    found = [*errors]
    if found or request.node.stash[FAILED] or not shared.url.startswith(server.url):
        opened.pop(key).context.close()
    else:
        for other in [tab for tab in shared.context.pages if tab is not shared]:
            other.close()
        shared.unroute_all()
        shared.set_viewport_size(window["viewport"])
        shared.evaluate(FOLLOW, f"{server.url}/{BETWEEN}")  # where nothing moves until the next test
    assert found == []
