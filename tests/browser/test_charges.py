"""The Charges page with real mouse and keyboard input."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dmlcore.simulation import Dynamics, Simulation, Spec
from pages.losses.charges import state as charges_state
from tests.browser import exported
from tests.browser.harness import becomes, go, quiet

pytestmark = pytest.mark.browser

QUIET = "?per=12&classes=3&loss=ranking&m=0.5&step=1"  # a link with a step opens paused
SPEC = Spec(per_class=12, classes=3, law=Dynamics(loss="ranking", hyper={"m": 0.5}))


def opened(page, server, query=QUIET):
    go(page, f"{server.url}/charges{query}")
    canvas = page.locator("canvas[data-step]")
    canvas.wait_for()
    return canvas


def step(canvas) -> int:
    return int(canvas.get_attribute("data-step"))


def readout(page, name) -> str:
    return page.locator(f'[data-readout="{name}"]').inner_text()


def shows(page, name, value) -> None:
    becomes(lambda: float(readout(page, name)), pytest.approx(value, abs=6e-4))


def pressed(page, name):
    return page.get_by_role("button", name=name, exact=True)


@pytest.mark.usefixtures("in_motion")
def test_it_moves_on_opening_until_no_point_feels_a_force(page, server):
    canvas = opened(page, server, "")
    expect(pressed(page, "two moons")).to_have_attribute("aria-pressed", "true")  # first image
    becomes(lambda: step(canvas), lambda k: k >= 3)
    expect(page.locator(".notice")).to_contain_text("At rest")
    pressed(page, "play").wait_for()
    stopped = quiet(lambda: step(canvas))
    page.wait_for_url(re.compile(rf"step={stopped}\b"))
    assert step(canvas) == stopped

    # The address holds the preset while it plays.
    pressed(page, "an outlier").click()
    page.wait_for_url(re.compile("start=outlier"))
    pressed(page, "pause").wait_for()
    expect(pressed(page, "an outlier")).to_have_attribute("aria-pressed", "true")


def test_the_numbers_are_the_librarys_and_scrubbing_back_shows_them_again(page, guest, server):
    canvas = opened(page, server)
    simulation = Simulation(SPEC)
    becomes(lambda: step(canvas), 1)
    page.get_by_role("group", name="the charges").focus()
    page.keyboard.press("Space")
    becomes(lambda: step(canvas), lambda k: k >= 12)
    page.keyboard.press("Space")
    pressed(page, "play").wait_for()
    page.get_by_role("slider", name="step", exact=True).fill("5")
    becomes(lambda: step(canvas), 5)
    for name, value in (("loss", simulation.frame(5).loss), ("MAP@R", simulation.frame(5).map_at_r)):
        shows(page, name, value)
    label = canvas.get_attribute("aria-label")
    assert "step 5:" in label
    pressed(page, "one step on").click()
    becomes(lambda: step(canvas), 6)
    shows(page, "loss", simulation.frame(6).loss)
    page.wait_for_url(re.compile("step=6"))
    pressed(page, "one step back").click()
    becomes(lambda: step(canvas), 5)
    expect(canvas).to_have_attribute("aria-label", label)

    page.wait_for_url(re.compile("step=5"))
    other = opened(guest, server, page.url.removeprefix(f"{server.url}/charges"))
    becomes(lambda: step(other), 5)
    expect(other).to_have_attribute("aria-label", label)


def test_a_dragged_point_stays_in_the_link_and_the_history(page, server):
    canvas = opened(page, server)
    becomes(lambda: step(canvas), 1)
    x, y = Simulation(SPEC).frame(1).positions[0].tolist()
    box, half = quiet(lambda: (canvas.bounding_box(), float(canvas.get_attribute("data-half"))))
    px, py = box["x"] + (x + half) / (2 * half) * box["width"], box["y"] + (half - y) / (2 * half) * box["height"]
    page.mouse.move(px, py)
    page.mouse.down()
    page.mouse.move(px + 60, py + 40, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile(r"then=1%3Amove"))
    query = dict(re.findall(r"(\w+)=([^&]*)", page.evaluate("decodeURIComponent(location.search)")))
    spec = charges_state.ChargesState.from_query(query)
    (change,) = spec.changes
    ((_, to_x, to_y),) = change.moved
    assert to_x == pytest.approx(x + 60 * 2 * half / box["width"], abs=0.02)
    assert to_y == pytest.approx(y - 40 * 2 * half / box["height"], abs=0.02)
    shows(page, "loss", Simulation(spec).frame(1).loss)


@pytest.mark.usefixtures("in_motion")
def test_a_slider_acts_at_the_step_shown_and_presets_are_states(page, server):
    canvas = opened(page, server)
    becomes(lambda: step(canvas), 1)
    shows(page, "loss", Simulation(SPEC).frame(1).loss)
    before = readout(page, "loss")
    slider = page.get_by_role("slider", name="m", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"then=1%3Am"))
    becomes(lambda: readout(page, "loss"), lambda text: text != before)
    pressed(page, "semi-hard").click()
    becomes(lambda: step(canvas), lambda k: k >= 2)
    pressed(page, "pause").click()
    page.wait_for_url(lambda url: "miner=semi_hard" in url and "then=" not in url)
    expect(page.get_by_label("triplets", exact=True)).to_have_value("semi_hard")

    before = page.locator(".panel .formula").get_attribute("data-latex")
    page.get_by_label("loss", exact=True).select_option("angular")
    page.wait_for_url(re.compile("angular"))
    expect(page.locator(".panel .formula .katex").first).to_be_visible()
    assert page.locator(".panel .formula").get_attribute("data-latex") != before


def test_reduced_motion_stands_still_and_without_a_socket_steps_still_come(page, server):
    canvas = opened(page, server, "?socket=off")
    pressed(page, "play").wait_for()
    assert quiet(lambda: step(canvas)) == 0
    pressed(page, "one step on").click()
    becomes(lambda: step(canvas), 1)
    expect(page.locator(".notice")).to_contain_text("No direct connection.")


def test_png_svg_and_pdf_show_the_same_step(page, server):
    opened(page, server)
    page.get_by_text("force arrows", exact=True).click()
    png, svg, pdf = (exported.save_figure(page, kind) for kind in ("PNG", "SVG", "PDF"))
    assert exported.count_paths(pdf) > SPEC.per_class * SPEC.classes  # markers are paths
    exported.assert_same_figure(page, png, svg, pdf, scale=2)
