"""Home in a real window: the small field reacts to dragging, everything fits on one screen, the menu marks the page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, drag, go, quiet

pytestmark = pytest.mark.browser


@pytest.mark.usefixtures("in_motion")
def test_home_fits_the_screen_and_its_field_answers_without_an_address(page, server):
    go(page, f"{server.url}/")
    page.locator(".neighbours img").first.wait_for()
    negative = page.get_by_role("button", name="negative at")
    negative.press("ArrowUp")  # ends the opening animation
    before = negative.get_attribute("aria-label")
    drag(page, negative, 40, -30)
    expect(negative).not_to_have_attribute("aria-label", before)
    assert page.url.removesuffix("/") == server.url
    bottom = "links => Math.max(...links.map((link) => link.getBoundingClientRect().bottom))"
    doors = page.get_by_test_id("stPageLink-NavLink")
    becomes(lambda: doors.evaluate_all(bottom), lambda lowest: 0 < lowest <= 900)


@pytest.mark.usefixtures("in_motion")
def test_the_moving_negative_waits_for_the_hand_a_near_miss_takes_it_and_the_view_stays(page, server):
    go(page, f"{server.url}/")
    plane = page.locator("canvas.plane[data-seq]")
    plane.wait_for()
    plane.scroll_into_view_if_needed()
    negative, positive = (page.get_by_role("button", name=f"{name} at") for name in ("negative", "positive"))
    box = plane.bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 30)  # anywhere over the plane
    place = quiet(lambda: negative.get_attribute("aria-label"))
    handle = negative.bounding_box()
    x, y = handle["x"] + handle["width"] / 2 + 24, handle["y"] + handle["height"] / 2 + 10
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30, y + 25, steps=4)
    page.mouse.up()
    expect(negative).not_to_have_attribute("aria-label", place)
    before = positive.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 60, steps=4)
    page.mouse.up()
    assert quiet(positive.bounding_box) == before
    page.get_by_role("button", name="Reset").click()
    expect(negative).to_have_attribute("aria-label", "negative at 0.35, 0.75")


def test_the_menu_marks_the_place_of_a_view_and_the_brand_leads_home(page, server):
    go(page, f"{server.url}/compare")
    sections = page.get_by_test_id("stTopNavSection")
    expect(sections.nth(0)).to_have_text(re.compile("Losses · Fields"))
    page.locator(".st-key-views").get_by_role("link", name="Sphere").click()
    expect(page.get_by_role("heading", name="Losses on the unit sphere")).to_be_visible()
    expect(sections.nth(0)).to_have_text(re.compile("Losses · Fields"))
    expect(page).to_have_title("Sphere · DML Lab")
    sections.filter(has_text="Training").click()
    page.get_by_role("menuitem", name="Studies").click()
    expect(sections.nth(1)).to_have_text(re.compile("Training · Studies"))
    expect(sections.nth(0)).to_have_text(re.compile("^Losses(?! ·)"))
    page.get_by_role("button", name="Navigate to home page").first.click()
    expect(page.get_by_role("link", name="Play with a loss")).to_be_visible()
