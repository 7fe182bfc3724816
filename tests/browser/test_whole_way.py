"""The main journey in dark mode, with real mouse and keyboard: Fields, training, a killed server, Neighbours, Explore.

Its name makes it the last of the browser tests, because the restarted server has to load every page again.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.storage.runs import RunStore
from tests.browser.harness import Server, becomes, drag, eventually, go, quiet

pytestmark = pytest.mark.browser


STEPS = 2000  # several seconds, so that the run is still training when the server has been killed


@pytest.fixture
def lab(server: Server):
    """Yield the server, which this test kills and other tests need again."""
    yield server
    if server.process is None or server.process.poll() is not None:
        server.start()


def settled(page, text) -> None:
    page.get_by_text(text).locator("visible=true").first.wait_for(timeout=120_000)


def sound_in_the_dark(page) -> None:
    """Assert that the page has no error and is dark (see `visitor` for JavaScript)."""
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", "rgb(18, 22, 28)")
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_from_a_force_field_to_a_trained_gallery(visitor, lab):
    # Home: the first link. On Fields, the loss falls as the negative is dragged out of the active region. A key ends
    # the opening animation.
    page = visitor(color_scheme="dark")
    go(page, lab.url)
    page.locator("canvas.plane[data-seq]").wait_for()
    sound_in_the_dark(page)
    page.get_by_role("link", name="Play with a loss").click()
    page.wait_for_url(re.compile("/fields"))
    page.locator('[data-readout="triplet"]').wait_for()
    page.locator("canvas.plane[data-seq]").wait_for()
    negative = page.get_by_role("button", name="negative at")
    negative.press("ArrowUp")
    quiet(lambda: negative.get_attribute("aria-label"))
    drag(page, negative, -78, -138)
    expect(page.locator('[data-readout="triplet"]')).to_have_text("satisfied")
    sound_in_the_dark(page)

    # A training run in three steps: data, settings, start.
    page.get_by_test_id("stTopNavSection").filter(has_text="Training").click()
    page.get_by_role("menuitem", name="New run").click()
    page.wait_for_url(re.compile("/data"))
    go(page, f"{lab.url}/data?base=digits&data=digits")
    page.get_by_role("link", name="Next: settings").click()
    steps = page.get_by_role("spinbutton", name=re.compile("^Steps"))
    steps.fill(str(STEPS))
    steps.press("Enter")
    onward = page.get_by_role("link", name="Next: start")
    expect(onward).to_have_attribute("href", re.compile(f"schedule.steps(=|%3D){STEPS}"))
    onward.click()
    settled(page, f"for {STEPS:,} steps")
    sound_in_the_dark(page)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"/runs\?run="))
    run_id = re.search(r"run=([a-z0-9-]+)", page.url)[1]
    settled(page, f"of {STEPS:,}")
    run = RunStore(lab.runs).open(run_id)

    # The server is killed; the training run continues, and the page finds it again.
    becomes(lambda: run.state().step, lambda step: step >= 20)
    lab.kill()
    before = run.state().step
    lab.start()
    page.reload()
    page.get_by_role("heading", name=re.compile(run_id[-4:])).wait_for()
    pairs = page.get_by_text(re.compile("pairs of one batch at step"))

    def opened() -> None:  # a page that reconnects may lose a press
        if not pairs.is_visible():
            page.get_by_text("Distances during training").click()
        expect(pairs).to_be_visible(timeout=5000)

    eventually(opened)
    settled(page, re.compile("MAP@R .* → "))
    eventually(lambda: expect(pairs).to_have_text(re.compile(f"at step {STEPS:,}")))  # it stayed open and up to date
    assert run.state().state == "done"
    assert run.state().step == STEPS > before
    page.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)").first.wait_for()
    sound_in_the_dark(page)

    # Neighbours: right and wrong differ without colour, and failures can be filtered.
    page.get_by_role("link", name="Explore").first.click()
    page.get_by_role("link", name="Neighbours", exact=True).first.click()
    page.wait_for_selector(".neighbours .found img")
    page.get_by_role("button", name="Keys").wait_for()  # until its listener is loaded, a click loads the app again
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
    page.locator(".neighbours .found img").first.wait_for()
    sound_in_the_dark(page)

    # Explore, with an image under the pointer.
    go(page, f"{lab.url}/explore?run={run_id}")
    canvas = page.locator("canvas.map")
    canvas.wait_for(timeout=60_000)
    settled(page, "of 896 test embeddings of 10 classes")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    image = page.locator(".card img")
    image.wait_for()
    becomes(lambda: image.evaluate("(img) => img.decode().then(() => img.naturalWidth)"), lambda width: width > 0)
    page.locator("canvas.map[data-painted]").wait_for()
    sound_in_the_dark(page)
