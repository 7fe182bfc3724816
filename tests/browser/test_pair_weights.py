"""The Pair weights page with real mouse and keyboard input."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import expect

from dmlcore import losses
from dmlcore.loss_analysis.pair_weights import similarities, triplet_weights
from tests.browser.harness import becomes, go, press, quiet

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    go(page, f"{server.url}/pair_weights{query}")
    page.wait_for_selector(".lab[data-seq]")
    return page.locator(".lab")


def seq(lab) -> int:
    return int(lab.get_attribute("data-seq"))


def readouts(page, k: int) -> list[str]:
    return page.locator(".card").nth(k).locator("[data-readout]").all_inner_texts()


def edge(page, name: str):
    return page.locator(f'[data-edge="{name}"]')


def test_the_numbers_under_pointer_slider_and_link_are_those_of_the_library(page, guest, server):
    lab = opened(page, server, "?at=0.25,0.5&l1=ranking,m:0.3")
    map_ = page.locator("canvas.weights").first
    expect(edge(page, "S_ap")).to_have_text("0.250")
    box = quiet(map_.bounding_box)
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.2 * box["height"])
    expect(edge(page, "S_ap")).not_to_have_text("0.250")
    page.mouse.move(0, 0)
    expect(edge(page, "S_ap")).to_have_text("0.250")

    slider = page.locator(".card").first.get_by_role("slider", name="m", exact=True)
    before = seq(lab)
    x, y = press(page, slider)
    page.mouse.move(x + 0.2 * slider.bounding_box()["width"], y, steps=8)
    becomes(lambda: seq(lab), lambda n: n > before + 2)  # sliders act while they are dragged
    page.mouse.up()
    page.wait_for_url(re.compile(r"l1=ranking,m:(?!0\.3\b)"))
    margin = float(re.search(r"l1=ranking,m:([-\d.]+)", page.url)[1])
    s = similarities(torch.tensor(0.25, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64))
    found = triplet_weights(losses.create("ranking", m=margin), s)
    becomes(
        lambda: readouts(page, 0), ["active", f"{found.loss:.3f}", f"−{-found.ap:.3f}", f"+{found.an:.3f}", "0.000"]
    )

    opened(guest, server, "?" + page.url.split("?")[1])
    shown = [readouts(page, k) for k in (0, 1)]
    becomes(lambda: [readouts(guest, k) for k in (0, 1)], shown)


def test_keys_move_the_triplet_and_presets_and_choices_reach_the_link(page, server):
    opened(page, server)
    page.locator("canvas.weights").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    page.wait_for_url(re.compile(r"at=0.6,0.61"))
    expect(edge(page, "S_an")).to_have_text("0.610")
    page.get_by_role("button", name="METU against N-pairs").click()
    page.wait_for_url(re.compile("l1=distance_sensitive&l2=npairs"))
    page.get_by_label("N lies", exact=True).select_option("fixed")
    page.wait_for_url(re.compile("rival=fixed"))
    page.get_by_role("spinbutton", name="S_pn value").fill("-0.9")
    page.keyboard.press("Tab")
    page.wait_for_url(re.compile("pn=-0.9"))
    becomes(lambda: readouts(page, 0)[0], "none")  # no three unit vectors are that far apart and that similar
