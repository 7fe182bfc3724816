"""Accessibility: every page under axe-core in light and dark, without motion if the visitor prefers so, complete on a
phone.
"""

from __future__ import annotations

import contextlib

import pytest

from pages.shared.widgets import menu
from tests.browser import axe
from tests.browser.conftest import missing
from tests.browser.harness import THEMES, becomes, eventually, go, walk

pytestmark = pytest.mark.browser

# Find what a phone cuts off, outside of scrolling boxes: text and controls beyond the edge of the window or of a box
# with hidden overflow.
CUT = """() => {
  const beyond = [], roots = [document.querySelector('[data-testid="stMain"]')];
  const up = (node) => node.assignedSlot ?? node.parentNode ?? node.host;
  const hides = (box, node) => {
    for (let on = node; on && on !== document; on = up(on) ?? on.host) {
      if (!(on instanceof Element)) continue;
      const style = getComputedStyle(on), edge = on.getBoundingClientRect();
      if (style.clipPath !== "none" || style.visibility === "hidden" || edge.width <= 1) return false;
      if (["auto", "scroll"].includes(style.overflowX) && on.dataset.testid !== "stMain") return false;
      if (style.textOverflow === "ellipsis") return false;
      if (["hidden", "clip"].includes(style.overflowX) && box.right > edge.right + 1) return true;
    }
    return box.right > innerWidth + 1;
  };
  for (const root of roots) for (const node of root.querySelectorAll("*")) {
    if (node.shadowRoot) roots.push(node.shadowRoot);
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own && !node.matches("button, input, select, canvas, svg, img, a")) continue;
    if (node.closest(".katex-mathml, svg *, [hidden]")) continue;
    const box = node.getBoundingClientRect();
    if (box.width && box.height && hides(box, node))
      beyond.push(`${node.tagName} ${(node.ariaLabel ?? node.textContent).slice(0, 40)} to ${Math.round(box.right)}`);
  }
  return beyond.slice(0, 5);
}"""
# Find texts and controls of the first screen that are covered: a click on their centre meets another element. Those
# scrolled out of sight in a box are left out.
COVERED = """() => {
  const covered = [], roots = [document.querySelector('[data-testid="stMain"]')];
  const met = (x, y) => {
    let node = document.elementFromPoint(x, y);
    while (node?.shadowRoot?.elementFromPoint(x, y) && node.shadowRoot.elementFromPoint(x, y) !== node)
      node = node.shadowRoot.elementFromPoint(x, y);
    return node;
  };
  const scrolledAway = (node, y) => {
    for (let on = node.parentElement; on; on = on.parentElement) {
      const edge = on.getBoundingClientRect();
      if (["auto", "scroll"].includes(getComputedStyle(on).overflowY) && (y < edge.top || y > edge.bottom)) return true;
    }
    return false;
  };
  for (const root of roots) for (const node of root.querySelectorAll("*")) {
    if (node.shadowRoot) roots.push(node.shadowRoot);
    if (!node.matches("h1, h2, p, a, select, button, summary") || node.closest("[hidden], .handle")) continue;
    const box = node.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    if (box.width < 2 || box.height < 2 || x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (scrolledAway(node, y)) continue;
    const top = met(x, y);
    if (top && top !== node && !node.contains(top) && !top.contains(node))
      covered.push(`${node.tagName} ${node.textContent.slice(0, 40)} under ${top.tagName} ${top.className}`);
  }
  return covered.slice(0, 5);
}"""
# Find texts covered by the toolbar of a table, on the Data page.
UNDER_A_TOOLBAR = """() => [...document.querySelectorAll('[data-testid="stElementToolbar"]')].flatMap((bar) => {
  const box = bar.getBoundingClientRect(), range = document.createRange();
  return [...document.querySelectorAll(".stMarkdown p, .stMarkdown li")].filter((text) => {
    range.selectNodeContents(text);
    return [...range.getClientRects()].some((line) => line.left < box.right && line.right > box.left
      && line.top < box.bottom && line.bottom > box.top);
  }).map((text) => text.textContent);
})"""
WANTED = {  # main content of each page: the first or, with -1, the last match; for the example see test_example
    "sphere": (("div.readout", 0), ("canvas.turn", 0)),
    "charges": (("div.readout", 0), ("canvas.portrait", 0)),
    "toy_training": (("div.readout", 1), ("canvas.plot", -1)),
    "studies": (('[data-testid="stVegaLiteChart"]', 0),),
}


def in_sight(box) -> bool:
    return bool(box) and box["height"] > 30 and box["y"] + min(box["height"], 600) <= 900


def hidden(page) -> list[str]:
    """Return what is cut or covered on a phone, once charts and tables have the width of its window."""
    found: list[str] = []

    def whole() -> None:
        found[:] = [f"cut: {text}" for text in page.evaluate(CUT)]
        found.extend(f"covered: {text}" for text in page.evaluate(COVERED))
        assert not found

    with contextlib.suppress(AssertionError):
        eventually(whole, 20)
    return found


@pytest.fixture
def checked(page, server):
    """Yield a tab into which axe may be loaded."""
    if not axe.SOURCE.exists():
        missing("no axe-core: npm ci --ignore-scripts")
    return page


def grave(page, theme: str, options: dict[str, object]) -> list[str]:
    """Return serious violations on the page in this theme that remain once all answers have arrived."""
    axe.prepare(page)
    axe.themed(page, theme)
    axe.rested(page)
    found: list[str] = []

    def none() -> None:
        found[:] = [f"{theme}: {v}" for v in axe.violations(page, options) if v.grave and not v.known]
        assert not found

    with contextlib.suppress(AssertionError):
        eventually(none, 20)
    return found


def report(problems: dict[str, list[str]]) -> str:
    return "\n".join(f"{address}\n  " + "\n  ".join(found) for address, found in problems.items() if found)


PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
# Theme of each page on the desktop; the phone uses the other one.
THEMED = [(address, THEMES[k % 2], THEMES[1 - k % 2]) for k, address in enumerate(menu.PLACES)]


def test_no_page_keeps_anybody_out(checked, server):
    """Walk through all pages as on a phone, then widen each to a desktop in the other theme.

    All rules are checked on the desktop, where the main content must end above the fold, or its first 600 pixels if it
    is taller, as the bars of 52 losses are; the phone is checked by the colour rules and for cut or covered elements.
    """
    problems = {}
    for address, theme, phones in THEMED:
        checked.set_viewport_size(PHONE)
        walk(checked, f"{server.url}/{axe.path(address)}")
        if address == "data":
            checked.get_by_test_id("stElementToolbar").first.wait_for()
            becomes(lambda: checked.evaluate(UNDER_A_TOOLBAR), [])
        problems[f"{address}, phone"] = grave(checked, phones, axe.OF_COLOURS) + hidden(checked)
        checked.set_viewport_size(DESK)
        problems[address] = grave(checked, theme, axe.OF_GRAVE)
        for shown, number in WANTED.get(address, ()):
            place = checked.locator(shown).nth(number)
            becomes(
                place.bounding_box, lambda box: box and box["height"] > 30 and box["y"] + min(box["height"], 600) <= 900
            )
    assert not any(problems.values()), report(problems)


PLAYING = ("charges", "fields", "sphere", "toy_training", "gap_vs_gsp")


@pytest.mark.usefixtures("in_motion")
def test_without_such_a_wish_what_plays_moves_and_is_left_in_motion(checked, server):
    """Check that pages move without the preference for reduced motion, so that `rested` measures motion.

    Other tests prefer reduced motion; only here each page is left while it plays, which must cause no error.
    """
    go(checked, f"{server.url}/lessons")
    axe.prepare(checked)
    for address in PLAYING:
        walk(checked, f"{server.url}/{address}")
        becomes(lambda: axe.motion(checked)[0], lambda frames: frames > 5)
    walk(checked, f"{server.url}/lessons")
    axe.rested(checked)


def test_an_unknown_address_says_so_and_one_link_leads_past_the_menu(page, server):
    page.goto(f"{server.url}/nosuch")
    page.get_by_role("heading", name="Page not found").wait_for()
    assert page.url == f"{server.url}/nosuch"
    assert page.get_by_role("link", name="Skip to").count() == 1
