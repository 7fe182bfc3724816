"""A run started in the app: its map and neighbours change at a validation, and the keyboard goes back to an earlier."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.jobs import launch
from dmlcore.storage import validation_frames
from dmlcore.storage.runs import RunStore
from tests.browser.harness import becomes, eventually, go

pytestmark = pytest.mark.browser
LINK = "start?base=digits&data.name=digits&schedule.steps=100000&schedule.validate_every=200"
PLACES = ".watch .plane > *"
NEIGHBOURS = ".watch .found img"


def step_of(page) -> int:
    return int(page.locator(".watch").get_attribute("data-step"))


def test_map_and_neighbours_change_at_a_validation_and_the_slider_goes_back(page, server):
    go(page, f"{server.url}/{LINK}")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"/runs\?run="))
    run = RunStore(server.runs).open(re.search(r"run=([a-z0-9-]+)", page.url)[1])

    def seen() -> tuple[int, list[str], list[str]]:
        """Return step, places on the map and neighbours as shown, all at once."""
        return page.evaluate(
            """([places, neighbours]) => [Number(document.querySelector(".watch")?.dataset.step ?? -1),
              [...document.querySelectorAll(places)].map((node) => node.style.cssText),
              [...document.querySelectorAll(neighbours)].map((node) => new URL(node.src).pathname)]""",
            [PLACES, NEIGHBOURS],
        )

    first = becomes(seen, lambda shown: len(shown[2]) == 30)
    second = becomes(seen, lambda shown: shown[0] > first[0] and len(shown[2]) == 30)
    assert len(first[1]) == len(second[1]) > 100
    assert first[1] != second[1], "the points move"
    assert first[2] != second[2], "the neighbours change"
    becomes(lambda: page.locator(NEIGHBOURS).first.evaluate("(img) => img.decode().then(() => img.naturalWidth)"), 128)
    # the slider must have a step between the first and the newest one
    becomes(lambda: len(validation_frames.paths(run.path)), lambda frames: frames > 2)
    launch.cancel(run)
    becomes(run.status, "cancelled")

    slider = page.locator(".stSlider").filter(has=page.get_by_role("slider", name="Step")).get_by_role("slider")
    slider.first.wait_for()
    newest = max(validation_frames.paths(run.path))
    slider.first.focus()
    page.keyboard.press("Home")
    becomes(lambda: step_of(page), 0)
    page.keyboard.press("ArrowRight")
    eventually(lambda: expect(page.locator(".watch")).not_to_have_attribute("data-step", "0"))
    assert 0 < step_of(page) < newest
