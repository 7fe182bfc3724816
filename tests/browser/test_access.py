"""For everybody: every page under axe-core in light and dark, and at rest where that is asked for."""

from __future__ import annotations

import pytest

from pages.shared.widgets import menu
from tests.browser import axe
from tests.browser.conftest import missing
from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser


@pytest.fixture
def checked(page, server):
    """A tab with axe in it that asks for stillness."""
    if not axe.SOURCE.exists():
        missing("no axe-core: npm ci --ignore-scripts")
    page.emulate_media(reduced_motion="reduce")
    return page


def test_no_page_keeps_anybody_out(checked, server):
    """One walk through all pages, each in both themes and on a phone: an address followed in an open tab is cheap."""
    page, problems, theme = checked, {}, "light"
    for address in menu.PLACES:
        go(page, f"{server.url}/{axe.path(address)}")
        axe.prepare(page)
        found = []
        for rules in (None, axe.OF_COLOURS):  # the second theme of this page is the first of the next
            axe.themed(page, theme)
            axe.rested(page)
            found += [f"{theme}: {v}" for v in axe.violations(page, rules) if v.grave and not v.known]
            theme = {"light": "dark", "dark": "light"}[theme]
        theme = {"light": "dark", "dark": "light"}[theme]
        if found:
            problems[address] = found
    assert not problems, "\n".join(f"{address}\n  " + "\n  ".join(found) for address, found in problems.items())


def test_without_such_a_wish_the_first_field_moves(checked, server):
    """What `rested` counts is motion: it is there for those who do not ask for stillness."""
    go(checked, f"{server.url}/charges")
    axe.prepare(checked)
    checked.emulate_media(reduced_motion="no-preference")
    go(checked, f"{server.url}/fields")
    checked.wait_for_selector("canvas.plane[data-seq]")
    becomes(lambda: axe.motion(checked)[0], lambda frames: frames > 5)
