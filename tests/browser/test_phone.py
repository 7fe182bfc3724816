"""The menu on a phone: a drawer that shows all pages and closes once one is chosen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.0 Mobile/15E148 Safari/604.1"
)


# For every link return whether it is completely on screen, without a shortened name.
WHOLE = """links => links.map((link) => {
  const box = link.getBoundingClientRect(), name = link.querySelector("p");
  return box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight && name.scrollWidth <= name.clientWidth;
})"""


def opened(page, server, name, touch):
    """Return the links of the drawer opened on a page, and a function that taps."""
    go(page, f"{server.url}/{name}")
    act = (lambda locator: locator.tap()) if touch else (lambda locator: locator.click())
    act(page.get_by_test_id("stExpandSidebarButton"))
    return page.get_by_test_id("stSidebarNavLink"), act


@pytest.fixture(scope="module")
def window():
    return PHONE


@pytest.mark.parametrize("touch", [False, True], ids=["click", "tap"])
def test_the_drawer_closes_on_choice(page, server, touch):
    closes_on_choice(page, server, touch)


def test_the_drawer_closes_where_streamlit_closes_it_itself(visitor, server):
    closes_on_choice(visitor(**PHONE, user_agent=IPHONE), server, True)


def closes_on_choice(page, server, touch) -> None:
    links, act = opened(page, server, "fork", touch)
    act(links.filter(has_text="Studies"))
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()


def test_beside_the_form_of_train_no_page_is_hidden(page, server):
    links, _ = opened(page, server, "settings", True)
    expect(links).to_have_count(21)
    becomes(lambda: links.evaluate_all(WHOLE), [True] * 21)
    expect(page.get_by_text("Start from")).to_be_in_viewport()
