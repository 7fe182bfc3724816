"""The whole way, with a real mouse and keyboard: fields, training, a killed server, gallery, map; and the dark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dmlcore.storage.runs import RunStore
from tests.browser.harness import Server, becomes, drag, eventually, go, quiet

pytestmark = pytest.mark.browser


@pytest.fixture
def lab(tmp_path: Path):
    """A server of its own, because this test kills it."""
    server = Server(tmp_path / "runs").start()
    yield server
    server.kill()


def settled(page, text) -> None:
    page.get_by_text(text).locator("visible=true").first.wait_for(timeout=120_000)


def test_from_a_force_field_to_a_trained_gallery(visitor, lab):
    page = visitor()

    # A force field: the loss falls as the negative is dragged out of the active region. A key ends the opening show.
    go(page, lab.url)
    page.locator("canvas.plane[data-seq]").wait_for()
    negative = page.get_by_role("button", name="negative at")
    negative.press("ArrowUp")
    quiet(lambda: negative.get_attribute("aria-label"))
    drag(page, negative, -78, -138)
    expect(page.locator('[data-readout="triplet"]')).to_have_text("satisfied")

    # A training run from the sidebar.
    page.get_by_test_id("stTopNavSection").filter(has_text="Training").click()
    page.get_by_role("menuitem", name="Train").click()
    page.wait_for_url(re.compile("/train"))
    go(page, f"{lab.url}/train?base=digits")
    settled(page, "600 steps of")
    steps = page.get_by_role("spinbutton", name=re.compile("^Steps"))
    steps.fill("1200")
    steps.press("Enter")
    settled(page, "1,200 steps of")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"/runs\?run="))
    run_id = re.search(r"run=([a-z0-9-]+)", page.url)[1]
    settled(page, "of 1,200")
    run = RunStore(lab.runs).open(run_id)

    # The server dies; the training run does not, and the page finds it again.
    becomes(lambda: run.state().step, lambda step: step >= 20)
    lab.kill()
    before = run.state().step
    lab.start()
    page.reload()
    page.get_by_role("heading", name=re.compile(run_id[-4:])).wait_for()
    pairs = page.get_by_text(re.compile("Pairs of a batch at step"))

    def opened() -> None:  # the page that comes to life again may lose a press
        if not pairs.is_visible():
            page.get_by_text("Distances over the training").click()
        expect(pairs).to_be_visible(timeout=5000)

    eventually(opened)
    settled(page, re.compile("MAP@R .* → "))
    eventually(lambda: expect(pairs).to_have_text(re.compile("at step 1,200")))  # it stayed open, and kept up
    assert run.state().state == "done"
    assert run.state().step == 1200 > before

    # The gallery: right and wrong are told apart without colour, and failures can be picked out.
    page.get_by_role("link", name="Gallery").first.click()
    page.wait_for_selector(".neighbours .found img")
    first = page.locator(".neighbours .found figure").first
    expect(first.locator(".mark")).to_have_text(re.compile("^[✓✗]$"))
    expect(first).to_have_text(re.compile(r"\d\.\d{3}"))
    page.get_by_text("Only failures").click()
    kinds = lambda: page.locator(".neighbours .row").evaluate_all(  # noqa: E731
        "(rows) => rows.map((row) => row.querySelector('.found figure').classList.contains('wrong'))"
    )
    becomes(kinds, lambda wrong: wrong and all(wrong))
    page.locator(".neighbours .found a.frame").first.click()
    page.wait_for_url(re.compile("query="))

    # The map, with an image under the pointer.
    go(page, f"{lab.url}/maps?run={run_id}")
    canvas = page.locator("canvas.map")
    canvas.wait_for(timeout=60_000)
    settled(page, "of 896 test embeddings of 10 classes")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    image = page.locator(".card img")
    image.wait_for()
    becomes(lambda: image.evaluate("(img) => img.decode().then(() => img.naturalWidth)"), lambda width: width > 0)

    # The same in the dark: nothing fails there either (see `visitor`).
    dark = visitor(color_scheme="dark")
    for name in ("", "train", f"runs?run={run_id}", f"gallery?run={run_id}", f"maps?run={run_id}"):
        go(dark, f"{lab.url}/{name}")
        dark.locator("canvas, .neighbours, h1").first.wait_for()
        expect(dark.get_by_test_id("stException")).to_have_count(0)
    shutil.rmtree(lab.runs)
