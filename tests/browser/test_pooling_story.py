"""The four steps of Pooling through their links: each receives the settings of the previous one, and going back
restores them.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from pages.pooling.gap_vs_gsp.state import PoolingStudy
from pages.pooling.transport.state import TransportState
from tests.browser.harness import address, becomes, go

pytestmark = pytest.mark.browser


def at(page, step: str, query_is) -> dict[str, str]:
    """Return the query of the address, once the page is that step and its query fulfils a condition."""

    def read() -> dict[str, str]:
        parts = urlsplit(address(page))
        assert parts.path == f"/{step}", parts.path
        return dict(parse_qsl(parts.query))

    return becomes(read, query_is)


def door(page, step: str) -> None:
    page.locator(f'[data-door="{step}"]').click()


def test_an_image_becomes_a_map_its_gate_is_trained_and_goes_on_to_pictures(page, server):
    verdict = page.locator(".conclusion")
    go(page, f"{server.url}/prototypes?m=32&picture=1,5")
    expect(verdict).to_contain_text(re.compile(r"≈ prototype histogram.*Classes share \d+ %"))

    # The image becomes the map of the gate, where the gate is made softer.
    link = page.locator('[data-door="transport"]').get_attribute("href")
    wanted = TransportState.from_query(dict(parse_qsl(urlsplit(link).query)))
    door(page, "transport")
    expect(verdict).to_contain_text(re.compile(r"puts \d+\.\d % of its weight"))
    at(page, "transport", lambda query: TransportState.from_query(query) == wanted)
    expect(page.locator(".origin")).to_contain_text("This is image 6 of class 1")
    hardness = page.get_by_label("epsilon value")
    hardness.fill("6")
    hardness.press("Enter")
    changed = at(page, "transport", lambda query: query.get("epsilon") == "6")

    # That gate is trained, on four classes.
    door(page, "gap_vs_gsp")
    page.wait_for_selector("canvas[data-side=gsp][data-step]")
    expect(verdict).to_contain_text(re.compile(r"^(Not yet|Yes|In part|No).*GSP leaves \d+\.\d % of its weight"))
    mu = changed["mu"]
    at(
        page,
        "gap_vs_gsp",
        lambda query: PoolingStudy.from_query(query) == PoolingStudy(classes=4, mu=float(mu), epsilon=6),
    )
    expect(page.locator(".chips button:visible")).to_have_count(4)

    # Going back restores this step and the one before; the same link leads forward again.
    door(page, "transport")
    at(page, "transport", lambda query: query == changed)
    door(page, "prototypes")
    at(page, "prototypes", lambda query: query == {"m": "32", "picture": "1,5"})
    expect(verdict).to_contain_text("histogram")
    door(page, "transport")
    at(page, "transport", lambda query: query == changed)
    expect(verdict).to_contain_text("of its weight on the")

    # On to images that everybody has, and with that gate to New run.
    door(page, "gap_vs_gsp")
    page.wait_for_selector("canvas[data-side=gsp][data-step]")
    door(page, "collage")
    at(page, "collage", lambda query: query == {"mu": mu, "epsilon": "6"})
    expect(page.locator(".collage .line")).to_have_count(3)
    expect(verdict).to_contain_text("(mean of 24 images); uniform weights give 25 %")
    door(page, "settings")
    expect(page.get_by_role("button", name="Start training")).to_be_enabled()  # the page has written its address
    spec = at(page, "settings", lambda query: "set" in query)["set"]
    assert f"pooling.mu={mu}" in spec
    assert "pooling.epsilon=6.0" in spec
