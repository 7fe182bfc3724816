"""The Compare page with real mouse input: linked points, separate sliders, the verdict, the link."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import expect

from tests.browser.harness import address, becomes, drag, eventually, go, quiet

pytestmark = pytest.mark.browser


def opened(page, server, query="?n=0.35,0.55"):
    go(page, f"{server.url}/compare{query}")
    page.wait_for_selector(".cards[data-seq]")
    return page.locator(".cards")


def seq(cards) -> int:
    return int(cards.get_attribute("data-seq"))


def readouts(page, k: int) -> list[str]:
    return page.locator(".card").nth(k).locator("[data-readout]").all_inner_texts()


def labels(page, name: str) -> list[str]:
    return [h.get_attribute("aria-label") for h in page.locator(f'[data-point="{name}"]').all()]


def rested(page) -> None:
    """Wait until every request is answered and painted."""
    quiet(lambda: (seq(page.locator(".cards")), readouts(page, 0), readouts(page, 1)))


def test_a_point_dragged_in_one_plane_moves_in_all_and_the_link_reopens_it(page, guest, server):
    cards = opened(page, server)
    rested(page)
    before, loss = seq(cards), [readouts(page, k) for k in (0, 1)]
    negative = page.locator(".card").nth(1).locator('[data-point="negative"]')
    drag(page, negative, -50, 40, release=False)
    becomes(lambda: seq(cards), lambda n: n > before + 2)  # sliders act while they are dragged
    page.mouse.up()
    page.wait_for_url(lambda url: "n=0.35" not in url and "n=" in url)

    def follows() -> tuple[list[str], list[list[str]]]:
        seen, after = labels(page, "negative"), [readouts(page, k) for k in (0, 1)]
        assert len(seen) == 3
        assert len(set(seen)) == 1
        assert "0.35, 0.55" not in seen[0]
        assert after[0] != loss[0]
        assert after[1] != loss[1]
        return seen, after

    rested(page)
    seen, after = eventually(follows)

    opened(guest, server, "?" + page.url.split("?")[1])
    becomes(lambda: labels(guest, "negative"), seen)
    becomes(lambda: [readouts(guest, k) for k in (0, 1)], after)


def test_the_pointer_reads_all_planes_at_the_same_place_and_a_slider_changes_its_own_loss_only(page, server):
    cards = opened(page, server)
    plane = page.locator(".card").first.locator("canvas.plane")
    rested(page)
    plane.scroll_into_view_if_needed()
    box = quiet(plane.bounding_box)
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"])
    chips = page.locator(".chip:visible")

    def apart() -> None:
        first, second, left = (
            float(re.search(r"loss (\S+)", t).group(1).replace("−", "-")) for t in chips.all_inner_texts()
        )
        assert left == pytest.approx(first - second, abs=2e-3)

    eventually(apart)

    untouched, changed = readouts(page, 0), readouts(page, 1)
    before = seq(cards)
    slider = page.locator(".card").nth(1).get_by_role("slider", name="s", exact=True)
    drag(page, slider, 60, 0, release=False)
    becomes(lambda: seq(cards), lambda n: n > before + 2)
    page.mouse.up()
    page.wait_for_url(re.compile(r"l2=distance_sensitive,s:"))
    becomes(lambda: readouts(page, 1), lambda texts: texts != changed)
    rested(page)
    assert readouts(page, 0) == untouched
    assert "l1=" not in page.url


def test_losses_are_added_exchanged_removed_and_told_to_be_the_same(page, server):
    opened(page, server)
    titles = lambda: [c.get_attribute("aria-label") for c in page.locator(".card").all()]  # noqa: E731
    page.get_by_role("button", name="duplicate loss 1").click()
    page.wait_for_url(re.compile("l3="))
    becomes(titles, ["loss 1: Ranking", "loss 2: Ranking", "loss 3: Distance-sensitive (METU)"])
    page.wait_for_selector(".verdict.same")
    page.get_by_role("button", name="exchange loss 2").click()
    page.wait_for_selector(".verdict:not(.same)")
    becomes(lambda: titles()[1:], ["loss 2: Distance-sensitive (METU)", "loss 3: Ranking"])
    page.get_by_role("button", name="Add a loss").click()
    page.wait_for_url(re.compile("l4="))
    expect(page.get_by_role("button", name="Add a loss")).to_be_disabled()
    page.get_by_role("button", name="remove loss 4").click()
    page.get_by_role("button", name="remove loss 3").click()
    page.wait_for_url(lambda url: "l3=" not in url)
    expect(page.get_by_role("button", name="remove loss 1")).to_be_disabled()

    # An identity is recognised with its factor, and no longer after a slider moves.
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("Different losses")
    page.get_by_role("button", name="Angular = c · (1, −1)").click()
    page.wait_for_url(re.compile("l1=angular"))
    page.wait_for_selector(".verdict.same")
    becomes(lambda: float(verdict.get_attribute("data-factor")), pytest.approx(2 / math.cos(0.6) ** 2))
    becomes(lambda: len({tuple(readouts(page, k)) for k in (0, 1)}), 1)
    page.locator(".card").first.get_by_role("spinbutton", name="rho value").fill("0.7")
    page.keyboard.press("Tab")
    page.wait_for_selector(".verdict:not(.same)")

    opened(page, server, "?l1=ranking&l2=modified_entangle,rho:0.5,m:0.1&orders=1&clamp=0")
    expect(verdict).to_contain_text("The same loss")


def test_the_row_under_the_title_takes_the_loss_of_the_plane_along(page, server):
    go(page, f"{server.url}/fields?loss=ranking&m=0.3&n=0.3,0.6")
    page.get_by_role("slider", name="m", exact=True).press("ArrowRight")
    page.wait_for_url(re.compile(r"[?&]m=(?!0\.3(&|$))"))
    margin = re.search(r"[?&]m=([\d.]+)", address(page))[1]
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_url(re.compile(rf"/compare\?l1=ranking,m:{margin}&.*n=0.3,0.6"))
    expect(page.locator(".card").first.get_by_role("slider", name="m", exact=True)).to_have_value(margin)
