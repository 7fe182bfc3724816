"""GAP vs GSP with real mouse and keyboard input, compared with the training runs of dmlcore."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from dmlcore import data
from dmlcore.replay.recorded_training import LiveTraining
from pages.pooling.gap_vs_gsp import state as spec
from pages.pooling.gap_vs_gsp.state import PoolingStudy
from tests.browser.harness import address, becomes, go

pytestmark = pytest.mark.browser

STUDY = PoolingStudy(prototypes=8, rate=2e-3)
LINK = "?prototypes=8&rate=0.002"


def opened(page, server, query):
    go(page, f"{server.url}/gap_vs_gsp{query}")
    page.wait_for_selector("canvas[data-side=gsp][data-step]")
    return page.locator("canvas[data-side=gsp]")


def at_step(canvas, wanted):
    """Return the step shown, once it equals or fulfils `wanted`."""
    return becomes(lambda: int(canvas.get_attribute("data-step")), wanted)


def shows(page, name, value):
    readout = page.locator(f'[data-readout="{name}"]')
    becomes(lambda: float(readout.inner_text()), lambda shown: abs(shown - value) < 6e-4)


def linked(page, name, wanted):
    """Return the link's value of a parameter, once it is `wanted`."""
    return becomes(lambda: dict(parse_qsl(urlsplit(address(page)).query)).get(name), wanted)


def test_numbers_are_the_trainings_scrubbed_and_forked(page, guest, server):
    canvas = opened(page, server, f"{LINK}&step=20")
    at_step(canvas, 20)
    bags = data.load("tokens", seed=0)
    gap, gsp = (LiveTraining(STUDY.live(p), bags) for p in spec.POOLINGS)
    for name, training in (("gap", gap), ("gsp", gsp)):
        shows(page, f"{name} map_at_r", training.frame(20).map_at_r)
        shows(page, f"{name} loss", training.frame(20).loss)
    page.get_by_role("slider", name="step", exact=True).fill("18")
    at_step(canvas, 18)
    shows(page, "gsp loss", gsp.frame(18).loss)
    linked(page, "step", "18")

    # A class is highlighted, and its numbers are shown.
    page.get_by_role("button", name="class 3", exact=True).click()
    weight = 100 * gsp.frame(18).histograms[2, 64:].sum()
    expect(page.locator(".about")).to_contain_text(
        re.compile(rf"Class 3: .*GSP puts {weight:.1f} % of its weight on shared")
    )
    linked(page, "class", "3")

    # From step 18 the gate differs: only GSP changes.
    box = page.get_by_label("Pooled share value")
    box.fill("0.6")
    box.press("Enter")
    linked(page, "then", "18:mu=0.6")
    both = page.get_by_role("group", name=re.compile("both training runs"))
    for step in (19, 20, 21):
        both.press("ArrowRight")
        at_step(canvas, step)
    changed = PoolingStudy.from_query({"prototypes": "8", "rate": "0.002", "then": "18:mu=0.6"})
    forked = LiveTraining(changed.live("gsp"), bags)
    assert abs(forked.frame(21).loss - gsp.frame(21).loss) > 2e-3
    shows(page, "gsp loss", forked.frame(21).loss)
    shows(page, "gap loss", gap.frame(21).loss)

    linked(page, "step", "21")
    at_step(opened(guest, server, f"?{urlsplit(address(page)).query}"), 21)
    shows(guest, "gsp loss", forked.frame(21).loss)
    expect(guest.get_by_role("button", name="class 3", exact=True)).to_have_attribute("aria-pressed", "true")


@pytest.mark.usefixtures("in_motion")
def test_it_plays_on_opening_until_paused(page, server):
    canvas = opened(page, server, "")
    at_step(canvas, lambda k: k >= 3)
    page.get_by_role("button", name="pause", exact=True).click()
    page.get_by_role("button", name="play", exact=True).wait_for()
    linked(page, "step", lambda step: step == canvas.get_attribute("data-step"))
