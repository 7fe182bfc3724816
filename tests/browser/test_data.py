"""The Data step with real mouse input: view images, change the split, save it, go on to training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.harness import Server, becomes, eventually, go, press_download

pytestmark = pytest.mark.browser


def test_a_set_is_looked_at_split_otherwise_saved_and_trained_on(page, server: Server, tmp_path: Path):
    go(page, f"{server.url}/data?data=digits_pictures")
    images = page.locator(".samples img")
    expect(images).to_have_count(48)
    becomes(lambda: images.first.evaluate("(x) => x.decode().then(() => x.naturalWidth)"), 96)  # 32, enlarged
    first = images.first.get_attribute("title")
    page.get_by_role("button", name="Other samples").click()
    expect(images.first).not_to_have_attribute("title", first)
    test = page.get_by_test_id("stMetric").filter(has_text="test")
    expect(test).to_contain_text("896")

    def choose() -> None:
        page.get_by_test_id("stSelectbox").filter(has_text="Test split").get_by_role("combobox").click()
        page.get_by_role("option", name="unseen classes").click(timeout=2000)  # a rerun closes the list

    eventually(choose)
    expect(test).to_contain_text("5 classes")
    # The metric is drawn before the buttons, which until then save the previous split, so wait for the last line.
    expect(page.get_by_test_id("stCode").last).to_contain_text("--split classes")
    press_download(page, page.get_by_role("button", name="Split as JSON")).save_as(tmp_path / "split.json")
    split = json.loads((tmp_path / "split.json").read_text())
    assert split["settings"]["split"] == "classes"
    assert sum(row[0] == "test" for row in split["rows"]) == split["parts"]["test"]["samples"]
    page.get_by_role("link", name="Next: settings").click()
    page.wait_for_url(re.compile(r"settings\?.*data\.name(=|%3D)digits_pictures"))
    expect(page.get_by_role("heading", name="Digits as images")).to_be_visible()
    page.get_by_role("link", name="Next: start").click()
    page.wait_for_url(re.compile(r"start\?.*data\.name(=|%3D)digits_pictures"))
    expect(page.get_by_role("button", name="Start training")).to_be_enabled()
    # The sidebar disappears together with its form, and the brand moves back into the header.
    page.get_by_role("link", name="2 Settings").click()
    expect(page.get_by_text("Start from")).to_be_visible()
    page.get_by_test_id("stTopNavSection").filter(has_text="Losses").click()
    page.get_by_role("menuitem", name="Fields").click()
    page.wait_for_selector("canvas.plane[data-seq]")
    expect(page.get_by_test_id("stSidebar")).to_have_count(0)
    expect(page.get_by_role("button", name="Navigate to home page")).to_have_count(1)


def test_the_address_of_the_form_keeps_every_change_and_back_leaves_it_at_once(page, server: Server):
    go(page, f"{server.url}/settings?base=digits")
    steps = page.get_by_label("Steps", exact=True)
    expect(steps).to_have_value("600")
    before = page.evaluate("history.length")
    steps.fill("77")
    steps.press("Tab")
    page.wait_for_url(re.compile(r"schedule\.steps(=|%3D)77"))
    often = page.get_by_label("Validate every", exact=True)
    often.fill("11")
    often.press("Tab")
    page.wait_for_url(re.compile(r"schedule\.validate_every(=|%3D)11"))
    assert page.evaluate("history.length") == before
    page.reload()
    expect(steps).to_have_value("77")
    expect(often).to_have_value("11")
