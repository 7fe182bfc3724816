"""Before the first own run, every page of Inspection shows the example run and says so."""

from __future__ import annotations

import pytest

from dmlcore.storage.runs import EXAMPLE
from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser

SHOWN = {
    "neighbours": ".neighbours img",
    "failures": "canvas, svg.plane",
    "explore": "canvas.map",
    "differences": '[data-testid="stVegaLiteChart"], .neighbours img',
    "confusions": '[data-testid="stVegaLiteChart"]',
    "thresholds": ".pair img",
}
# Visible without scrolling: all losses of the table, the images of the worst pair and those of the first query that
# changed.
IN_SIGHT = {
    "failures": ".steps",
    "confusions": ".st-key-pair .row",
    "differences": ".difference",
    "thresholds": ".rates",
}


def test_every_inspection_page_shows_the_example(page, server):
    for name, shown in SHOWN.items():
        go(page, f"{server.url}/{name}?run={EXAMPLE}&weights=true")
        page.get_by_text("Example run (not used in comparisons)").first.wait_for()
        page.locator(shown).first.wait_for()
        assert page.locator('[data-testid="stException"], [data-testid="stAlertContentError"]').count() == 0
        if name == "neighbours":
            page.get_by_text("3 × 3 local features").wait_for()
        if name in IN_SIGHT:
            wanted = page.locator(IN_SIGHT[name]).first
            becomes(wanted.bounding_box, lambda box: box["y"] + box["height"] <= 900)
