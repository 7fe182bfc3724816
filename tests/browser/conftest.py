"""Browser fixtures; without Chromium the tests skip, unless REQUIRE_BROWSER=1 makes that a failure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.harness import CHROMIUM_FLAGS, PATIENCE, SCREENSHOTS, Server, chromium_path, served


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


@pytest.fixture
def visitor(browser: Any) -> Iterator[Callable[..., Any]]:
    """visitor(**options) is a page of a fresh context.

    An uncaught JavaScript error in its pages fails the test, and so does what the app's content policy blocked.
    """
    contexts, errors = [], []

    def blocked(said: Any) -> None:
        if "Content Security Policy" in said.text and said.page.url.startswith("http"):  # a report, a file, has its own
            errors.append(said.text)

    def visit(**options: Any) -> Any:
        contexts.append(context := browser.new_context(**{"viewport": {"width": 1440, "height": 900}} | options))
        context.set_default_timeout(1000 * PATIENCE)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        context.on("console", blocked)
        return context.new_page()

    yield visit
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def page(visitor: Callable[..., Any], server: Server) -> Any:
    """A page in a desktop's window."""
    return visitor()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    SCREENSHOTS.mkdir(exist_ok=True)
    return SCREENSHOTS
