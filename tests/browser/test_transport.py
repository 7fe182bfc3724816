"""The Transport page with real mouse and keyboard input: everything shown equals what dmlcore computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from dmlcore.pooling import pooling_weights, prototype_costs, selection, transport
from dmlcore.pooling.analysis.convergence import contraction
from dmlcore.pooling.analysis.red_blue import informative
from pages.pooling.transport.state import BLUE, RED, TransportState, code, map_codes, steps
from tests.browser.harness import address, becomes, drag, go, quiet

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    go(page, f"{server.url}/transport{query}")
    page.wait_for_selector(".lab[data-rest]")


def query_of(page) -> str:
    return urlsplit(address(page)).query


def linked(page, wanted: Callable[[TransportState], bool]) -> TransportState:
    """Return the state of the link, once it fulfils the condition."""
    return becomes(lambda: TransportState.from_query(dict(parse_qsl(query_of(page)))), wanted)


def wait_for(page, state: TransportState) -> None:
    """Wait until the link is exactly that of this state."""
    becomes(lambda: query_of(page), state.link())


def hover(page, canvas, row, column):
    """Move the mouse to the centre of a pixel of a map that is at rest; return the side of a pixel."""
    canvas.scroll_into_view_if_needed()
    box = quiet(canvas.bounding_box, 0.2)
    side = box["width"] / 10
    canvas.hover(position={"x": (column + 0.5) * side, "y": (row + 0.5) * side})
    return side


def solution(state: TransportState):
    """Return the weights (3, 100), the shares on the informative pixels, and r, straight from dmlcore."""
    cost = prototype_costs(torch.from_numpy(state.features()), torch.from_numpy(state.centres()))
    rho, _ = transport(cost, state.mu, state.epsilon)
    weights = torch.stack([selection(cost, state.mu), pooling_weights(rho, state.mu), torch.full((100,), 0.01)]).numpy()
    return weights, weights[:, informative(state.features())].sum(-1), float(contraction(rho, state.mu)[1])


def shows(page, state: TransportState, row: int, column: int) -> None:
    """Wait until the page shows the numbers of this state and of the pixel under the pointer."""
    weights, shares, r = solution(state)
    for name, share in zip(("lp", "smoothed", "average"), shares, strict=True):
        expect(page.locator(f"[data-readout=share_{name}]")).to_have_text(f"{share:.3f}")
    # Locate the elements at each poll, because the panel is rebuilt when a slider comes to rest.
    becomes(lambda: float(page.locator("[data-readout=r]").inner_text()), lambda shown: abs(shown - r) < 1e-3 * r)
    hover(page, page.locator("[data-pooling=smoothed]"), row, column)
    lp, smoothed, average = (f"{w:.4f}" for w in weights[:, 10 * row + column])
    expect(page.locator(".cell")).to_have_text(
        re.compile(f"Row {row + 1}, column {column + 1}:.*Weights ◇ {lp} ○ {smoothed} □ {average}")
    )


def test_paint_and_slide_and_drag_give_the_weights_of_the_library(page, guest, server):
    opened(page, server)
    shows(page, TransportState(), 4, 2)

    # Draw a stroke over the background, in one row.
    canvas = page.locator("canvas.map")
    side = hover(page, canvas, 2, 6)
    box = canvas.bounding_box()
    page.mouse.down()
    page.mouse.move(box["x"] + 9.5 * side, box["y"] + 2.5 * side, steps=3)
    page.mouse.up()
    expected = list(map_codes("figure"))
    expected[26:30] = [RED] * 4
    painted = linked(page, lambda state: state.pixels == tuple(expected))
    shows(page, painted, 2, 7)

    # Hold and move the slider of mu.
    slider = page.get_by_role("slider", name="mu", exact=True)
    drag(page, slider, 0.1 * slider.bounding_box()["width"], 0)
    moved = linked(page, lambda state: 0.55 < state.mu < 0.7)
    assert moved.pixels == painted.pixels
    shows(page, moved, 2, 7)

    # Drag the blue prototype to the middle of the triangle's edge.
    blue, red = (page.locator(f"[data-handle=prototype-{k}]") for k in (2, 1))
    drag(page, blue, (red.bounding_box()["x"] - blue.bounding_box()["x"]) / 2, 0)
    dragged = linked(page, lambda state: np.abs(np.asarray(steps(state.prototypes)[1]) - 80).max() <= 2)
    shows(page, dragged, 7, 7)

    opened(guest, server, f"?{dragged.link()}")
    shows(guest, dragged, 7, 7)
    wait_for(guest, dragged)


def test_keys_paint_choose_and_undo(page, server):
    opened(page, server, "?map=equal&epsilon=20")
    canvas = page.locator("canvas.map")
    for key in ("ArrowRight", "ArrowDown", "2", "Space", "Shift+ArrowRight"):
        canvas.press(key)
    pixels = [0] * 100
    pixels[11:13] = [BLUE] * 2
    wait_for(page, TransportState(tuple(pixels), epsilon=20.0))
    canvas.press("Control+z")
    canvas.press("Control+z")
    becomes(lambda: query_of(page), "map=equal&epsilon=20")
    canvas.press("Control+y")
    pixels[12] = 0
    wait_for(page, TransportState(tuple(pixels), epsilon=20.0))

    handle = page.locator("[data-handle=prototype-1]")
    handle.press("Shift+ArrowUp")
    along = (code(140, 0), BLUE)  # along the edge, towards green
    wait_for(page, TransportState(tuple(pixels), along, epsilon=20.0))
    handle.press("Delete")
    wait_for(page, TransportState(tuple(pixels), (BLUE,), epsilon=20.0))
    page.get_by_role("button", name="μ = 1 keeps everything").click()
    becomes(lambda: query_of(page), "mu=1")
    expect(page.locator("[data-readout=bias]")).to_have_text("∞")


def test_without_a_socket_the_page_itself_carries_the_answers(page, server):
    opened(page, server, "?socket=off")
    page.get_by_role("button", name="Clear", exact=True).click()
    becomes(lambda: query_of(page), "map=equal&socket=off")
    shows(page, TransportState(map_codes("equal")), 0, 0)
