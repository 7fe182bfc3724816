"""The Confusions page with real mouse input: a cell of the matrix shows its queries and hands them over; hostile names
remain text.
"""

from __future__ import annotations

import re

import pytest

from dmlcore.inspection.neighbours import read
from tests.browser.harness import PATIENCE, address, becomes, eventually, go, quiet
from tests.pages.inspection.confusions.test_page import HOSTILE, hostile_run

pytestmark = pytest.mark.browser


# Return whether the matrix overflows its frame, and whether a hint says so.
CUT_AND_HINT = """frame => [
  frame.scrollWidth > frame.clientWidth + 1,
  getComputedStyle(frame, "::before").height !== "0px",
]"""


def test_a_cell_of_hostile_classes_shows_its_queries_and_fetches_nothing(page, asked, server, tmp_path):
    run = hostile_run(server.runs, tmp_path / "tree")
    found = read(run.embeddings())
    go(page, f"{server.url}/confusions?run={run.id}&view=Class+pairs")
    chart = page.locator('[data-testid="stVegaLiteChart"]').first
    chart.locator("svg, canvas").first.wait_for()
    for width, cut in ((280, True), (1440, False)):
        page.set_viewport_size({"width": width, "height": 900})
        becomes(lambda: page.locator(".st-key-matrix-scroll").evaluate(CUT_AND_HINT), [cut, cut])
    box = quiet(chart.bounding_box)
    words = page.locator("#vg-tooltip-element.visible")

    def cell() -> str:
        """Find the cell with the hostile name by its tooltip, which is still there after another move."""
        for down in range(24, 86, 9):
            for across in range(20, 96, 9):
                place = box["x"] + box["width"] * across / 100, box["y"] + box["height"] * down / 100
                seen = []
                for shift in (0, 1):
                    page.mouse.move(place[0] + shift, place[1])
                    seen.append(words.inner_text(timeout=500) if words.count() else "")
                if all(HOSTILE[:12] in text for text in seen):
                    return seen[-1]
        raise AssertionError("no cell under the pointer")

    assert "<img src=x onerror=alert(1)>" in eventually(cell)
    assert page.locator("#vg-tooltip-element img").count() == 0
    page.mouse.down()
    page.mouse.up()
    chosen = becomes(lambda: re.search(r"pair=(\d)-(\d)", address(page)), bool)
    query, other = int(chosen[1]), int(chosen[2])
    near = (found.labels[found.neighbours[:, :8]] == other).any(1)
    expected = int(((found.labels == query) & (near | (query == other))).sum())
    page.get_by_text(re.compile(f"{expected} of 6 queries")).wait_for()
    first = page.locator(".neighbours .query a").first
    becomes(lambda: int(found.labels[int(first.get_attribute("data-index"))]), query)
    page.get_by_role("button", name=re.compile("^Select these")).click()
    page.get_by_text(re.compile(r"\d+ samples selected")).wait_for()
    assert "selection=" in becomes(lambda: address(page), lambda url: "selection=" in url)

    def leads_to_its_forces() -> None:  # a press is lost if a rerun replaces the link
        if "/failure" not in address(page):
            page.locator(".neighbours .query a.forces").first.click()
        page.wait_for_url(re.compile("failure.*query="), timeout=10_000)

    eventually(leads_to_its_forces, 3 * PATIENCE)
    elsewhere = [url for url in asked if "evil" in url or not url.startswith((server.url, "data:", "blob:"))]
    assert elsewhere == []
