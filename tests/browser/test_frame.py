"""What stands around every page: the link of what is shown, and no sidebar where nothing is in it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.harness import FOLLOW, becomes, go

pytestmark = pytest.mark.browser

PASTED = """() => {
  const field = document.createElement("input");
  field.id = "pasted";
  document.querySelector("#pasted")?.remove();
  document.body.append(field);
  field.focus();
}"""


def test_a_page_without_a_sidebar_gets_rid_of_that_of_the_page_before(page, server):
    go(page, f"{server.url}/train")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Loss", exact=True).first.wait_for()
    page.evaluate(FOLLOW, f"{server.url}/published")
    page.get_by_role("heading", name="Published results", exact=True).wait_for()
    expect(sidebar).to_have_count(0)
    expect(page.get_by_role("button", name="Navigate to home page")).to_have_count(1)  # the brand is in the head again


@pytest.mark.usefixtures("in_motion")
def test_a_copied_link_opens_what_was_seen_be_the_clipboard_shut_and_the_page_in_play(page, server):
    # Plain http knows no navigator.clipboard; without a socket the page itself answers.
    go(page, f"{server.url}/toys?data=moons&classes=2&samples=4&step=2&socket=off")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
    work = page.locator(".work[data-step]")
    becomes(lambda: work.get_attribute("data-step"), "2")
    page.get_by_role("combobox", name="loss A").select_option("facenet")
    page.get_by_role("button", name="play", exact=True).click()
    becomes(lambda: int(work.get_attribute("data-step") or 0), lambda step: step > 3)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".copy-link")).to_contain_text("Copied. It opens this page with what is chosen on it.")
    page.get_by_role("button", name="pause", exact=True).click()
    page.evaluate(PASTED)
    page.locator("#pasted").press("Control+v")
    link = page.locator("#pasted").input_value()
    assert "facenet" in link
    step = parse_qs(urlsplit(link).query)["step"][0]
    go(page, link)
    becomes(lambda: work.get_attribute("data-step"), step)
    expect(page.get_by_role("combobox", name="loss A")).to_have_value("facenet")
