"""The Explore page with real mouse and keyboard input, on a real run."""

from __future__ import annotations

import json
import math
import re
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import dmlcore
from dmlcore.inspection import selections, snapshots, tags_and_views
from dmlcore.inspection.maps import maps, trajectory
from dmlcore.inspection.neighbours import read
from dmlcore.jobs import local_app
from dmlcore.storage.runs import Run
from tests.browser.harness import Server, address, becomes, eventually, go, quiet
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shown(server: Server) -> Run:
    run = make_run(server.runs, "schedule.keep_every=4")
    maps.make(run, maps.Settings("pca"))
    trajectory.make(run, maps.Settings("pca"))
    return run


def opened(page: Any, server: Server, run: Run, more: str = "") -> Any:
    """Return the canvas of the map, painted and at rest."""
    go(page, f"{server.url}/explore?run={run.id}{more}")
    canvas = page.locator("canvas.map")
    page.locator("canvas.map[data-painted]").wait_for()
    drop = page.get_by_role("button", name="Clear selection")
    # the session still has the state of the previous test
    if "selection=" in address(page) and "selection=" not in more:
        drop.click()
        drop.wait_for(state="hidden")
    quiet(lambda: (canvas.get_attribute("width"), canvas.bounding_box(), canvas.get_attribute("data-painted")))
    return canvas


def around(page: Any, canvas: Any, share: float = 0.3) -> None:
    """Draw a lasso around the centre of the map."""
    box = quiet(canvas.bounding_box)
    x, y, r = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, share * box["height"]
    page.mouse.move(x + r, y)
    page.mouse.down()
    for k in range(1, 13):
        page.mouse.move(x + r * math.cos(k * math.pi / 6), y + r * math.sin(k * math.pi / 6))
    page.mouse.up()


def selected(page: Any, run: Run) -> np.ndarray:
    """Return the selected samples that the link names, once Python has shown their number."""
    count = becomes(lambda: page.locator(".count").get_attribute("data-count"), lambda n: n not in (None, "", "0"))
    page.get_by_text(f"{int(count):,} samples selected").wait_for()
    found = becomes(lambda: re.search("selection=([0-9a-f]{16})", address(page)), lambda match: match is not None)
    bar = page.get_by_role("button", name="Clear selection").bounding_box()
    assert bar["y"] + bar["height"] <= 900, "the actions on the selection are visible"
    kept = selections.load(run, found[1])
    assert kept is not None
    assert len(kept.indices) == int(count), "the browser and Python count equally"
    return kept.indices


# Place the pop-up over the zoom buttons and return whether it is on top there.
OVER_ZOOM = """card => {
  const zoom = card.parentElement.querySelector('.zoom').getBoundingClientRect();
  const before = card.style.cssText;
  Object.assign(card.style, { left: 'auto', top: 'auto', right: '0', bottom: '0' });
  const at = document.elementFromPoint(zoom.left + 5, zoom.top + 5);
  const top = at?.shadowRoot?.elementFromPoint(zoom.left + 5, zoom.top + 5) ?? at;
  card.style.cssText = before;
  return card.contains(top);
}"""


def the_one_under_the_mouse_is_ringed_and_opened(page: Any, canvas: Any, shown: Run) -> None:
    def on_a_point() -> str:
        """Move along the horizontal centre line until a point is near."""
        box = quiet(canvas.bounding_box)
        for share in range(20, 80, 2):
            page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + box["height"] / 2)
            if index := canvas.get_attribute("data-hovered"):
                return index
        raise AssertionError("the pointer met no point")

    under = eventually(on_a_point)
    page.locator(f'.card img[src$="/{shown.id}/{under}"]').wait_for()
    page.mouse.down()
    canvas.evaluate("c => c.dispatchEvent(new PointerEvent('pointercancel', { pointerId: 1 }))")
    page.mouse.up()
    assert page.locator(".card.pinned").count() == 0, "a cancelled press opens nothing"
    page.mouse.down()
    page.mouse.up()
    page.locator(".card.pinned").wait_for()
    canvas.focus()
    page.keyboard.press("Escape")
    page.locator(".card").wait_for(state="hidden")


def test_a_point_shows_its_image_and_its_neighbours_and_leads_to_neighbours(page, server, shown):
    canvas = opened(page, server, shown)
    the_one_under_the_mouse_is_ringed_and_opened(page, canvas, shown)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.locator(".card img").first.wait_for()
    first = canvas.get_attribute("data-hovered")
    page.keyboard.press("ArrowUp")
    hovered = becomes(lambda: canvas.get_attribute("data-hovered"), lambda index: index not in ("", first))
    page.locator(f'.card img[src$="/{shown.id}/{hovered}"]').wait_for()
    becomes(lambda: page.locator(".map-lab > [aria-live]").text_content(), lambda text: f"sample {hovered}" in text)
    page.keyboard.press("Enter")
    known = read(shown.embeddings())
    row = int(np.flatnonzero(known.indices == int(hovered))[0])
    marks = ["✓" if right else "✗" for right in known.right[row, :5]]
    becomes(lambda: [text.strip() for text in page.locator(".card .near button").all_text_contents()], marks)
    forces = page.locator(".card a", has_text="Forces")
    expect(forces).to_have_attribute("href", re.compile(f"failures.run={shown.id}&query={hovered}"))
    expect(forces).to_be_visible(visible=not known.right[row, 0])  # for failures only
    assert page.locator(".card").evaluate(OVER_ZOOM), "the zoom buttons cover a link of the pop-up"
    expect(page.locator(".marks")).to_contain_text("green line: same class")
    expect(page.locator(".wall .frames")).to_have_text("nearest neighbour rightwrong")
    page.evaluate("window.same_page = true")
    page.get_by_role("link", name="All neighbours").click()
    page.wait_for_url(re.compile(f"neighbours.*query={hovered}"))
    assert page.evaluate("window.same_page"), "the app was not reloaded"


def test_a_lasso_selects_and_another_adds_and_both_carry_over(page, server, shown):
    canvas = opened(page, server, shown)
    page.get_by_role("button", name="Lasso").click()
    around(page, canvas, 0.15)
    first = selected(page, shown)
    page.keyboard.down("Shift")
    around(page, canvas, 0.3)
    page.keyboard.up("Shift")
    becomes(lambda: int(page.locator(".count").get_attribute("data-count")), lambda count: count > len(first))
    second = eventually(
        lambda: (found := selected(page, shown), np.testing.assert_array_less(len(first), len(found)))[0]
    )
    assert set(first) < set(second)
    canvas.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    one = int(becomes(lambda: canvas.get_attribute("data-hovered"), lambda index: index != ""))
    page.keyboard.press(" ")
    becomes(lambda: int(page.locator(".count").get_attribute("data-count")), len(second) - 1)
    eventually(lambda: np.testing.assert_array_equal(selected(page, shown), second[second != one]))
    page.get_by_role("link", name="Neighbours", exact=True).last.click()
    page.wait_for_url(re.compile("neighbours.*selection="))


def test_colours_and_classes_stand_out_and_the_link_says_so(page, server, shown):
    canvas = opened(page, server, shown)
    page.get_by_label("colour by").select_option("right or wrong")
    wrong = int((~read(shown.embeddings()).right[:, 0]).sum())
    page.locator('[data-filter="right"]').get_by_text(f"{wrong}", exact=True).wait_for()
    page.locator('canvas.map[data-colour="right"]').wait_for()
    page.get_by_role("button", name=re.compile("^3 ")).click()
    page.locator('.legend button[aria-pressed="true"]').wait_for()
    expect(page.locator(".legend button.faint")).to_have_count(9)
    becomes(lambda: address(page), lambda url: "colour=right" in url and "classes=3" in url)
    go(page, address(page))
    page.locator('canvas.map[data-colour="right"]').wait_for()
    expect(page.locator(".legend button.faint")).to_have_count(9)
    page.get_by_role("button", name="Show all classes").click()
    expect(page.locator(".legend button.faint")).to_have_count(0)
    for _ in range(8):
        page.get_by_role("button", name="zoom in").click()
    becomes(lambda: int(canvas.get_attribute("data-images")), lambda count: 0 < count <= 150)
    page.get_by_role("checkbox", name="images", exact=True).uncheck()
    becomes(lambda: canvas.get_attribute("data-images"), "0")
    page.get_by_role("button", name="whole map").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    image = np.asarray(Image.open(download.value.path()).convert("RGB"))
    box = canvas.bounding_box()
    assert image.shape[0] == pytest.approx(2 * (box["height"] + 30), abs=3)
    green, vermillion = ((image == colour).all(axis=-1).sum() for colour in ((0, 158, 115), (213, 94, 0)))
    assert min(green, vermillion) > 20, "points in their displayed order"


IN_SIGHT = """view => {
  const box = view.getBoundingClientRect(), tiles = [...view.querySelectorAll(".tile")];
  return tiles.map(t => t.getBoundingClientRect()).filter(t => t.top >= box.top && t.bottom <= box.bottom).length;
}"""


def test_a_lasso_shows_its_images_one_opens_in_full_and_the_link_reopens_it(page, guest, server, shown):
    canvas = opened(page, server, shown)
    view = page.locator(".wall .view")
    every = int(becomes(lambda: view.get_attribute("data-count"), lambda count: count not in (None, "0")))
    assert page.locator(".tile").count() < every, "only visible items are in the document"
    seen = view.evaluate(IN_SIGHT)
    assert seen >= 40
    page.get_by_role("button", name="Lasso").click()
    box = quiet(canvas.bounding_box)
    x, y, r = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.2 * box["height"]
    page.mouse.move(x + r, y)
    page.mouse.down()
    for k in range(1, 12):
        page.mouse.move(x + r * math.cos(k * math.pi / 6), y + r * math.sin(k * math.pi / 6))
    page.get_by_text("in the lasso").wait_for()
    assert int(view.get_attribute("data-count")) < every, "live, before the pointer is released"
    assert "selection=" not in address(page)
    page.mouse.up()
    chosen = selected(page, shown)
    becomes(lambda: int(view.get_attribute("data-count")), len(chosen))
    known = read(shown.embeddings())
    wrong = page.locator('[data-filter="right"] button', has_text="neighbour wrong")
    wrong.click()
    failing = known.indices[known.failures & np.isin(known.indices, chosen)]
    becomes(lambda: int(view.get_attribute("data-count")), len(failing))
    page.locator(".tile").first.click()
    dialog = page.locator("dialog.sample[open]")
    index = int(dialog.get_attribute("data-index"))
    assert index in failing
    row = int(np.flatnonzero(known.indices == index)[0])
    marks = ["✓" if right else "✗" for right in known.right[row]]
    becomes(lambda: [text[0] for text in dialog.locator(".found small:not(.class)").all_text_contents()], marks)
    names = [str(known.labels[other]) for other in known.neighbours[row]]
    becomes(dialog.locator(".found .class").all_text_contents, names)
    becomes(dialog.locator(".history figure").count, len(snapshots.snapshots(shown)))
    dialog.get_by_label("new tag of this sample").fill("odd one")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="odd one").wait_for()
    assert tags_and_views.read(shown).tags["odd one"].tolist() == [index]
    link = becomes(lambda: address(page), lambda url: f"sample={index}" in url and "verdict=0" in url)
    go(guest, link)
    guest.locator(f'dialog.sample[open][data-index="{index}"]').wait_for()
    guest.keyboard.press("Escape")
    becomes(lambda: int(guest.locator(".wall .view").get_attribute("data-count")), len(failing))
    guest.locator('[data-filter="tags"] button', has_text="odd one").click()
    becomes(lambda: int(guest.locator(".wall .view").get_attribute("data-count")), 1)


DRAWN = """(points) => new Promise((done) => {
  const map = points.parentElement.querySelector("canvas.map");
  map.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
  requestAnimationFrame(() => { // what WebGL has drawn can be read within the frame that drew it
    const copy = document.createElement("canvas"), ctx = copy.getContext("2d");
    [copy.width, copy.height] = [points.width, points.height];
    ctx.drawImage(points, 0, 0);
    done(ctx.getImageData(0, 0, copy.width, copy.height).data.some((v, i) => i % 4 === 3 && v > 200));
  });
})"""


def survives_the_loss_of_its_graphics(page: Any) -> None:
    points = page.locator("canvas.points")
    becomes(lambda: points.evaluate(DRAWN), True)
    points.evaluate(
        "(c) => { window.gl = c.getContext('webgl2'); window.lose = gl.getExtension('WEBGL_lose_context'); }"
    )
    page.evaluate("lose.loseContext()")
    becomes(lambda: points.evaluate(DRAWN), False)
    becomes(lambda: page.evaluate("gl.isContextLost() && lose.restoreContext(), gl.isContextLost()"), False)
    becomes(lambda: points.evaluate(DRAWN), True)


def test_the_wheel_zooms_at_once_a_view_is_kept_and_graphics_that_are_lost_come_back(page, server, shown):
    canvas = opened(page, server, shown)
    box = quiet(canvas.bounding_box)
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.wheel(0, -600)
    near = becomes(lambda: re.search("at=([^&]+)", address(page)), lambda match: match is not None)[1]
    page.get_by_text("Tags and views", exact=True).click()
    page.get_by_label("name of this view").fill("the corner")
    page.keyboard.press("Enter")
    link = page.locator(".views a", has_text="the corner")
    link.wait_for()
    page.get_by_role("button", name="whole map").click()
    becomes(lambda: "at=" in address(page), False)
    link.click()
    becomes(lambda: re.search("at=([^&]+)", address(page)), lambda match: match and match[1] == near)
    survives_the_loss_of_its_graphics(page)


def test_two_fingers_zoom_and_move_the_map_and_one_moves_it(page, server, shown):
    canvas = opened(page, server, shown)
    page.get_by_role("button", name="whole map").click()
    becomes(lambda: "at=" in address(page), False)
    session = page.context.new_cdp_session(page)
    box = quiet(canvas.bounding_box)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(kind: str, *at: tuple[float, float]) -> None:
        points = [{"x": x + right, "y": y + down, "id": k} for k, (right, down) in enumerate(at)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def window() -> list[float]:
        return [float(v) for v in re.search("at=([^&]+)", unquote(address(page)))[1].split(",")]

    touch("touchStart", (-30, 0))
    touch("touchStart", (-30, 0), (30, 0))
    for k in range(1, 7):
        touch("touchMove", (-30 - 10 * k, 0), (30 + 10 * k, 0))
    touch("touchEnd")
    becomes(lambda: "at=" in address(page), True)
    horizontal, vertical, zoom = eventually(window)
    assert zoom == pytest.approx(3, rel=0.05), "fingers three times as far apart"
    assert (horizontal, vertical) == pytest.approx((0.5, 0.5), abs=0.01), "their middle stayed"
    touch("touchStart", (0, 0))
    for k in range(1, 7):
        touch("touchMove", (10 * k, 0))
    touch("touchEnd")
    becomes(lambda: window()[0] < horizontal - 0.01, True)
    assert window()[1:] == pytest.approx([vertical, zoom]), "moved to the right alone"


def test_the_map_plays_over_training(page, server, shown):
    opened(page, server, shown, "&training=1")
    bar = page.get_by_label("training step")
    becomes(lambda: bar.get_attribute("aria-valuetext"), "step 8")
    bar.focus()
    page.keyboard.press("Home")
    becomes(lambda: bar.get_attribute("aria-valuetext"), "step 0")
    page.get_by_role("button", name="play").click()
    becomes(lambda: bar.get_attribute("aria-valuetext"), "step 8")
    page.get_by_role("button", name="play").wait_for()


def test_without_webgl_the_map_is_drawn_and_says_so(page, server, shown):
    go(page, f"{server.url}/runs")
    page.evaluate("""() => {
      const get = (window.graphics = HTMLCanvasElement.prototype.getContext);
      HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
        return kind === "webgl2" ? null : get.call(this, kind, ...more);
      };
    }""")
    canvas = opened(page, server, shown)
    page.get_by_text("no WebGL2").wait_for()
    page.get_by_role("button", name="Lasso").click()
    around(page, canvas)
    assert len(selected(page, shown))
    page.evaluate("() => { HTMLCanvasElement.prototype.getContext = graphics; }")


def test_hostile_class_names_are_only_text(page, asked, server, shown):
    names = ["<img src=x onerror=alert(1)>", "![](http://evil.example/a.png)", "$\\frac12$", "\u202eabc", "a" * 300]

    def renamed(route: Any) -> None:
        """Return the points unchanged, with the classes renamed."""
        response = route.fetch()
        body = response.body()
        length = int.from_bytes(body[:4], "little")
        head = body[4 : 4 + length].decode()
        told = json.loads(head)
        told["names"] = [names[k % len(names)] for k in range(len(told["names"]))]
        text = json.dumps(told).encode()
        route.fulfill(
            body=len(text).to_bytes(4, "little") + text + body[4 + length :], content_type="application/octet-stream"
        )

    page.route("**/points.bin", renamed)
    canvas = opened(page, server, shown)
    for name in names:
        assert name in page.locator(".legend bdi").all_text_contents()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.locator(".card b bdi").wait_for()
    assert page.locator(".map-lab img:not([src*='/api/thumb/'])").count() == 0
    assert not [url for url in asked if "evil" in url or url.endswith("/x")]


def test_embeddings_shown_from_python_return_their_selection(page, server, monkeypatch):
    ensure = local_app.ensure
    monkeypatch.setattr(local_app, "ensure", lambda root: ensure(root, (server.port,)))
    labels = np.arange(60) % 3
    vectors = np.eye(3, 8)[labels] + np.random.default_rng(0).normal(size=(60, 8)) * 0.3
    handle = dmlcore.show(vectors, labels, metadata={"price": np.arange(60)}, runs=server.runs, open_browser=False)
    assert handle.url.startswith(f"{server.url}/explore?run=")
    canvas = opened(page, server, handle.run)
    page.get_by_role("button", name="Lasso").click()
    around(page, canvas, 0.3)
    assert 0 < len(selected(page, handle.run)) < 60
    np.testing.assert_array_equal(handle.selection, selected(page, handle.run))
