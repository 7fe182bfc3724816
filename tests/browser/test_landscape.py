"""The landscape with real mouse input: nothing is loaded before it is requested, and the marble rolls from where it is
placed.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, drag, go

pytestmark = pytest.mark.browser


def test_a_marble_rolls_from_the_dragged_point_and_the_file_opens_without_a_net(page, server, asked, tmp_path):
    go(page, f"{server.url}/fields?loss=ranking&m=0.3&n=0.3,0.2")
    page.wait_for_selector("canvas.plane[data-seq]")
    assert not [url for url in asked if "plotly" in url or "landscape/" in url]
    button = page.get_by_role("button", name="Landscape in 3-D")
    assert button.bounding_box()["y"] < 900  # in view
    button.click()
    plot, words = page.locator(".landscape [data-frame]"), page.locator(".landscape .words")
    expect(words).to_contain_text("the loss is 0")
    assert len([url for url in asked if "plotly" in url]) == 1
    expect(plot).to_have_attribute("data-frame", "99")  # reduced motion: at its end
    page.wait_for_url(re.compile("landscape=1"))
    before = int(plot.get_attribute("data-seq"))
    drag(page, page.locator('[data-point="negative"]'), 200, -120)
    expect(words).to_contain_text("Flat: ")
    becomes(lambda: int(plot.get_attribute("data-seq")), lambda seq: seq > before)
    page.get_by_role("button", name="Release the marble").press("Enter")
    expect(plot).to_have_attribute("data-frame", "99")

    with page.expect_download() as taken:
        page.get_by_role("link", name="HTML file").click()
    taken.value.save_as(tmp_path / "landscape.html")
    other = page.context.new_page()
    other.goto((tmp_path / "landscape.html").as_uri())
    expect(other.locator(".gl-container canvas").first).to_be_visible()
    expect(other.get_by_text("Release the marble")).to_be_visible()
    other.close()
    button.click()
    expect(page.locator(".landscape")).to_have_count(0)
