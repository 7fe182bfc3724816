"""Visual details and accessibility shared by pages, measured on screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, eventually, go

pytestmark = pytest.mark.browser


def test_a_slider_tells_its_value_and_boxes_keep_apart(page, server):
    go(page, f"{server.url}/fields?loss=ratio")
    slider, box = page.get_by_label("m", exact=True), page.get_by_label("m value", exact=True)
    expect(slider).to_have_attribute("aria-valuetext", "0.01")  # at 333 of 1000, because the slider is logarithmic
    slider.press("PageUp")
    eventually(lambda: expect(slider).to_have_attribute("aria-valuetext", box.input_value()))
    assert box.input_value() != "0.01"
    box.fill("0.5")
    box.press("Enter")
    expect(slider).to_have_attribute("aria-valuetext", "0.5")
    for name in ("colour", "equipotentials", "field", "snap"):
        expect(page.locator("label.menu > span", has_text=name)).to_be_visible()
    page.get_by_label("loss", exact=True).select_option("distance_sensitive")
    gaps = """boxes => boxes.map((box) => box.getBoundingClientRect())
      .map((box, i, all) => i ? box.top - all[i - 1].bottom : 9)"""
    boxes = page.locator(".sliders input[type=number]")
    becomes(lambda: boxes.evaluate_all(gaps), lambda all: len(all) == 5 and min(all) >= 4)


def test_no_tick_of_the_comparison_lies_under_its_buttons(page, server):
    go(page, f"{server.url}/compare")
    zoom = page.locator(".zoom")
    expect(zoom).to_be_visible()

    def apart() -> None:
        frame, box = page.locator(".frame").first.bounding_box(), zoom.bounding_box()
        assert box["y"] + box["height"] < frame["y"] + frame["height"] - 20  # ticks of x along the lower edge
        assert box["x"] > frame["x"] + 40  # ticks of y along the left edge

    eventually(apart)
