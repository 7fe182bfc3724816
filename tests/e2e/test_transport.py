"""The transport page under a real mouse and keyboard: what it shows is what dmlcore computes."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch

from dmlcore.pooling import pooling_weights, prototype_costs, selection, transport
from dmlcore.pooling.convergence import contraction
from dmlcore.pooling.red_blue import informative
from pages._ui.transport_state import BLUE, RED, TransportState, code, map_codes, steps

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    page.goto(f"{server.url}/transport{query}")
    page.wait_for_selector(".lab[data-rest]", timeout=30_000)


def of_link(page) -> TransportState:
    return TransportState.from_query(dict(parse_qsl(urlsplit(page.url).query)))


def wait_for(page, state: TransportState) -> None:
    """Until the link is exactly that of this state."""
    query = f"?{state.link()}" if state.link() else ""
    page.wait_for_function("(query) => location.search === query", arg=query)


def cell(page, canvas, row, column):
    """Where the middle of a pixel lies on the screen."""
    box = canvas.bounding_box()
    return box["x"] + (column + 0.5) * box["width"] / 10, box["y"] + (row + 0.5) * box["height"] / 10


def solution(state: TransportState):
    """Weights (3, 100), the shares on the informative pixels, and r, straight from dmlcore."""
    cost = prototype_costs(torch.from_numpy(state.features()), torch.from_numpy(state.centres()))
    rho, _ = transport(cost, state.mu, state.epsilon)
    weights = torch.stack([selection(cost, state.mu), pooling_weights(rho, state.mu), torch.full((100,), 0.01)]).numpy()
    return weights, weights[:, informative(state.features())].sum(-1), float(contraction(rho, state.mu)[1])


def shows(page, state: TransportState, row: int, column: int) -> None:
    """The page comes to show the numbers of this state, and of its pixel under the pointer."""
    weights, shares, r = solution(state)
    for name, share in zip(("lp", "smoothed", "average"), shares, strict=True):
        page.wait_for_function(
            "([el, t]) => el.textContent === t",
            arg=[page.locator(f"[data-readout=share_{name}]").element_handle(), f"{share:.3f}"],
        )
    page.wait_for_function(
        "([el, r]) => Math.abs(Number(el.textContent) - r) < 1e-3 * r",
        arg=[page.locator("[data-readout=r]").element_handle(), r],
    )
    page.mouse.move(*cell(page, page.locator("[data-pooling=smoothed]"), row, column))
    lp, smoothed, average = (f"{w:.4f}" for w in weights[:, 10 * row + column])
    wanted = f"Row {row + 1}, column {column + 1}:.*Weights ◇ {lp} ○ {smoothed} □ {average}"
    page.wait_for_function(
        "([el, wanted]) => new RegExp(wanted).test(el.textContent)",
        arg=[page.locator(".cell").element_handle(), wanted],
    )


def test_paint_and_slide_and_drag_give_the_weights_of_the_library(page, server):
    opened(page, server)
    shows(page, TransportState(), 4, 2)

    # A stroke of the mouse over the background, in one row.
    canvas = page.locator("canvas.map")
    page.mouse.move(*cell(page, canvas, 2, 6))
    page.mouse.down()
    page.mouse.move(*cell(page, canvas, 2, 9), steps=3)
    page.mouse.up()
    page.wait_for_url(re.compile("paint="))
    expected = list(map_codes("figure"))
    expected[26:30] = [RED] * 4
    painted = of_link(page)
    assert painted.pixels == tuple(expected)
    shows(page, painted, 2, 7)

    # The slider of mu, held and moved.
    bar = page.get_by_role("slider", name="mu", exact=True).bounding_box()
    page.mouse.move(bar["x"] + bar["width"] * 0.2, bar["y"] + bar["height"] / 2)
    page.mouse.down()
    page.mouse.move(bar["x"] + bar["width"] * 0.6, bar["y"] + bar["height"] / 2, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile(r"mu=0\.[5-7]"))
    moved = of_link(page)
    assert (moved.pixels, 0.5 < moved.mu < 0.7) == (painted.pixels, True)
    shows(page, moved, 2, 7)

    # The blue prototype, dragged to the middle of the triangle's edge.
    ring, other = (page.locator(f"[data-handle=prototype-{k}]").bounding_box() for k in (2, 1))
    middle = [box["x"] + box["width"] / 2 for box in (ring, other)]
    page.mouse.move(middle[0], ring["y"] + ring["height"] / 2)
    page.mouse.down()
    page.mouse.move(sum(middle) / 2, ring["y"] + ring["height"] / 2, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile("prototypes="))
    dragged = of_link(page)
    np.testing.assert_allclose(steps(dragged.prototypes)[1], [80, 80], atol=2)
    shows(page, dragged, 7, 7)

    again = page.context.new_page()
    opened(again, server, "?" + urlsplit(page.url).query)
    shows(again, dragged, 7, 7)


def test_keys_paint_choose_and_undo(page, server):
    opened(page, server, "?map=equal&epsilon=20")
    page.locator("canvas.map").focus()
    for key in ("ArrowRight", "ArrowDown", "2", "Space", "Shift+ArrowRight"):
        page.keyboard.press(key)
    pixels = [0] * 100
    pixels[11:13] = [BLUE] * 2
    wait_for(page, TransportState(tuple(pixels), epsilon=20.0))
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    page.wait_for_url(re.compile(r"\?map=equal&epsilon=20$"))
    page.keyboard.press("Control+y")
    pixels[12] = 0
    wait_for(page, TransportState(tuple(pixels), epsilon=20.0))

    page.locator("[data-handle=prototype-1]").focus()
    page.keyboard.press("Shift+ArrowUp")
    along = (code(140, 0), BLUE)  # along the edge, towards green
    wait_for(page, TransportState(tuple(pixels), along, epsilon=20.0))
    page.keyboard.press("Delete")
    wait_for(page, TransportState(tuple(pixels), (BLUE,), epsilon=20.0))
    page.get_by_role("button", name="μ = 1 keeps everything").click()
    page.wait_for_url(re.compile(r"\?mu=1$"))
    page.wait_for_function("(el) => el.textContent === '∞'", arg=page.locator("[data-readout=bias]").element_handle())


def test_without_a_socket_the_page_itself_carries_the_answers(page, server):
    opened(page, server, "?socket=off")
    page.get_by_role("button", name="Clear", exact=True).click()
    page.wait_for_url(re.compile("map=equal"), timeout=30_000)
    shows(page, TransportState(map_codes("equal")), 0, 0)
    assert "socket=off" in page.url
