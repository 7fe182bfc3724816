"""The fields page under a real mouse and keyboard."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    page.goto(f"{server.url}/{query}")
    page.wait_for_selector("canvas.plane[data-seq]")
    return page.locator("canvas.plane")


def seq(plane) -> int:
    return int(plane.get_attribute("data-seq"))


def wait_beyond(page, plane, before: int) -> None:
    page.wait_for_function("([el, n]) => Number(el.dataset.seq) > n", arg=[plane.element_handle(), before])


def centre(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def readout(page, name) -> str:
    return page.locator(f'[data-readout="{name}"]').inner_text()


def test_dragging_a_point_repaints_and_the_link_reopens_the_view(page, server):
    plane = opened(page, server, "?n=0.3,0.8")
    negative = page.get_by_role("button", name="negative at")
    x, y = centre(negative)
    before, loss = seq(plane), readout(page, "loss")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y + 90, steps=15)
    wait_beyond(page, plane, before + 3)
    page.mouse.up()
    page.wait_for_url(re.compile("n=-?0.0"))
    label = negative.get_attribute("aria-label")
    assert "0.3, 0.8" not in label
    assert readout(page, "loss") != loss

    again = page.context.new_page()
    opened(again, server, page.url.removeprefix(server.url + "/"))
    assert again.get_by_role("button", name="negative at").get_attribute("aria-label") == label
    again.wait_for_function(
        "([el, t]) => el.innerText === t",
        arg=[again.locator('[data-readout="loss"]').element_handle(), readout(page, "loss")],
    )


def test_a_slider_answers_while_it_moves_and_streamlit_learns_once(page, server):
    sent: list[str] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append(ws.url)))
    plane = opened(page, server, "?n=0.3,0.8")
    slider = page.get_by_role("slider", name="r", exact=True)
    x, y = centre(slider)
    before, streamlit_before = seq(plane), sum("_stcore/stream" in url for url in sent)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=20)
    wait_beyond(page, plane, before + 3)
    assert sum("_stcore/stream" in url for url in sent) == streamlit_before, (
        "only the field socket speaks while dragging"
    )
    page.mouse.up()
    page.wait_for_url(re.compile(r"[?&]r="))
    assert sum("_stcore/stream" in url for url in sent) == streamlit_before + 1


def test_keyboard_choice_of_loss_and_figures(page, server):
    plane = opened(page, server, "?n=0.3,0.8")
    before = seq(plane)
    page.get_by_role("button", name="anchor at").focus()
    page.keyboard.press("Shift+ArrowUp")
    page.wait_for_url(re.compile(r"[?&]a=0%2C0.1"))
    assert seq(plane) > before
    page.get_by_label("loss", exact=True).select_option("angular")
    page.get_by_role("heading", name="Angular").wait_for()
    assert page.get_by_role("slider").count() == 2
    page.get_by_role("button", name="figure 3.6").click()
    page.get_by_role("button", name="r = 2", exact=True).click()
    page.wait_for_url(re.compile(r"rho=1.71429"))
    page.wait_for_function(
        "(el) => el.innerText === '7.571'", arg=page.locator('[data-readout="force on N"]').element_handle()
    )


def test_without_a_socket_the_page_itself_carries_the_fields(page, server):
    plane = opened(page, server, "?n=0.3,0.8&socket=off")
    before = seq(plane)
    x, y = centre(page.get_by_role("button", name="positive at"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 50, y - 50, steps=10)
    page.mouse.up()
    wait_beyond(page, plane, before + 1)
    page.wait_for_url(re.compile(r"[?&]p="))
    assert "socket=off" in page.url
    assert "a little slower" in page.locator(".notice").inner_text()


def test_nothing_is_fetched_from_elsewhere(page, server):
    foreign: list[str] = []
    page.on(
        "request",
        lambda request: (
            foreign.append(request.url) if not request.url.startswith((server.url, "data:", "blob:")) else None
        ),
    )
    opened(page, server)
    page.wait_for_timeout(500)
    assert foreign == []
