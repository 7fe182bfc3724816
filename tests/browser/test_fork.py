"""A fork is started in a browser, shares one time axis with its parent, and its differences are handed on to
Neighbours.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.inspection import differences, neighbours, selections, snapshots
from dmlcore.storage.runs import Run, RunStore, series
from tests.browser.harness import Server, address, becomes, eventually, go
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def parent(server: Server) -> Run:
    return make_run(server.runs, "schedule.keep_every=4", "name=Parent", "model.hidden=[16]")


def test_a_fork_from_the_form_to_its_curves_on_one_clock(page, server, parent):
    go(page, f"{server.url}/fork?run={parent.id}&step=4")
    page.get_by_text("will repeat its parent bit for bit").wait_for()
    margin = page.get_by_role("slider", name=re.compile("margin"))
    before = margin.get_attribute("aria-valuetext")
    margin.press("ArrowRight")
    becomes(lambda: margin.get_attribute("aria-valuetext") != before, True)
    page.get_by_text(re.compile("Ranking, margin: 0.1 → ")).first.wait_for()
    page.get_by_role("button", name="Start the fork").click()
    store = RunStore(server.runs)
    made = eventually(lambda: next(run for run in store.list() if run.spec.fork.run == parent.id))
    becomes(made.status, "done")
    assert series(made.metrics()[0], "step", "loss")[0] == [5, 6, 7, 8]
    assert made.spec.loss.parameters != parent.spec.loss.parameters
    page.get_by_text(re.compile("From step 4 of .*Changed: Loss parameters")).wait_for()
    expect(page.get_by_text("Parent from 4 · Ranking").first).to_be_visible()
    page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").first.wait_for()


def test_a_difference_is_handed_on_to_the_gallery(page, server, parent):
    snapshots.embed_all(parent)
    go(page, f"{server.url}/differences?run={parent.id}&before=0&after=8")
    page.locator(".difference").first.wait_for()
    a, b = (snapshots.snapshots(parent)[at].embeddings for at in (0, -1))
    found = differences.difference(neighbours.read(a), neighbours.read(b))
    kind = "lost" if found.lost.any() else "gained"
    count = len(found.queries(kind))
    page.get_by_role("button", name=f"Select these {count:,}").click()
    page.get_by_text(f"{count:,} samples selected").wait_for()
    (name,) = eventually(lambda: re.findall("selection=([0-9a-f]{16})", address(page)))
    assert selections.load(parent, name).indices.tolist() == sorted(found.indices[found.queries(kind)].tolist())
    first = page.locator(".difference img").first
    becomes(lambda: first.evaluate("(x) => x.decode().then(() => x.naturalWidth)"), 128)
