"""Lessons with real mouse input: the figure answers the question, the browser stores progress, the address holds the
step.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, drag, go

pytestmark = pytest.mark.browser


def test_a_question_is_answered_by_the_figure_and_the_answer_is_remembered(page, guest, server):
    go(page, f"{server.url}/published_results")
    page.get_by_role("link", name="Lessons", exact=True).click()  # in the menu of every page
    page.get_by_role("link", name="Easy, semi-hard, hard").click()
    page.wait_for_url(re.compile("lesson=hardness"))
    verdict = page.locator(".verdict")
    page.get_by_role("button", name="hard", exact=True).click()
    expect(verdict).to_contain_text("Not yet. d(A,P) = 0.50, d(A,N) = 1.30; the loss is 0.")
    page.get_by_role("button", name="easy", exact=True).click()
    expect(verdict).to_contain_text("Right.")

    # Only dragging N to where the triplet is semi-hard answers the next step.
    page.get_by_role("link", name="Next step").click()
    expect(page.get_by_text("Drag N until the triplet is semi-hard.")).to_be_visible()
    page.get_by_role("button", name="Check").click()
    expect(verdict).to_contain_text("Not yet.")
    assert page.locator(".panel").is_hidden(), "only N can be moved"
    unit = page.locator(".frame").bounding_box()["width"] / 3  # the view is three units wide
    handle = page.get_by_role("button", name="negative at")
    drag(page, handle, -0.5 * unit, 0.5 * unit)
    page.wait_for_url(re.compile(r"lesson=hardness.*step=2"))
    page.get_by_role("button", name="Check").click()
    expect(verdict).to_contain_text(re.compile(r"Right\. d\(A,P\) = 0\.50, d\(A,N\) = 0\.\d+"))

    # On phones the figure is between text and question, elsewhere next to both.
    figure, check = page.locator(".st-key-lesson_figure"), page.get_by_role("button", name="Check")
    becomes(lambda: figure.bounding_box()["x"] > check.bounding_box()["x"], True)
    page.set_viewport_size({"width": 390, "height": 844})
    becomes(lambda: figure.bounding_box()["x"] == page.locator(".st-key-lesson_text").bounding_box()["x"], True)
    becomes(lambda: figure.bounding_box()["y"] < check.bounding_box()["y"], True)
    page.set_viewport_size({"width": 1440, "height": 900})

    # After a page load, the address restores step and point, and the list shows the progress.
    place = handle.get_attribute("aria-label")
    go(page, page.url)
    expect(page.get_by_role("button", name=place)).to_be_visible()
    expect(page.get_by_role("link", name="step 2: Within the margin, answered")).to_be_visible()
    page.get_by_role("link", name="All lessons").click()
    expect(page.get_by_text("4 min · 2 of 4")).to_be_visible()


def test_a_recorded_run_is_scrubbed_by_keyboard_and_answers_at_the_frame_shown(page, guest, server):
    go(page, f"{server.url}/lessons?lesson=projections&step=2")
    bar, verdict = page.get_by_role("slider", name="training step"), page.locator(".verdict")
    expect(page.get_by_text("Projection 1 ends · distance of proxies 0.003")).to_be_visible()
    page.get_by_role("button", name="Check").click()
    expect(verdict).to_contain_text("Not yet. At step 500 the worst sample of a class lies 0.594")
    bar.press("ArrowRight")
    expect(page.get_by_text("Projection 2: new proxies · distance of proxies 0.349")).to_be_visible()
    page.wait_for_url(re.compile("frame=21"))
    page.get_by_role("button", name="Check").click()
    expect(verdict).to_contain_text("Right. At step 500 the worst sample of a class lies 0.469")
    go(page, page.url)
    expect(page.get_by_text("Projection 2: new proxies")).to_be_visible()
