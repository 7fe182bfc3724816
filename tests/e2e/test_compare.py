"""The compare page under a real mouse: linked points, separate sliders, the verdict, the link."""

from __future__ import annotations

import math
import re

import pytest

pytestmark = pytest.mark.browser


def opened(page, server, query="?n=0.35,0.55"):
    page.goto(f"{server.url}/compare{query}")
    page.wait_for_selector(".cards[data-seq]")
    return page.locator(".cards")


def wait_beyond(page, cards, before: int) -> None:
    page.wait_for_function("([el, n]) => Number(el.dataset.seq) > n", arg=[cards.element_handle(), before])


def seq(cards) -> int:
    return int(cards.get_attribute("data-seq"))


def readouts(page, k: int) -> list[str]:
    return page.locator(".card").nth(k).locator("[data-readout]").all_inner_texts()


def labels(page, name: str) -> list[str]:
    return [h.get_attribute("aria-label") for h in page.locator(f'[data-point="{name}"]').all()]


def press_and_move(page, locator, dx: float, dy: float) -> None:
    locator.scroll_into_view_if_needed()
    box = locator.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=12)


def test_a_point_dragged_in_one_plane_moves_in_all_and_the_link_reopens_it(page, server):
    cards = opened(page, server)
    before, loss = seq(cards), [readouts(page, k) for k in (0, 1)]
    press_and_move(page, page.locator(".card").nth(1).locator('[data-point="negative"]'), -50, 40)
    wait_beyond(page, cards, before + 2)
    page.mouse.up()
    page.wait_for_url(lambda url: "n=0.35" not in url and "n=" in url)
    seen = labels(page, "negative")
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert "0.35, 0.55" not in seen[0]
    after = [readouts(page, k) for k in (0, 1)]
    assert after[0] != loss[0]
    assert after[1] != loss[1]

    again = page.context.new_page()
    opened(again, server, "?" + page.url.split("?")[1])
    assert labels(again, "negative") == seen
    assert [readouts(again, k) for k in (0, 1)] == after


def test_a_slider_changes_its_own_loss_only(page, server):
    cards = opened(page, server)
    untouched, changed = readouts(page, 0), readouts(page, 1)
    before = seq(cards)
    press_and_move(page, page.locator(".card").nth(1).get_by_role("slider", name="s", exact=True), 60, 0)
    wait_beyond(page, cards, before + 2)
    page.mouse.up()
    page.wait_for_url(re.compile(r"l2=distance_sensitive,s:"))
    assert readouts(page, 0) == untouched
    assert readouts(page, 1) != changed
    assert "l1=" not in page.url


def test_an_identity_is_recognised_with_its_factor_and_lost_when_a_slider_moves(page, server):
    opened(page, server)
    verdict = page.locator(".verdict")
    assert "Different losses" in verdict.inner_text()
    page.get_by_role("button", name="Angular = c · (1, −1)").click()
    page.wait_for_url(re.compile("l1=angular"))
    page.wait_for_selector(".verdict.same")
    assert float(verdict.get_attribute("data-factor")) == pytest.approx(2 / math.cos(0.6) ** 2)
    assert readouts(page, 0) == readouts(page, 1)
    page.locator(".card").first.get_by_role("spinbutton", name="rho value").fill("0.7")
    page.keyboard.press("Tab")
    page.wait_for_selector(".verdict:not(.same)")

    reopened = page.context.new_page()
    opened(reopened, server, "?l1=ranking&l2=modified_entangle,rho:0.5,m:0.1&orders=1&clamp=0")
    assert "The same loss" in reopened.locator(".verdict").inner_text()


def test_losses_are_added_exchanged_and_removed(page, server):
    opened(page, server)
    titles = lambda: [c.get_attribute("aria-label") for c in page.locator(".card").all()]  # noqa: E731
    page.get_by_role("button", name="duplicate loss 1").click()
    page.wait_for_url(re.compile("l3="))
    assert titles() == ["loss 1: Ranking", "loss 2: Ranking", "loss 3: Distance-sensitive (METU)"]
    page.wait_for_selector(".verdict.same")
    page.get_by_role("button", name="exchange loss 2").click()
    page.wait_for_selector(".verdict:not(.same)")
    assert titles()[1:] == ["loss 2: Distance-sensitive (METU)", "loss 3: Ranking"]
    page.get_by_role("button", name="Add a loss").click()
    page.wait_for_url(re.compile("l4="))
    assert page.get_by_role("button", name="Add a loss").is_disabled()
    page.get_by_role("button", name="remove loss 4").click()
    page.get_by_role("button", name="remove loss 3").click()
    page.wait_for_url(lambda url: "l3=" not in url)
    assert page.get_by_role("button", name="remove loss 1").is_disabled()


def test_the_pointer_reads_all_planes_at_the_same_place(page, server):
    opened(page, server)
    box = page.locator(".card").first.locator("canvas.plane").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"])
    chips = page.locator(".chip")
    page.wait_for_function("(el) => el.style.display === '' && el.textContent", arg=chips.first.element_handle())
    first, second, left = (
        float(re.search(r"loss (\S+)", t).group(1).replace("−", "-")) for t in chips.all_inner_texts()
    )
    assert left == pytest.approx(first - second, abs=2e-3)


def test_without_a_socket_the_page_itself_carries_the_fields(page, server):
    cards = opened(page, server, "?n=0.35,0.55&socket=off")
    before = seq(cards)
    press_and_move(page, page.locator(".card").first.locator('[data-point="positive"]'), 30, -30)
    page.mouse.up()
    wait_beyond(page, cards, before + 1)
    page.wait_for_url(re.compile(r"[?&]p="))
    assert "socket=off" in page.url
