"""The start button in the sidebar of a new run, on screen: in view while the form scrolls, and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser

BOTTOM = "(button) => innerHeight - button.getBoundingClientRect().bottom"


def start(page):
    return page.get_by_test_id("stSidebar").get_by_role("button", name="Start training")


def test_the_button_stays_at_the_foot_of_the_form_and_says_what_is_missing(page, server):
    go(page, f"{server.url}/settings?base=digits-classes")
    expect(start(page)).to_be_enabled()
    assert 0 <= start(page).evaluate(BOTTOM) < 60
    classes = page.get_by_label("Batch classes", exact=True)
    classes.scroll_into_view_if_needed()
    expect(classes).to_be_in_viewport()
    assert 0 <= start(page).evaluate(BOTTOM) < 60, "it does not scroll with the form"
    classes.fill("8")
    classes.press("Tab")
    expect(start(page)).to_be_disabled()
    reason = page.locator(".st-key-launch small")
    expect(reason).to_contain_text("8 requested")
    expect(reason).to_be_in_viewport()


def test_a_phone_has_the_button_next_to_the_title_of_the_last_step(visitor, server):
    page = visitor(viewport={"width": 390, "height": 844}, has_touch=True)
    go(page, f"{server.url}/start?base=digits")
    here = page.locator(".st-key-start-here").get_by_role("button", name="Start training")
    expect(here).to_be_enabled()
    expect(here).to_be_in_viewport()
    becomes(lambda: page.evaluate("document.documentElement.scrollWidth"), 390)
