"""The Toy training page with real mouse and keyboard input."""

from __future__ import annotations

import shutil
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from dmlcore.replay import toy_runs
from dmlcore.replay.recorded_training import LiveTraining
from pages.losses.toy_training import recording
from pages.losses.toy_training import state as toys_state
from pages.shared.server.wire import unpack
from tests.browser import exported
from tests.browser.harness import address, becomes, go, quiet

pytestmark = pytest.mark.browser

QUIET = "?data=moons&classes=2&samples=4&step=2"  # a link with a step opens paused
TOY = toys_state.Toy.from_query({"data": "moons", "classes": "2", "samples": "4"})


def opened(page, server, query=QUIET):
    go(page, f"{server.url}/toy_training{query}")
    page.wait_for_selector(".work[data-step]")
    return page.locator(".work[data-step]")


def at_step(work, wanted) -> int:
    """Return the step shown, once it equals or fulfils `wanted`."""
    return becomes(lambda: int(work.get_attribute("data-step")), wanted)


def shows(page, side: int, name: str, value: float) -> None:
    """Wait until the readout of a side is this number."""
    readout = page.locator(".view.embedding").nth(side).locator(f'[data-readout="{name}"]')
    becomes(lambda: float(readout.inner_text()), lambda shown: abs(shown - value) < 6e-4)


def linked(page) -> dict[str, str]:
    """Return the query of the current link."""
    return dict(parse_qsl(urlsplit(address(page)).query))


def trainings(toy, step):
    found = [LiveTraining(toy.live(i), toy.dataset) for i in range(len(toy.sides))]
    for training in found:
        training.frame(step)
    return found


@pytest.mark.usefixtures("in_motion")
def test_a_recording_plays_on_opening_and_pause_stops_it(page, server):
    work = opened(page, server, "")
    stored = unpack(recording.PATH.read_bytes())
    becomes(lambda: int(work.get_attribute("data-last")), lambda last: last >= stored["ready"])
    at_step(work, lambda k: k >= 8)
    page.get_by_role("button", name="pause", exact=True).click()
    page.get_by_role("button", name="play", exact=True).wait_for()
    becomes(lambda: linked(page).get("step") == work.get_attribute("data-step"), True)
    # However far it came on a slow machine, the first steps are those of the recording.
    stopped = 8
    page.get_by_role("slider", name="step", exact=True).fill(str(stopped))
    becomes(lambda: linked(page).get("step"), str(stopped))
    page.locator(".notice", has_text="This is a recording").wait_for()
    for i in range(2):
        shows(page, i, "loss", stored["arrays"][f"curve_{i}"][stopped, 0])
    page.locator("table tr.ours", has_text="untrained network").wait_for()


def test_numbers_are_the_librarys_and_a_change_forks_the_future(page, guest, server):
    work = opened(page, server)
    at_step(work, 2)
    before = trainings(TOY, 12)
    page.get_by_label("speed").select_option("1")
    page.get_by_role("button", name="play", exact=True).click()
    at_step(work, lambda k: k >= 12)
    page.get_by_role("button", name="pause", exact=True).click()
    page.get_by_role("slider", name="step", exact=True).fill("10")
    at_step(work, 10)
    for i in range(2):
        shows(page, i, "loss", before[i].frames[10].loss)
        shows(page, i, "MAP@R", before[i].frames[10].map_at_r)

    slider = page.get_by_role("slider", name="A: m", exact=True)
    slider.press("ArrowRight")
    becomes(lambda: linked(page).get("then", ""), lambda then: then.startswith("10:a.m"))
    page.get_by_role("button", name="one batch on").click()
    at_step(work, 11)
    forked = toys_state.Toy.from_query(linked(page))
    assert [change.at for change in forked.changes] == [10]
    after = trainings(forked, 11)
    assert after[0].frames[11].loss != before[0].frames[11].loss
    assert after[1].frames[11].loss == before[1].frames[11].loss
    for i in range(2):
        shows(page, i, "loss", after[i].frames[11].loss)
    page.get_by_role("button", name="one batch back").click()
    at_step(work, 10)
    shows(page, 0, "loss", before[0].frames[10].loss)

    page.get_by_role("group", name="forces of B").get_by_role("button", name="pushes").click()
    link = becomes(lambda: linked(page), lambda q: "b.moves=pushes" in q.get("then", "") and q.get("step") == "10")
    other = opened(guest, server, f"?{urlencode(link)}")
    at_step(other, 10)
    pushes = guest.get_by_role("group", name="forces of B").get_by_role("button", name="pushes")
    expect(pushes).to_have_attribute("aria-pressed", "true")
    shows(guest, 0, "loss", before[0].frames[10].loss)
    becomes(lambda: linked(guest), link)


def test_space_is_turned_by_hand_and_reduced_motion_stands_still(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    work = opened(page, server, "")
    quiet(lambda: work.get_attribute("data-seq"))  # painted, and at rest
    at_step(work, 0)
    expect(page.get_by_role("button", name="play", exact=True)).to_be_visible()
    becomes(lambda: page.evaluate("document.documentElement.scrollWidth <= innerWidth"), True)

    work = opened(page, server, "?socket=off&data=moons")
    quiet(lambda: work.get_attribute("data-seq"))
    canvas = page.locator(".view.input canvas")
    before = canvas.evaluate("(el) => el.toDataURL()")
    canvas.press("ArrowRight")
    becomes(lambda: canvas.evaluate("(el) => el.toDataURL()") != before, True)
    page.get_by_role("button", name="one batch on").click()
    at_step(work, 1)
    expect(page.locator(".notice")).to_contain_text("No direct connection.")


@pytest.fixture
def glyphs(monkeypatch):
    """Return a seed of glyphs with a network trained for two steps, so that the server need not wait for all steps."""
    seed = 2_000_000_000  # a seed that no other test uses
    spec = toy_runs._spot_spec("glyphs", seed)
    monkeypatch.setattr(toy_runs, "_spot_spec", lambda *_: spec)
    monkeypatch.setattr(toy_runs, "SPOT_STEPS", 2)
    toy_runs._train_on_the_spot("glyphs", seed)
    yield seed
    shutil.rmtree(toy_runs._spot_folder(spec))


def test_images_are_prepared_trained_on_and_shown(page, server, glyphs):
    work = opened(page, server)
    page.get_by_label("seed", exact=True).fill(str(glyphs))
    page.get_by_label("seed", exact=True).press("Enter")
    becomes(lambda: linked(page).get("seed"), str(glyphs))
    page.get_by_label("data set").select_option("glyphs")
    strips = page.locator("canvas.strip")
    becomes(lambda: [strip.get_attribute("data-step") for strip in strips.all()], ["0", "0"])
    becomes(lambda: linked(page).get("a.loss"), "multi_similarity")  # not the loss of the moons
    assert linked(page)["dim"] == "64"
    shades = "(el) => new Set(el.getContext('2d').getImageData(0, 0, el.width, el.height).data).size"
    assert all(strip.evaluate(shades) > 40 for strip in strips.all())  # more ink than frames and markers alone have
    page.get_by_role("button", name="one batch on").click()
    becomes(lambda: [strip.get_attribute("data-step") for strip in strips.all()], ["1", "1"])
    page.get_by_role("slider", name="A: alpha", exact=True).press("ArrowRight")
    becomes(lambda: linked(page).get("then", ""), lambda then: then.startswith("1:a.alpha"))
    page.get_by_role("button", name="one batch on").click()
    at_step(work, 2)
    toy = toys_state.Toy.from_query(linked(page))
    frame = LiveTraining(toy.live(0), toy_runs.prepare_data("glyphs", glyphs)).frame(2)
    shows(page, 0, "loss", frame.loss)


def test_png_svg_and_pdf_show_the_same_windows(page, server):
    opened(page, server)
    png, svg, pdf = (exported.save_figure(page, kind) for kind in ("PNG", "SVG", "PDF"))
    assert {"inputs", "A:", "B:", "step"} <= set(exported.read_words(pdf))
    assert exported.count_paths(pdf) > len(TOY.sides) * 32  # markers are paths
    exported.assert_same_figure(page, png, svg, pdf, scale=3)
