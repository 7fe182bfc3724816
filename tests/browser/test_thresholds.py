"""The Thresholds page with real mouse and keys: rates follow the threshold, and pairs open on the other pages."""

from __future__ import annotations

import re

import pytest

from dmlcore.inspection.neighbours import read
from pages.inspection.thresholds import service
from tests.browser.harness import THEMES, address, becomes, go, press
from tests.inspection.threshold_runs import OPEN, QUICK
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser

# Return the elements that are cut at the right of the window.
CUT = """root => [...root.querySelectorAll("*")].filter((each) => {
  const { right, width } = each.getBoundingClientRect();
  return width && right > innerWidth + 1;
}).map((each) => each.className || each.tagName)"""


@pytest.fixture(scope="module")
def run(server):
    return make_run(server.runs, *OPEN, *QUICK)


@pytest.fixture
def shown(page, server, run):
    """Return the page with its figure and pairs."""
    go(page, f"{server.url}/thresholds?run={run.id}")
    page.locator(".pair img").first.wait_for()
    return page


def handle(page):
    return page.get_by_role("slider", name="threshold of the cosine similarity")


def told(page) -> float:
    return float(handle(page).get_attribute("aria-valuenow"))


def rates(page) -> list[str]:
    """Return the displayed rates of the unseen classes: false matches and missed matches."""
    return [page.locator(f".rates .{rate} b").first.inner_text() for rate in ("fmr", "fnmr")]


def test_a_drag_changes_rates_and_pairs_without_a_message_to_the_server(shown, run, asked):
    found = service.measure(run, run.embeddings())
    assert told(shown) == pytest.approx(next(x.threshold for x in found.recommended if x.promised == 0.01), abs=1e-3)
    before = rates(shown), shown.locator(".groups").inner_text()
    box = shown.locator(".plot").first.bounding_box()
    x, y = press(shown, shown.locator(".grip"))
    asked.clear()
    for step in range(1, 21):
        shown.mouse.move(x - step * (x - box["x"] - box["width"] / 2) / 20, y)
    becomes(lambda: rates(shown), lambda now: now != before[0])
    becomes(lambda: shown.locator(".groups").inner_text(), lambda now: now != before[1])
    assert [url for url in asked if "/api/thumb/" not in url] == []
    shown.mouse.up()
    t = float(becomes(lambda: re.search(r"[?&]t=([\d.]+)", address(shown)), bool)[1])
    assert t == pytest.approx(told(shown), abs=1e-3)
    fmr, fnmr = found.unseen.pairs.rates_at(t)
    assert [float(rate.removesuffix(" %")) for rate in rates(shown)] == pytest.approx([100 * fmr, 100 * fnmr], rel=0.06)


def test_keys_move_the_threshold_and_a_promise_brings_it_back(shown):
    start = told(shown)
    handle(shown).focus()
    shown.keyboard.press("ArrowLeft")
    one = becomes(lambda: told(shown), lambda now: now < start)
    shown.keyboard.press("Shift+ArrowLeft")
    becomes(lambda: told(shown), lambda now: now < one - 5 * (start - one))
    shown.keyboard.press("Home")
    becomes(lambda: rates(shown), ["100 %", "0 %"])
    shown.keyboard.press("End")
    becomes(lambda: rates(shown), ["0 %", "100 %"])
    becomes(lambda: "t=" in address(shown), True)
    shown.get_by_role("button", name="10 %", exact=True).click()
    becomes(lambda: "fmr=0.1" in address(shown) and "t=" not in address(shown), True)
    assert told(shown) < start
    assert "10 % false matches" in shown.locator(".sentence").inner_text()


def test_a_pair_opens_failures_and_explore(shown, run):
    known = set(read(run.embeddings()).indices.tolist())
    pair = shown.locator(".groups section").filter(has_text="False matches").locator(".pair").first
    sources = pair.locator("img").evaluate_all("all => all.map((each) => each.src)")
    samples = [int(re.search(r"thumb/.*/(\d+)\?", source)[1]) for source in sources]
    assert set(samples) <= known
    pair.get_by_role("link", name="Forces").click()
    shown.wait_for_url(re.compile(f"failures.*query={samples[0]}.*wrong={samples[1]}"))
    for role, sample in (("query A", samples[0]), ("wrong neighbour N", samples[1])):
        becomes(
            lambda role=role: shown.locator(f'.failure img[alt^="{role}"]').get_attribute("src").rpartition("/")[2],
            str(sample),
        )


def test_both_samples_of_a_pair_are_marked_in_explore(shown):
    pair = shown.locator(".groups section").filter(has_text="Missed").locator(".pair").first
    link = pair.get_by_role("link", name="On the map")
    point, query = re.search(r"point=(\d+)&query=(\d+)", link.get_attribute("href")).groups()
    link.click()
    shown.wait_for_url(re.compile(f"explore.*point={point}&query={query}"))


def test_seen_classes_have_pairs_without_links_and_baselines_are_computed_on_request(shown):
    shown.get_by_role("button", name="seen classes", exact=True).click()
    shown.get_by_text("Failures and Explore show test classes only.").wait_for()
    becomes(lambda: shown.locator(".pair").count() > 0 and shown.locator(".pair a").count(), 0)
    becomes(lambda: "side=seen" in address(shown), True)
    shown.get_by_role("button", name="Compute the baselines").click()
    shown.locator(".baselines").get_by_text("raw inputs").wait_for()
    shown.locator(".baselines").get_by_text("untrained network").wait_for()
    assert shown.get_by_role("button", name="Compute the baselines").count() == 0


@pytest.mark.parametrize("theme", THEMES)
def test_nothing_is_cut_at_any_width(shown, theme):
    shown.emulate_media(color_scheme=theme)
    for width in (1440, 900, 390):
        shown.set_viewport_size({"width": width, "height": 900})
        becomes(lambda: shown.locator(".thresholds").evaluate(CUT), [])
        becomes(lambda width=width: shown.locator(".plot").first.evaluate("e => e.clientWidth") <= width, True)
