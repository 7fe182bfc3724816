"""The report in a real browser without a network: it opens from a file, draws, and requests nothing, whatever the names
contain.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from dmlcore.inspection import report
from tests.browser.harness import becomes
from tests.inspection import hostile

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(visitor, tmp_path):
    """Open the report with hostile names from its file in an offline browser; yield the page, its requests and its
    errors.
    """
    run, _, table = hostile.make(tmp_path)
    path = tmp_path / "report.html"
    path.write_text(report.html(table, report.newest_map(run)), encoding="utf-8")
    page = visitor(offline=True, color_scheme="dark")
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
    page.goto(path.as_uri())
    return page, path, asked, said


def test_it_opens_offline_draws_and_asks_nobody(opened):
    page, path, asked, said = opened
    canvas = page.locator("#map")
    becomes(lambda: canvas.get_attribute("data-painted"), lambda painted: painted is not None)
    colours = canvas.evaluate(
        """(c) => new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size"""
    )
    assert colours > 6, "points of six classes on the paper"
    becomes(lambda: page.evaluate("[...document.images].every((x) => x.complete && x.naturalWidth > 0)"), True)
    assert page.evaluate("document.images.length") > 50
    expect(page.locator("h1")).to_have_text(hostile.NAMES[1])
    legend = page.locator("#legend bdi").all_text_contents()
    assert legend == list(hostile.NAMES)
    assert set(page.locator("figcaption bdi").all_text_contents()) <= set(hostile.NAMES)
    assert page.locator("main a, main iframe, main script[src], main [onerror]").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    canvas.focus()
    for key in ("ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    hovered = becomes(lambda: canvas.get_attribute("data-hovered"), lambda index: index not in (None, ""))
    expect(page.locator("#card bdi")).to_have_text(hostile.NAMES[(int(hovered) - 36) // hostile.EACH])
    place = page.locator("#card .thumb").evaluate("(x) => getComputedStyle(x).backgroundPosition")
    on = int(hovered) - 36
    assert place == f"{-(on % report.SHEET) * 96}px {-(on // report.SHEET) * 96}px".replace("-0px", "0px")
    page.get_by_label("Colour").select_option("right")
    expect(page.locator("#legend bdi").first).to_have_text("nearest is wrong")
    page.locator("#legend button").first.click()
    expect(page.locator("#legend button[aria-pressed=true]")).to_have_count(1)
    page.emulate_media(media="print")
    expect(page.locator(".bar")).to_be_hidden()
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    assert said == [], "no dialog from a name, no violation of the policy"


def test_the_policy_stops_what_would_ask(opened):
    page, _, _, said = opened
    page.evaluate("""() => {
      const image = new Image();
      image.src = "http://127.0.0.1:9/image.png";
      document.body.append(image);
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
    }""")
    wanted = ("img-src data:", "script-src 'sha256-")
    becomes(
        lambda: [text for text in said if page.evaluate("1") and "violates" in text],
        lambda found: all(any(rule in text for text in found) for rule in wanted),
    )
    assert page.evaluate("window.ran") is None
