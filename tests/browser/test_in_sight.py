"""What is most wanted of a page stands in a window of 1440 x 900 without scrolling; of the example: test_example."""

from __future__ import annotations

import pytest

from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser

WANTED = {  # the place, and what of it: the first or, with -1, the last of these
    "sphere": (("div.readout", 0), ("canvas.turn", 0)),
    "charges": (("div.readout", 0), ("canvas.portrait", 0)),
    "toys": (("div.readout", 1), ("canvas.plot", -1)),
    "studies": (('[data-testid="stVegaLiteChart"]', 0),),
}


def test_the_wanted_ends_above_the_fold(page, server):
    for name, wanted in WANTED.items():
        go(page, f"{server.url}/{name}")
        for shown, number in wanted:
            place = page.locator(shown).nth(number)
            becomes(place.bounding_box, lambda box: box and box["height"] > 30 and box["y"] + box["height"] <= 900)
