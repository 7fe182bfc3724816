"""Gallery and map under a real mouse and keyboard, on a real run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.inspection import maps
from dmlcore.runs import Run
from tests.e2e.harness import Server, becomes, eventually, quiet
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


def test_the_point_under_the_mouse_shows_its_picture_and_opens_its_neighbours(page, server, shown):
    page.goto(f"{server.url}/maps?run={shown.id}")
    canvas = page.locator("canvas.map")
    canvas.wait_for()
    quiet(lambda: canvas.get_attribute("width"))  # a map that still grows forgets the point under the pointer
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.locator(".card img").wait_for()
    first = canvas.get_attribute("data-hovered")
    page.keyboard.press("ArrowUp")
    hovered = becomes(lambda: canvas.get_attribute("data-hovered"), lambda index: index not in ("", first))
    page.locator(f'.card img[src$="/{shown.id}/{hovered}"]').wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"gallery.*query={hovered}"))
    page.get_by_role("link", name="On the map").click()
    page.wait_for_url(re.compile(f"maps.*point={hovered}"))

    canvas.wait_for()

    def on_a_point() -> str:
        """Along the middle until a point is near."""
        box = quiet(canvas.bounding_box)
        for share in range(20, 80, 2):
            page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + box["height"] / 2)
            if index := canvas.get_attribute("data-hovered"):
                page.locator(f'.card img[src$="/{shown.id}/{index}"]').wait_for()
                return index
        raise AssertionError("the pointer met no point")

    under = eventually(on_a_point)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(f"gallery.*query={under}"))


def test_a_class_of_the_legend_stands_out(page, server, shown):
    page.goto(f"{server.url}/maps?run={shown.id}")
    page.get_by_role("button", name=re.compile("^3 ")).click()
    page.locator('.legend button[aria-pressed="true"]').wait_for()
    expect(page.locator(".legend button.faint")).to_have_count(9)
    page.locator('[data-testid="stMultiSelect"]').get_by_text("3", exact=True).wait_for()
    page.locator('.legend button[aria-pressed="true"]').click()
    expect(page.locator(".legend button.faint")).to_have_count(0)
