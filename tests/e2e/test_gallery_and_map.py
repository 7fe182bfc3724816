"""The gallery under a real mouse and keyboard, on a real run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.inspection import maps
from dmlcore.runs import Run
from tests.e2e.harness import Server, becomes, quiet
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shown(server: Server) -> Run:
    run = make_run(server.runs)
    maps.make(run)
    return run


def test_a_click_makes_a_neighbour_the_query_and_back_returns(page, server, shown):
    page.goto(f"{server.url}/gallery?run={shown.id}")
    pictures = page.locator(".neighbours .found a")
    page.locator(".neighbours .row").nth(7).wait_for()
    page.evaluate("window.same_page = true")
    chosen = quiet(lambda: pictures.nth(2).get_attribute("data-index"))
    pictures.nth(2).click()
    page.wait_for_url(re.compile(f"query={chosen}"))
    page.get_by_role("button", name="All queries").wait_for()
    expect(page.locator(".neighbours .query a")).to_have_attribute("data-index", chosen)
    assert page.evaluate("window.same_page"), "the app was not loaded again"
    page.go_back()
    page.locator(".neighbours .row").nth(7).wait_for()
    picture = page.locator(".neighbours img").first
    becomes(lambda: picture.evaluate("(x) => x.decode().then(() => x.naturalWidth)"), 128)
    wrong = page.locator(".neighbours .wrong .frame").first
    expect(wrong).to_have_css("border-style", "dashed")
    expect(wrong).to_have_css("border-color", "rgb(213, 94, 0)")
