"""The main journey by keyboard only: Tab reaches, arrow keys move and Enter presses."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.storage.runs import EXAMPLE
from tests.browser.harness import becomes, eventually, go

pytestmark = pytest.mark.browser

FOCUSED = "node => node.getRootNode().activeElement === node || node.contains(node.getRootNode().activeElement)"
STEPS = 20_000  # minutes: longer than any page takes
FAR = 150  # presses of Tab after which an element counts as unreachable


def tab_to(page, locator, key: str = "Tab") -> None:
    """Press Tab until the focus is on an element or inside it."""
    locator.first.wait_for()
    for _ in range(FAR):
        page.keyboard.press(key)
        if locator.evaluate_all(f"nodes => nodes.some({FOCUSED})"):
            return
    raise AssertionError(f"{FAR} x {key} do not reach {locator}")


def test_from_a_field_to_the_forces_of_a_failure_without_a_mouse(page, server):
    changes_a_field(page, server)
    starts_a_run(page, server)
    opens_a_failure(page, server)


def changes_a_field(page, server) -> None:
    """Choose another loss and move a point: the numbers follow, and screen readers are notified."""
    go(page, f"{server.url}/fields")
    page.wait_for_selector("canvas.plane[data-seq]")
    negative = page.get_by_role("button", name="negative at")
    tab_to(page, negative)
    before = negative.get_attribute("aria-label")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowUp")
    becomes(lambda: negative.get_attribute("aria-label"), lambda now: now != before)
    heard = page.locator("[aria-live]", has_text=re.compile(r"loss .*triplet (active|satisfied|clamped)"))
    expect(heard).to_contain_text(re.compile(r"negative at [-\d., ]+"))
    loss = page.get_by_label("loss", exact=True)
    tab_to(page, loss)
    title = loss.evaluate("menu => menu.selectedOptions[0].textContent")
    page.keyboard.press("Home")
    now = becomes(lambda: loss.evaluate("menu => menu.selectedOptions[0].textContent"), lambda now: now != title)
    expect(heard).to_contain_text(now)


def starts_a_run(page, server) -> None:
    """From the menu through the three steps to a running run, which is too long to finish and is then cancelled."""
    section = page.get_by_test_id("stTopNavSection").filter(has_text="Training")
    tab_to(page, section, "Shift+Tab")
    page.keyboard.press("Enter")
    place = page.get_by_role("menuitem", name="New run", exact=True)
    place.wait_for()

    def chosen() -> bool:
        page.keyboard.press("ArrowDown")
        return place.evaluate(FOCUSED)

    becomes(chosen, True)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/data"))
    tab_to(page, page.get_by_role("link", name="Next: settings"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("spinbutton", name=re.compile("^Steps")))
    page.keyboard.press("Control+A")
    page.keyboard.type(str(STEPS))
    page.keyboard.press("Enter")
    onward = page.get_by_role("link", name="Next: start")
    expect(onward).to_have_attribute("href", re.compile(f"schedule.steps(=|%3D){STEPS}"))
    tab_to(page, onward)
    page.keyboard.press("Enter")
    start = page.get_by_role("button", name="Start training")
    expect(start).to_be_enabled()
    tab_to(page, start)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs\?run="))
    cancel = page.get_by_role("button", name="Cancel", exact=True)  # Streamlit itself shows Stop while the page runs
    tab_to(page, cancel)
    page.keyboard.press("Enter")
    # In the card, not in the table, whose cells for screen readers are hidden in its canvas.
    card = page.locator('[class*="st-key-run-"]')
    ended = card.get_by_text(re.compile("stopping|cancelled", re.IGNORECASE)).filter(visible=True)
    eventually(lambda: expect(ended.first).to_be_visible())


def opens_a_failure(page, server) -> None:
    """Along the neighbours of the example's queries to a wrong one, and to its forces."""
    go(page, f"{server.url}/neighbours?run={EXAMPLE}&failures=true")
    page.get_by_role("button", name="Keys").wait_for()
    wrong = page.locator(".neighbours .wrong a.frame").first
    tab_to(page, wrong)
    index = wrong.get_attribute("data-index")
    page.keyboard.press("f")
    page.wait_for_url(re.compile(f"/failure.*wrong={index}"))
    page.locator("canvas.plane[data-seq], .failure canvas").first.wait_for()
    expect(page.get_by_test_id("stException")).to_have_count(0)
