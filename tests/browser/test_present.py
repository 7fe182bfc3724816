"""Presentation mode with real mouse and keyboard input: by key and by link, with the speaker's window."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from dmlcore.storage.runs import EXAMPLE
from tests.browser.harness import address, becomes, drag, go

pytestmark = pytest.mark.browser
LARGER = 1.4
PAGES = {
    "fields?": ".frame",
    "sphere?on=sphere": ".views.globe .frame",
    "charges?": ".frame",
    "toy_training?": ".view.embedding .frame",
    f"failures?run={EXAMPLE}": ".frame",
    f"explore?run={EXAMPLE}": ".frame",
}


def shown(page) -> str:
    return unquote(address(page))


def open_windows(page) -> int:
    page.evaluate("0")  # closing is noticed only while Playwright runs
    return len(page.context.pages)


def test_a_key_fills_the_window_with_the_picture_and_escape_leaves(page, server):
    go(page, f"{server.url}/fields?loss=ranking&m=0.3&n=0.3,0.2")
    canvas = page.locator("canvas.plane[data-seq]")
    canvas.wait_for()
    before = canvas.bounding_box()["width"]
    page.keyboard.press("t")
    stage = page.locator(".presenting")
    expect(stage).to_be_visible()
    window = page.viewport_size
    becomes(stage.bounding_box, {"x": 0, "y": 0, "width": window["width"], "height": window["height"]})
    becomes(lambda: canvas.bounding_box()["width"], lambda width: width > before)
    becomes(lambda: stage.evaluate("e => e.currentCSSZoom"), pytest.approx(LARGER))
    sharp = "e => e.width / e.getBoundingClientRect().width"  # it is redrawn one frame after it has grown
    becomes(lambda: canvas.evaluate(sharp), pytest.approx(1, abs=0.02))

    slider = page.get_by_role("slider", name="m", exact=True)
    expect(slider).to_be_visible()
    expect(page.get_by_label("snap")).to_be_hidden()
    expect(page.locator(".present-caption")).to_have_text(re.compile("^Ranking: "))

    # A dragged point stays under the pointer, although pixels of the figure and the window differ.
    box = canvas.bounding_box()
    drag(page, page.locator('[data-point="negative"]'), box["width"] / 6, 0)  # the view is three units wide
    becomes(lambda: shown(page), lambda url: re.search(r"n=0\.(79|8)\d*,0\.(19|2)", url))

    page.get_by_text("Controls", exact=True).click()
    page.get_by_label("points", exact=True).check()
    expect(page.get_by_role("spinbutton", name="positive x")).to_be_visible()
    becomes(lambda: shown(page), lambda url: "present=1" in url and "controls=loss,r,m1,m,points" in url)
    page.reload()
    expect(page.get_by_role("spinbutton", name="positive x")).to_be_visible()
    expect(page.get_by_label("snap")).to_be_hidden()

    page.keyboard.press("Escape")
    expect(page.locator(".presenting")).to_have_count(0)
    expect(page.get_by_label("snap")).to_be_visible()
    becomes(lambda: shown(page), lambda url: "present" not in url and "loss=ranking" in url)
    page.get_by_role("heading", name="Force fields of triplet losses").wait_for()


def test_notes_stand_in_a_second_window_and_follow(page, server):
    go(page, f"{server.url}/fields?present=1&loss=ranking")
    with page.expect_popup() as opened:
        page.locator(".present-bar").get_by_role("button", name="Notes").click()
    notes = opened.value
    expect(notes.locator("ul")).to_contain_text("Anchor A and positive P are of one class")
    expect(notes.locator("dl")).to_contain_text("Ranking")
    becomes(lambda: notes.locator("output").text_content(), lambda text: text not in ("0:00", ""))
    page.get_by_label("loss", exact=True).select_option("facenet")
    expect(notes.locator("dl")).to_contain_text("FaceNet")
    notes.get_by_label("your own notes").fill("Ask before dragging")
    page.keyboard.press("Escape")  # the loss menu has the focus: letters are not taken for shortcuts, but Escape is
    becomes(lambda: open_windows(page), 1)
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("t")
    page.locator(".presenting").wait_for()
    with page.expect_popup() as again:
        page.keyboard.press("s")
    expect(again.value.get_by_label("your own notes")).to_have_value("Ask before dragging")
    page.keyboard.press("t")
    becomes(lambda: open_windows(page), 1)


def test_what_comes_in_place_of_a_picture_fills_the_window_again(page, server):
    """Presentation mode survives when Streamlit mounts the component again, before or after it removes the old one."""
    go(page, f"{server.url}/fields?present=1&loss=ranking")
    page.locator(".presenting").wait_for()
    page.evaluate("""async () => {
      const { name } = performance.getEntriesByType("resource").find(r => r.name.includes("/api/assets/")),
        module = await import(name.replace(/(assets\\/[^/]+\\/).*/, "$1kit/present/present.js")),
        about = { title: "new", caption: "It is new", controls: [], notes: [], picture: "square" };
      const made = () => {
        const host = document.body.appendChild(document.createElement("div")),
          whole = host.attachShadow({ mode: "open" }).appendChild(document.createElement("div"));
        return { host, whole, ready: Promise.resolve() };
      };
      const [one, other] = [made(), made()];
      await module.present(one, about);  // the old one has not gone
      module.withdraw(one);  // while its stage is on the way
      one.host.remove();
      await module.present(other, about);
    }""")
    expect(page.locator(".presenting .present-caption")).to_have_text("It is new")
    expect(page.locator(".presenting")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".presenting")).to_have_count(0)
    expect(page.locator("body > [inert], #root > [inert]")).to_have_count(0)
    becomes(lambda: shown(page), lambda url: "present" not in url)


@pytest.mark.parametrize("place", PAGES)
def test_every_page_of_a_lecture_fills_the_window(page, server, place):
    go(page, f"{server.url}/{place}&present=1")
    expect(page.locator(".present-caption")).not_to_be_empty()
    window, frame = page.viewport_size, page.locator(f".presenting {PAGES[place]}").first
    share = 0.3 if "toy_training" in place else 0.65
    becomes(lambda: frame.bounding_box()["height"], lambda height: height > share * window["height"])
    box = frame.bounding_box()
    for start, length in (("x", "width"), ("y", "height")):
        assert 0 <= box[start] <= window[length] - box[length]
    canvas = frame.locator("canvas").first  # drawn for its actual size
    becomes(lambda: canvas.evaluate("e => e.width / e.getBoundingClientRect().width"), lambda x: abs(x - 1) < 0.02)
    page.keyboard.press("Escape")
    expect(page.locator(".presenting")).to_have_count(0)
