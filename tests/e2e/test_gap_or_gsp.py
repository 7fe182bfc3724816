"""GAP or GSP under a real mouse and keyboard, against the trainings of dmlcore."""

from __future__ import annotations

import re

import pytest

from dmlcore import data
from dmlcore.live import LiveTraining
from pages._ui import gap_or_gsp_spec as spec
from pages._ui.gap_or_gsp_spec import Study

pytestmark = pytest.mark.browser

STUDY = Study(prototypes=8, rate=2e-3)
LINK = "?prototypes=8&rate=0.002"


def opened(page, server, query):
    page.goto(f"{server.url}/gap_or_gsp{query}")
    page.wait_for_selector("canvas[data-side=gsp][data-step]")
    return page.locator("canvas[data-side=gsp]")


def at_step(page, canvas, condition):
    page.wait_for_function(
        f"(el) => {{ const k = Number(el.dataset.step); return {condition}; }}", arg=canvas.element_handle()
    )
    return int(canvas.get_attribute("data-step"))


def shows(page, name, value, digits=3):
    page.wait_for_function(
        "([el, v, e]) => Math.abs(parseFloat(el.innerText) - v) < e",
        arg=[page.locator(f'[data-readout="{name}"]').element_handle(), value, 0.6 * 10**-digits],
    )


def test_numbers_are_the_trainings_scrubbed_and_forked(page, server):
    canvas = opened(page, server, f"{LINK}&step=20")
    at_step(page, canvas, "k === 20")
    bags = data.load("tokens", seed=0)
    gap, gsp = (LiveTraining(STUDY.live(p), bags) for p in spec.POOLINGS)
    for name, training in (("gap", gap), ("gsp", gsp)):
        shows(page, f"{name} map_at_r", training.frame(20).map_at_r)
        shows(page, f"{name} loss", training.frame(20).loss)
    page.get_by_role("slider", name="step", exact=True).fill("18")
    at_step(page, canvas, "k === 18")
    shows(page, "gsp loss", gsp.frame(18).loss)
    page.wait_for_url(re.compile("step=18"))

    # A class stands out, and its numbers are told.
    page.get_by_role("button", name="class 3", exact=True).click()
    weight = 100 * gsp.frame(18).histograms[2, 64:].sum()
    page.get_by_text(re.compile(rf"Class 3: .*GSP puts {weight:.1f} % of its weight on shared")).first.wait_for()
    page.wait_for_url(re.compile("class=3"))

    # From step 18 on another gate: GSP alone changes.
    box = page.get_by_label("share pooled value")
    box.fill("0.6")
    box.press("Enter")
    page.wait_for_url(re.compile(r"then=18%3Amu%3D0.6"))
    page.get_by_role("group", name=re.compile("both trainings")).focus()
    for _ in range(3):
        step = at_step(page, canvas, "k >= 18")
        page.keyboard.press("ArrowRight")
        at_step(page, canvas, f"k === {step + 1}")
    changed = spec.from_query({"prototypes": "8", "rate": "0.002", "then": "18:mu=0.6"})
    forked = LiveTraining(changed.live("gsp"), bags)
    assert abs(forked.frame(21).loss - gsp.frame(21).loss) > 2e-3
    shows(page, "gsp loss", forked.frame(21).loss)
    shows(page, "gap loss", gap.frame(21).loss)


def test_it_plays_on_opening_until_paused(page, server):
    canvas = opened(page, server, "")
    at_step(page, canvas, "k >= 3")
    page.get_by_role("button", name="pause", exact=True).click()
    page.get_by_role("button", name="play", exact=True).wait_for()
    page.wait_for_url(re.compile(r"step=\d+"))
    assert f"step={canvas.get_attribute('data-step')}" in page.url
