"""The truth page under a real mouse: the picture is drawn from exact numbers, and the link reopens it."""

from __future__ import annotations

import re

import pytest

from pages._ui.truth_scene import Example
from pages._ui.truth_service import readout

pytestmark = pytest.mark.browser


def opened(page, server, query):
    page.goto(f"{server.url}/truth{query}")
    plane = page.locator("svg[data-seq]")
    plane.wait_for()
    return plane


def seq(plane) -> int:
    return int(plane.get_attribute("data-seq"))


def tidy(vector) -> str:
    return f"({', '.join(f'{round(x, 4):g}' for x in vector)})"


def rows(page) -> list[list[str]]:
    return [row.split("\t") for row in page.locator("tbody tr").filter(has=page.locator("th")).all_inner_texts()]


def test_dragging_shows_exact_gradients_and_the_link_reopens_them(page, server):
    plane = opened(page, server, "?erratum=4")
    assert plane.locator("g.arrow.printed").count() == 3
    assert plane.locator("g.arrow.true").count() == 3
    handle = page.get_by_role("button", name=re.compile("^negative at"))
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = seq(plane)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=12)
    page.wait_for_function("([el, n]) => Number(el.dataset.seq) > n", arg=[plane.element_handle(), before + 2])
    page.mouse.up()
    page.wait_for_url(re.compile(r"erratum=4&n="))
    label = handle.get_attribute("aria-label")
    at = tuple(float(v) for v in label.removeprefix("negative at ").split(", "))
    assert at != (0, 2)
    expected = readout(Example.of({"number": 4, "negative": at}))
    for i, row in enumerate(rows(page)):
        assert row[1:3] == [tidy(expected["printed"][i]), tidy(expected["true"][i])]

    again = page.context.new_page()
    opened(again, server, page.url.removeprefix(f"{server.url}/truth"))
    assert again.get_by_role("button", name=re.compile("^negative at")).get_attribute("aria-label") == label
    assert rows(again) == rows(page)
    again.close()


def test_keys_sliders_and_the_next_erratum(page, server):
    plane = opened(page, server, "?erratum=6")
    page.get_by_role("button", name=re.compile("^positive at")).press("Shift+ArrowRight")
    page.wait_for_url(re.compile(r"erratum=6&p=1\.1%2C0|erratum=6&p=1\.1,0"))
    slider = page.get_by_role("slider", name="rho", exact=True)
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_url(re.compile(r"rho=0\.31"))
    expected = readout(Example.of({"number": 6, "positive": [1.1, 0], "hyper": {"rho": 0.31}}))
    assert rows(page)[0][1:3] == [tidy(expected["printed"][0]), tidy(expected["true"][0])]
    assert f"true {tidy(expected['true'][0])}" in plane.get_attribute("aria-label")
    page.get_by_role("button", name="arrow_forward").or_(page.locator(".st-key-truth_next button")).first.click()
    page.wait_for_url(re.compile(r"erratum=7$"))
    page.get_by_text("Eq. 2.16, one pair: gradient by autograd").wait_for()
