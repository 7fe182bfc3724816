"""The loss microscope under a real mouse and keyboard."""

from __future__ import annotations

import re

import pytest
import torch

from dmlcore import losses
from dmlcore.losses.microscope import similarities, triplet_weights

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    page.goto(f"{server.url}/microscope{query}")
    page.wait_for_selector(".lab[data-seq]")
    return page.locator(".lab")


def wait_beyond(page, lab, before: int) -> None:
    page.wait_for_function("([el, n]) => Number(el.dataset.seq) > n", arg=[lab.element_handle(), before])


def readouts(page, k: int) -> list[str]:
    return page.locator(".card").nth(k).locator("[data-readout]").all_inner_texts()


def wait_for_edge(page, name: str, value: float) -> None:
    edge = page.locator(f'[data-edge="{name}"]')
    page.wait_for_function("([el, t]) => el.textContent === t", arg=[edge.element_handle(), f"{value:.3f}"])


def test_the_numbers_under_pointer_slider_and_link_are_those_of_the_library(page, server):
    lab = opened(page, server, "?at=0.25,0.5&l1=ranking,m:0.3")
    map_ = page.locator("canvas.weights").first
    box = map_.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.2 * box["height"])
    page.wait_for_function(
        "(el) => el.textContent !== '0.250'", arg=page.locator('[data-edge="S_ap"]').element_handle()
    )
    page.mouse.move(0, 0)
    wait_for_edge(page, "S_ap", 0.25)

    slider = page.locator(".card").first.get_by_role("slider", name="m", exact=True)
    at = slider.bounding_box()
    before = int(lab.get_attribute("data-seq"))
    page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    page.mouse.down()
    page.mouse.move(at["x"] + at["width"] * 0.7, at["y"] + at["height"] / 2, steps=8)
    wait_beyond(page, lab, before + 2)  # it acts while it is held
    page.mouse.up()
    page.wait_for_url(re.compile(r"l1=ranking,m:(?!0\.3\b)"))
    margin = float(re.search(r"l1=ranking,m:([-\d.]+)", page.url)[1])
    s = similarities(torch.tensor(0.25, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64))
    found = triplet_weights(losses.create("ranking", m=margin), s)
    wanted = ["active", f"{found.loss:.3f}", f"−{-found.ap:.3f}", f"+{found.an:.3f}", "0.000"]
    values = page.locator(".card").first.locator("[data-readout]")
    page.wait_for_function(
        "([el, t]) => el.textContent === t", arg=[values.nth(1).element_handle(), f"{found.loss:.3f}"]
    )
    assert readouts(page, 0) == wanted

    again = page.context.new_page()
    opened(again, server, "?" + page.url.split("?")[1])
    assert [readouts(again, k) for k in (0, 1)] == [readouts(page, k) for k in (0, 1)]


def test_keys_move_the_triplet_and_presets_and_choices_reach_the_link(page, server):
    opened(page, server)
    page.locator("canvas.weights").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    page.wait_for_url(re.compile(r"at=0.6,0.61"))
    wait_for_edge(page, "S_an", 0.61)
    page.get_by_role("button", name="METU against N-pairs").click()
    page.wait_for_url(re.compile("l1=distance_sensitive&l2=npairs"))
    page.get_by_label("N lies", exact=True).select_option("fixed")
    page.wait_for_url(re.compile("rival=fixed"))
    page.get_by_role("spinbutton", name="S_pn value").fill("-0.9")
    page.keyboard.press("Tab")
    page.wait_for_url(re.compile("pn=-0.9"))
    assert readouts(page, 0)[0] == "none", "no three unit vectors are that far apart and yet alike"


def test_without_a_socket_the_page_itself_carries_the_maps(page, server):
    lab = opened(page, server, "?socket=off")
    before = int(lab.get_attribute("data-seq"))
    page.get_by_label("weight of", exact=True).select_option("ap")
    page.wait_for_url(re.compile("weight=ap"))
    wait_beyond(page, lab, before)
    assert "socket=off" in page.url
