"""The whole way, with a real mouse and keyboard: fields, training, a killed server, gallery, map; and screenshots."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from dmlcore.runs import RunStore
from tests.e2e.harness import THEMES, WIDTHS, Server

pytestmark = pytest.mark.browser


@pytest.fixture
def lab(tmp_path: Path):
    """A server of its own, because this test kills it."""
    server = Server(tmp_path / "runs").start()
    yield server
    server.kill()


def settled(page, text) -> None:
    page.get_by_text(text).locator("visible=true").first.wait_for(timeout=60_000)


def test_from_a_force_field_to_a_trained_gallery(browser, lab, screenshots):
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    # A force field: the loss falls as the negative is dragged out of the active region.
    page.goto(lab.url)
    page.wait_for_selector("canvas.plane[data-seq]")
    box = page.get_by_role("button", name="negative at").bounding_box()
    page.mouse.move(box["x"] + 18, box["y"] + 18)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] - 120, steps=10)
    page.mouse.up()
    page.wait_for_function(
        "(el) => el.innerText === 'satisfied'", arg=page.locator('[data-readout="triplet"]').element_handle()
    )

    # A training from the sidebar.
    page.get_by_test_id("stTopNavSection").filter(has_text="Training").click()
    page.get_by_role("menuitem", name="Train").click()
    steps = page.get_by_role("spinbutton", name=re.compile("^Steps"))
    steps.fill("3000")
    steps.press("Enter")
    settled(page, "3,000 steps of")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"/runs\?run="))
    run_id = re.search(r"run=([a-z0-9-]+)", page.url)[1]
    settled(page, "of 3,000")
    run = RunStore(lab.runs).open(run_id)

    # The server dies; the training does not, and the page finds it again.
    while run.state().step < 20:
        time.sleep(0.05)
    lab.kill()
    before = run.state().step
    lab.start()
    page.reload()
    page.get_by_role("heading", name=re.compile(run_id[-4:])).wait_for()
    settled(page, re.compile("MAP@R .* → "))
    assert run.state().state == "done"
    assert run.state().step == 3000 > before

    # The gallery: right and wrong are told apart without colour, and failures can be picked out.
    page.get_by_role("link", name="Gallery").first.click()
    page.wait_for_selector(".neighbours .found img")
    first = page.locator(".neighbours .found figure").first
    assert first.locator(".mark").inner_text() in ("✓", "✗")
    assert re.search(r"\d\.\d{3}", first.inner_text())
    page.get_by_text("Only failures").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.neighbours .row')].every("
        "(row) => row.querySelector('.found figure').classList.contains('wrong'))"
    )
    page.locator(".neighbours .found a.frame").first.click()
    page.wait_for_url(re.compile("query="))

    # The map, with a picture under the pointer.
    page.goto(f"{lab.url}/maps?run={run_id}")
    canvas = page.locator("canvas.map")
    canvas.wait_for(timeout=60_000)
    settled(page, "of 896 test embeddings of 10 classes")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    picture = page.locator(".card img")
    picture.wait_for()
    assert picture.evaluate("(img) => img.decode().then(() => img.naturalWidth)") > 0

    folder = screenshots
    for theme in THEMES:
        for width in WIDTHS:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
            shot = context.new_page()
            for name in ("", "train", f"runs?run={run_id}", f"gallery?run={run_id}", f"maps?run={run_id}"):
                shot.goto(f"{lab.url}/{name}")
                shot.locator("canvas, .neighbours, h1").first.wait_for()
                shot.wait_for_timeout(1200)
                shot.screenshot(path=folder / f"journey-{name.split('?')[0] or 'fields'}-{theme}-{width}.png")
            context.close()
    assert errors == []
    shutil.rmtree(lab.runs)
