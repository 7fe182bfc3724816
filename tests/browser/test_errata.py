"""The Errata page with real mouse input: the figure is drawn from exact numbers, and the link restores it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from dmlcore.published import checks
from pages.library.errata.service import readout
from pages.library.errata.state import Example
from pages.library.errata.words import six_digits
from tests.browser.harness import becomes, drag, eventually, go

pytestmark = pytest.mark.browser


def opened(page, server, query):
    go(page, f"{server.url}/errata{query}")
    plane = page.locator("canvas[data-seq]")
    plane.wait_for()
    return plane


def seq(plane) -> int:
    return int(plane.get_attribute("data-seq"))


def tidy(vector) -> str:
    return f"({', '.join(f'{round(x, 4):g}' for x in vector)})"


def rows(page) -> list[list[str]]:
    return [row.split("\t") for row in page.locator("tbody tr").filter(has=page.locator("th")).all_inner_texts()]


def gradients(page) -> list[list[str]]:
    return [row[1:3] for row in rows(page)]


def tips(svg: str) -> dict[str, int]:
    """Return the number of arrow tips (triangles) of each colour in a figure."""
    paths = [path for path in ElementTree.fromstring(svg).iter() if path.get("d", "").count("L") == 2]
    fills = [path.get("fill", "").upper() for path in paths]
    return {"printed": fills.count("#D55E00"), "true": fills.count("#009E73")}


def of_python(number: int, **changed) -> list[list[str]]:
    expected = readout(Example.of({"number": number} | changed))
    return [[tidy(printed), tidy(true)] for printed, true in zip(expected["printed"], expected["true"], strict=True)]


def test_dragging_shows_exact_gradients_and_the_link_reopens_them(page, guest, server):
    plane = opened(page, server, "?erratum=4")
    with page.expect_download() as file:
        page.get_by_role("button", name="SVG", exact=True).click()
    assert tips(file.value.path().read_text()) == {"printed": 3, "true": 3}
    handle = page.get_by_role("button", name=re.compile("^negative at"))
    before = seq(plane)
    drag(page, handle, 60, 40, release=False)
    becomes(lambda: seq(plane), lambda n: n > before + 2)  # sliders act while they are dragged
    page.mouse.up()
    page.wait_for_url(re.compile(r"erratum=4&n="))

    def shows_its_place() -> str:
        label = handle.get_attribute("aria-label")
        at = tuple(float(v) for v in label.removeprefix("negative at ").split(", "))
        assert at != (0, 2)
        assert gradients(page) == of_python(4, negative=at)
        return label

    label = eventually(shows_its_place)
    opened(guest, server, page.url.removeprefix(f"{server.url}/errata"))
    expect(guest.get_by_role("button", name=re.compile("^negative at"))).to_have_attribute("aria-label", label)
    becomes(lambda: rows(guest), rows(page))


def test_keys_sliders_and_the_next_erratum(page, server):
    plane = opened(page, server, "?erratum=6")
    page.get_by_role("button", name=re.compile("^positive at")).press("Shift+ArrowRight")
    page.wait_for_url(re.compile(r"erratum=6&p=1\.1%2C0|erratum=6&p=1\.1,0"))
    slider = page.get_by_role("slider", name="rho", exact=True)
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_url(re.compile(r"rho=0\.31"))
    expected = of_python(6, positive=[1.1, 0], hyper={"rho": 0.31})
    becomes(lambda: gradients(page), expected)
    expect(plane).to_have_attribute("aria-label", re.compile(re.escape(f"true {expected[0][1]}")))
    page.get_by_role("button", name="arrow_forward").or_(page.locator(".st-key-truth_next button")).first.click()
    page.wait_for_url(re.compile(r"erratum=7$"))
    page.get_by_text("Eq. 2.16, one pair: gradient by autograd").wait_for()
    # Searching finds an entry by its words without a page load; the entry can be moved along a number.
    page.get_by_role("textbox", name="Search").fill("ProxyAnchor's gradient")
    page.get_by_role("textbox", name="Search").press("Enter")
    similarity = page.get_by_role("slider", name="Similarity s")
    similarity.press("ArrowLeft")
    page.wait_for_url(re.compile(r"erratum=98&at=0\.29"))
    decision = checks.CURVES[98].decision(0.29)
    row = page.locator("tr", has_text="similarity s: 0.29")
    expect(row).to_contain_text(six_digits(decision.printed))
    expect(row).to_contain_text(six_digits(decision.true))
    expect(page.get_by_test_id("stVegaLiteChart").locator("svg, canvas").first).to_be_visible()
