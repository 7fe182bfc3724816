"""The Prototypes page with real sliders, keyboard and mouse: everything shown equals what dmlcore computes."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from dmlcore.geometry.hulls import overlaps
from dmlcore.inspection.local.local_features import digit_patches
from dmlcore.pooling.analysis.prototype_shares import read
from tests.browser.harness import address, becomes, eventually, go, quiet

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    go(page, f"{server.url}/prototypes{query}")
    page.wait_for_selector(".lab[data-seq]")


def linked(page, name: str, value: str) -> None:
    """Wait until the link contains the value."""
    becomes(lambda: dict(parse_qsl(urlsplit(address(page)).query)).get(name), value)


def shows(page, reading, local, place: int, rank: int, images: int) -> None:
    """Wait until the numbers of this image are shown."""
    row = int(np.flatnonzero((local.labels == place) & (local.ranks == rank))[0])
    for name in ("error", "mean_distance", "radius"):
        expect(page.locator(f'[data-readout="{name}"]')).to_have_text(f"{getattr(reading, name)[row]:.3f}")
    expect(page.locator(".count")).to_contain_text(f"{images} images")


def test_slider_keyboard_and_hulls_show_the_librarys_numbers(page, guest, server):
    local = digit_patches(3)
    opened(page, server, "?m=15&picture=0,3")
    shows(page, read(local.features, 15), local, 0, 3, 640)

    slider = page.get_by_role("slider", name="prototypes", exact=True)
    slider.press("ArrowRight")
    linked(page, "m", "16")
    reading = read(local.features, 16)
    shows(page, reading, local, 0, 3, 640)

    plane = page.get_by_role("application")
    plane.press("ArrowRight")
    shows(page, reading, local, 0, 4, 640)
    plane.press("ArrowDown")
    shows(page, reading, local, 1, 4, 640)
    linked(page, "picture", "1,4")
    expect(page.get_by_role("option", name="image 5 of class 1")).to_have_attribute("aria-selected", "true")

    slider.focus()  # a second time: answers in between must not have cut it off
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    linked(page, "m", "17")
    reading = read(local.features, 17)
    shows(page, reading, local, 1, 4, 640)

    page.get_by_role("group", name="classes with hulls").get_by_role("button", name="8").click()
    expected = overlaps(reading.prototypes, reading.histograms, local.labels, reading.pooled)
    linked(page, "classes", "1,7,8")
    row = page.get_by_role("row", name=re.compile(r"^1 \| 8"))
    expect(row.locator('[data-measure="hull_iou"]')).to_have_text(f"{expected.pairs['hull_iou'][1, 8]:.3f}")
    shared = expected.pairs["histogram_intersection"][1, 8]
    expect(row.locator('[data-measure="histogram_intersection"]')).to_have_text(f"{shared:.3f}")

    opened(guest, server, f"?{urlsplit(address(page)).query}")
    shows(guest, reading, local, 1, 4, 640)
    expect(guest.get_by_role("row", name=re.compile(r"^1 \| 8")).locator('[data-measure="hull_iou"]')).to_have_text(
        f"{expected.pairs['hull_iou'][1, 8]:.3f}"
    )


def test_a_click_on_an_average_chooses_its_image_also_without_a_socket(page, server):
    local = digit_patches(3)
    reading = read(local.features, 12)
    opened(page, server, "?m=12&classes=1&picture=4,0&socket=off")
    expect(page.locator(".notice")).to_contain_text("No direct connection.")
    # The leftmost average of class 1 is nearest to itself.
    mine = np.flatnonzero(local.labels == 1)
    row = int(mine[reading.pooled[mine, 1].argmin()])
    flat = reading.features.reshape(-1, 2)
    low, high = flat.min(0), flat.max(0)
    side = (high - low).max() * 1.08
    left, bottom = (low + high - side) / 2
    plane = page.get_by_role("application")
    plane.scroll_into_view_if_needed()

    def chosen() -> None:  # late answers may move the plane under the pointer
        box = quiet(plane.bounding_box)
        x = (reading.pooled[row, 0] - left) / side * box["width"]
        y = (1 - (reading.pooled[row, 1] - bottom) / side) * box["height"]
        plane.click(position={"x": x, "y": y})
        expect(page.locator('[data-readout="error"]')).to_have_text(f"{reading.error[row]:.3f}", timeout=5000)

    eventually(chosen)
    shows(page, reading, local, 1, int(local.ranks[row]), 640)
