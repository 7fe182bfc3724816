"""For everybody: every page under axe-core in light and dark, at rest where that is asked for, whole on a phone."""

from __future__ import annotations

import contextlib

import pytest

from pages.shared.widgets import menu
from tests.browser import axe
from tests.browser.conftest import missing
from tests.browser.harness import THEMES, becomes, eventually, go, walk

pytestmark = pytest.mark.browser

# What a phone cuts off or does not reach, outside of what scrolls by itself: text and controls beyond the edge of the
# window, or of a box that hides what is beyond it.
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
# Controls of the first screen that lie under something else: a click on their middle meets another element.
COVERED = """() => {
  const covered = [], roots = [document.querySelector('[data-testid="stMain"]')];
  const met = (x, y) => {
    let node = document.elementFromPoint(x, y);
    while (node?.shadowRoot?.elementFromPoint(x, y) && node.shadowRoot.elementFromPoint(x, y) !== node)
      node = node.shadowRoot.elementFromPoint(x, y);
    return node;
  };
  for (const root of roots) for (const node of root.querySelectorAll("*")) {
    if (node.shadowRoot) roots.push(node.shadowRoot);
    if (!node.matches("h1, h2, p, a, select, button, summary") || node.closest("[hidden], .handle")) continue;
    const box = node.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    if (box.width < 2 || box.height < 2 || x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const top = met(x, y);
    if (top && top !== node && !node.contains(top) && !top.contains(node))
      covered.push(`${node.tagName} ${node.textContent.slice(0, 40)} under ${top.tagName} ${top.className}`);
  }
  return covered.slice(0, 5);
}"""
# Texts that lie under the toolbar of a table, of the data page.
UNDER_A_TOOLBAR = """() => [...document.querySelectorAll('[data-testid="stElementToolbar"]')].flatMap((bar) => {
  const box = bar.getBoundingClientRect(), range = document.createRange();
  return [...document.querySelectorAll(".stMarkdown p, .stMarkdown li")].filter((text) => {
    range.selectNodeContents(text);
    return [...range.getClientRects()].some((line) => line.left < box.right && line.right > box.left
      && line.top < box.bottom && line.bottom > box.top);
  }).map((text) => text.textContent);
})"""
WANTED = {  # what is most wanted of a page: the first or, with -1, the last of these; of the example: test_example
    "sphere": (("div.readout", 0), ("canvas.turn", 0)),
    "charges": (("div.readout", 0), ("canvas.portrait", 0)),
    "toy_training": (("div.readout", 1), ("canvas.plot", -1)),
    "studies": (('[data-testid="stVegaLiteChart"]', 0),),
}


def hidden(page) -> list[str]:
    """What is cut or covered on a phone, once charts and tables have the width of its window."""
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
    """A tab that may be given axe."""
    if not axe.SOURCE.exists():
        missing("no axe-core: npm ci --ignore-scripts")
    return page


def grave(page, theme: str, options: dict[str, object]) -> list[str]:
    """What keeps somebody out of the page in this theme, and does not go once it has all its answers."""
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
# A page's theme on the desk; on the phone it has the other one.
THEMED = [(address, THEMES[k % 2], THEMES[1 - k % 2]) for k, address in enumerate(menu.PLACES)]


def test_no_page_keeps_anybody_out(checked, server):
    """One walk through all pages as a phone opens them, each then widened to a desk and there in its other theme.

    All rules hold on the desk, where the wanted ends above the fold; on the phone those of the colours, and what a
    window can cut or cover.
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
            becomes(place.bounding_box, lambda box: box and box["height"] > 30 and box["y"] + box["height"] <= 900)
    assert not any(problems.values()), report(problems)


PLAYING = ("charges", "fields", "sphere", "toy_training", "gap_vs_gsp")


@pytest.mark.usefixtures("in_motion")
def test_without_such_a_wish_what_plays_moves_and_is_left_in_motion(checked, server):
    """What `rested` counts is motion: it is there for those who do not ask for stillness.

    Other tests ask for it, so that here alone each of these is left while it plays: no error follows.
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
