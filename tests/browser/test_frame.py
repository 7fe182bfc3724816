"""Elements around every page: the link to the current state."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser

PASTED = """() => {
  const field = document.createElement("input");
  field.id = "pasted";
  document.querySelector("#pasted")?.remove();
  document.body.append(field);
  field.focus();
}"""


@pytest.mark.usefixtures("in_motion")
def test_a_copied_link_opens_what_was_seen_be_the_clipboard_shut_and_the_page_in_play(page, server):
    # navigator.clipboard is not available over plain http; without a socket the page itself answers.
    go(page, f"{server.url}/toy_training?data=moons&classes=2&samples=4&step=2&socket=off")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
    work = page.locator(".work[data-step]")
    becomes(lambda: work.get_attribute("data-step"), "2")
    page.get_by_role("combobox", name="loss A").select_option("facenet")
    page.get_by_role("button", name="play", exact=True).click()
    becomes(lambda: int(work.get_attribute("data-step") or 0), lambda step: step > 3)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".copy-link")).to_contain_text("Copied. It opens this page with the current settings.")
    page.get_by_role("button", name="pause", exact=True).click()
    page.evaluate(PASTED)
    page.locator("#pasted").press("Control+v")
    link = page.locator("#pasted").input_value()
    assert "facenet" in link
    step = parse_qs(urlsplit(link).query)["step"][0]
    go(page, link)
    becomes(lambda: work.get_attribute("data-step"), step)
    expect(page.get_by_role("combobox", name="loss A")).to_have_value("facenet")
