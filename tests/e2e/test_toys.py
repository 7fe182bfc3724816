"""The toys page under a real mouse and keyboard."""

from __future__ import annotations

import re

import pytest

from dmlcore.live import LiveTraining
from pages._ui import toys_recording, toys_spec
from pages._ui.wire import unpack

pytestmark = pytest.mark.browser

QUIET = "?data=moons&classes=2&samples=4&step=2"  # a link with a step opens paused
TOY = toys_spec.from_query({"data": "moons", "classes": "2", "samples": "4"})


def opened(page, server, query=QUIET):
    page.goto(f"{server.url}/toys{query}")
    page.wait_for_selector(".work[data-step]")
    return page.locator(".work[data-step]")


def at_step(page, work, condition: str) -> int:
    page.wait_for_function(
        f"(el) => {{ const k = Number(el.dataset.step); return {condition}; }}", arg=work.element_handle()
    )
    return int(work.get_attribute("data-step"))


def shows(page, side: int, name: str, value: float) -> None:
    """Wait until the readout of a side is this number."""
    readout = page.locator(".view.embedding").nth(side).locator(f'[data-readout="{name}"]')
    page.wait_for_function(
        "([el, v]) => Math.abs(Number(el.innerText) - v) < 6e-4", arg=[readout.element_handle(), float(value)]
    )


def trainings(toy, step):
    found = [LiveTraining(toy.live(i), toy.dataset) for i in range(len(toy.sides))]
    for training in found:
        training.frame(step)
    return found


def test_a_recording_plays_on_opening_and_pause_stops_it(page, server):
    work = opened(page, server, "")
    stored = unpack(toys_recording.PATH.read_bytes())
    assert int(work.get_attribute("data-last")) >= stored["ready"]
    at_step(page, work, "k >= 8")
    page.locator(".notice", has_text="recording of these very trainings").wait_for()
    page.get_by_role("button", name="pause").click()
    page.get_by_role("button", name="play", exact=True).wait_for()
    page.wait_for_url(re.compile(r"step=\d+"))
    stopped = int(re.search(r"step=(\d+)", page.url)[1])
    assert stopped == at_step(page, work, "true")
    for i in range(2):
        shows(page, i, "loss", stored["arrays"][f"curve_{i}"][stopped, 0])
    page.locator("table tr.ours", has_text="untrained network").wait_for()


def test_numbers_are_the_librarys_and_a_change_forks_the_future(page, server):
    work = opened(page, server)
    at_step(page, work, "k === 2")
    before = trainings(TOY, 12)
    page.get_by_label("speed").select_option("1")
    page.get_by_role("button", name="play", exact=True).click()
    at_step(page, work, "k >= 12")
    page.get_by_role("button", name="pause").click()
    page.get_by_role("slider", name="step", exact=True).fill("10")
    at_step(page, work, "k === 10")
    for i in range(2):
        shows(page, i, "loss", before[i].frames[10].loss)
        shows(page, i, "MAP@R", before[i].frames[10].map_at_r)

    slider = page.get_by_role("slider", name="A: m", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"then=10%3Aa\.m"))
    page.get_by_role("button", name="one batch on").click()
    at_step(page, work, "k === 11")
    query = dict(re.findall(r"([\w.]+)=([^&]*)", page.evaluate("decodeURIComponent(location.search)")))
    forked = toys_spec.from_query(query)
    assert [change.at for change in forked.changes] == [10]
    after = trainings(forked, 11)
    assert after[0].frames[11].loss != before[0].frames[11].loss
    assert after[1].frames[11].loss == before[1].frames[11].loss
    for i in range(2):
        shows(page, i, "loss", after[i].frames[11].loss)
    page.get_by_role("button", name="one batch back").click()
    at_step(page, work, "k === 10")
    shows(page, 0, "loss", before[0].frames[10].loss)

    page.get_by_role("group", name="forces of B").get_by_role("button", name="pushes").click()
    page.wait_for_url(re.compile(r"b\.moves%3Dpushes"))
    again = page.context.new_page()
    other = opened(again, server, page.url.removeprefix(f"{server.url}/toys"))
    at_step(again, other, "k === 10")
    assert again.get_by_role("group", name="forces of B").get_by_role("button", name="pushes").get_attribute(
        "aria-pressed"
    ) == ("true")


def test_space_is_turned_by_hand_and_reduced_motion_stands_still(browser, server):
    context = browser.new_context(reduced_motion="reduce", viewport={"width": 390, "height": 844})
    page = context.new_page()
    work = opened(page, server, "?socket=off&data=moons")
    assert page.get_by_role("button", name="play", exact=True).is_visible()
    assert work.get_attribute("data-step") == "0"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    canvas = page.locator(".view.input canvas")
    seq = work.get_attribute("data-seq")
    before = canvas.evaluate("(el) => el.toDataURL()")
    page.locator(".view.input .frame").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("([el, s]) => el.dataset.seq > s", arg=[work.element_handle(), seq])
    assert canvas.evaluate("(el) => el.toDataURL()") != before
    page.get_by_role("button", name="one batch on").click()
    at_step(page, work, "k === 1")
    assert "slower" in page.locator(".notice").inner_text()
    context.close()
