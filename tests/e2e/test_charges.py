"""The charges page under a real mouse and keyboard."""

from __future__ import annotations

import re

import pytest

from dmlcore.simulation import Law, Simulation, Spec
from pages._ui import charges_spec

pytestmark = pytest.mark.browser

QUIET = "?per=12&classes=3&loss=ranking&m=0.5&step=1"  # a link with a step opens paused
SPEC = Spec(per_class=12, classes=3, law=Law(loss="ranking", hyper={"m": 0.5}))


def opened(page, server, query=QUIET):
    page.goto(f"{server.url}/charges{query}")
    page.wait_for_selector("canvas[data-step]")
    return page.locator("canvas[data-step]")


def at_step(page, canvas, condition: str) -> int:
    page.wait_for_function(
        f"(el) => {{ const k = Number(el.dataset.step); return {condition}; }}", arg=canvas.element_handle()
    )
    return int(canvas.get_attribute("data-step"))


def readout(page, name) -> str:
    return page.locator(f'[data-readout="{name}"]').inner_text()


def test_it_moves_on_opening_and_pause_stops_it(page, server):
    canvas = opened(page, server, "")
    at_step(page, canvas, "k >= 3")
    page.get_by_role("button", name="pause").click()
    page.get_by_role("button", name="play", exact=True).wait_for()
    stopped = int(canvas.get_attribute("data-step"))
    page.wait_for_url(re.compile(rf"step={stopped}"))
    assert int(canvas.get_attribute("data-step")) == stopped


def test_the_numbers_are_the_librarys_and_scrubbing_back_shows_them_again(page, server):
    canvas = opened(page, server)
    simulation = Simulation(SPEC)
    at_step(page, canvas, "k === 1")
    page.get_by_role("group", name="the charges").focus()
    page.keyboard.press("Space")
    at_step(page, canvas, "k >= 12")
    page.keyboard.press("Space")
    page.get_by_role("button", name="play", exact=True).wait_for()
    page.get_by_role("slider", name="step", exact=True).fill("5")
    at_step(page, canvas, "k === 5")
    for name, value in (("loss", simulation.frame(5).loss), ("MAP@R", simulation.frame(5).map_at_r)):
        assert float(readout(page, name)) == pytest.approx(value, abs=6e-4)
    label = canvas.get_attribute("aria-label")
    page.get_by_role("button", name="one step on").click()
    at_step(page, canvas, "k === 6")
    assert float(readout(page, "loss")) == pytest.approx(simulation.frame(6).loss, abs=6e-4)
    page.wait_for_url(re.compile("step=6"))
    page.get_by_role("button", name="one step back").click()
    at_step(page, canvas, "k === 5")
    assert canvas.get_attribute("aria-label") == label

    page.wait_for_url(re.compile("step=5"))
    again = page.context.new_page()
    other = opened(again, server, page.url.removeprefix(f"{server.url}/charges"))
    at_step(again, other, "k === 5")
    assert other.get_attribute("aria-label") == label


def test_a_dragged_point_stays_in_the_link_and_the_history(page, server):
    canvas = opened(page, server)
    at_step(page, canvas, "k === 1")
    x, y = Simulation(SPEC).frame(1).positions[0].tolist()
    box = canvas.bounding_box()
    half = canvas.evaluate("(el) => Number(el.dataset.half)")
    px, py = box["x"] + (x + half) / (2 * half) * box["width"], box["y"] + (half - y) / (2 * half) * box["height"]
    page.mouse.move(px, py)
    page.mouse.down()
    page.mouse.move(px + 60, py + 40, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile(r"then=1%3Amove"))
    query = dict(re.findall(r"(\w+)=([^&]*)", page.evaluate("decodeURIComponent(location.search)")))
    spec = charges_spec.from_query(query)
    (change,) = spec.changes
    ((_, to_x, to_y),) = change.moved
    assert to_x == pytest.approx(x + 60 * 2 * half / box["width"], abs=0.02)
    assert to_y == pytest.approx(y - 40 * 2 * half / box["height"], abs=0.02)
    expected = Simulation(spec).frame(1).loss
    page.wait_for_function(
        "([el, v]) => Math.abs(Number(el.innerText) - v) < 6e-4",
        arg=[page.locator('[data-readout="loss"]').element_handle(), expected],
    )


def test_a_slider_acts_at_the_step_shown_and_presets_are_states(page, server):
    canvas = opened(page, server)
    at_step(page, canvas, "k === 1")
    slider = page.get_by_role("slider", name="m", exact=True)
    before = readout(page, "loss")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"then=1%3Am"))
    page.wait_for_function(
        "([el, t]) => el.innerText !== t", arg=[page.locator('[data-readout="loss"]').element_handle(), before]
    )
    page.get_by_role("button", name="semi-hard").click()
    at_step(page, canvas, "k >= 2")
    page.get_by_role("button", name="pause").click()
    page.wait_for_url(re.compile(r"miner=semi_hard"))
    assert "then=" not in page.url
    assert page.get_by_label("triplets", exact=True).input_value() == "semi_hard"


def test_reduced_motion_stands_still_and_without_a_socket_steps_still_come(browser, server):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    canvas = opened(page, server, "?socket=off")
    assert page.get_by_role("button", name="play", exact=True).is_visible()
    assert canvas.get_attribute("data-step") == "0"
    page.get_by_role("button", name="one step on").click()
    at_step(page, canvas, "k === 1")
    assert "slower" in page.locator(".notice").inner_text()
    context.close()


def test_a_preset_is_in_the_address_while_it_plays(page, server):
    page.goto(f"{server.url}/charges")
    page.locator("canvas.plane, canvas").first.wait_for()
    page.get_by_role("button", name="an outlier").click()
    page.wait_for_url(re.compile("start=outlier"))
    page.get_by_role("button", name="Pause").wait_for()
    assert page.get_by_role("button", name="an outlier").get_attribute("aria-pressed") == "true"
