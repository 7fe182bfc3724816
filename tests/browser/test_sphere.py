"""Circle and sphere with real mouse and keyboard input: drag, rotate, link, numbers."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from pages.losses.fields.sphere.service import readout
from pages.losses.fields.sphere.state import SphereScene
from pages.shared.plane.state import POINTS
from tests.browser.harness import address, becomes, counted, drag, eventually, go, quiet

pytestmark = pytest.mark.browser

# Of five frames of a rotating figure, count those that move handles and figure together, and those that move only the
# handles.
TURNING = """() => new Promise((done) => {
  const roots = [document];
  for (const root of roots) {
    for (const node of root.querySelectorAll("*")) if (node.shadowRoot) roots.push(node.shadowRoot);
  }
  const root = roots.find((r) => r.querySelector("canvas[data-painted]"));
  let both = 0, alone = 0;
  const seen = new MutationObserver((all) => { // one call a frame
    const moved = all.some((m) => m.attributeName === "style" && m.target.matches(".handle"));
    const painted = all.some((m) => m.attributeName === "data-painted");
    if (moved && painted) both++; else if (moved) alone++;
    if (both + alone >= 5) { seen.disconnect(); done([both, alone]); }
  });
  seen.observe(root, { subtree: true, attributes: true, attributeFilter: ["style", "data-painted"] });
})"""


def opened(page, server, query=""):
    go(page, f"{server.url}/sphere{query}")
    name = "Unit circle" if "on=circle" in query else "Unit sphere"
    canvas = page.get_by_role("img", name=name)
    canvas.wait_for()
    expect(canvas).to_have_attribute("data-seq", re.compile(r"\d"))
    return canvas


def painted(canvas) -> int:
    return int(canvas.get_attribute("data-painted"))


def point(page, name):
    return page.get_by_role("button", name=f"{name} at")


def centre(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def shown(page, name) -> str:
    return page.locator(f'[data-readout="{name}"]').inner_text()


def of_link(page) -> SphereScene:
    return SphereScene.from_query(dict(parse_qsl(urlsplit(address(page)).query)))


def assert_numbers_are_the_library_s(page) -> None:
    """Compare loss, distances and forces on the page with dmlcore at the state of the link."""

    def equal() -> None:
        expected = readout(of_link(page))
        assert shown(page, "loss") == f"{expected['energy']:.3f}"
        for pair, label in (("ap", "d(A,P)"), ("an", "d(A,N)"), ("pn", "d(P,N)")):
            assert float(shown(page, label)) == pytest.approx(expected["edges"][pair], abs=6e-4)
        for k, name in enumerate(POINTS):
            size = sum(x * x for x in expected["tangential"][k]) ** 0.5
            assert float(shown(page, f"tangential {name}")) == pytest.approx(size, abs=6e-4)
            assert float(shown(page, f"radial {name}")) == pytest.approx(expected["radial"][k], abs=6e-4)

    eventually(equal)


def assert_reopens(page, again, server) -> None:
    """Check that the link restores points and numbers in another tab, or in this one after visiting another page."""
    labels = {name: point(page, name).get_attribute("aria-label") for name in POINTS}
    opened(again, server, "?" + urlsplit(address(page)).query)
    assert_numbers_are_the_library_s(again)
    for name, label in labels.items():
        expect(point(again, name)).to_have_attribute("aria-label", label)


def test_points_are_dragged_along_the_sphere_and_the_link_reopens_the_state(page, guest, server):
    opened(page, server, "?n=45,-10")
    before = of_link(page)
    for name, dx, dy in (("anchor", 40, 30), ("positive", -30, -25), ("negative", -40, -20)):
        drag(page, point(page, name), dx, dy)
        page.wait_for_url(re.compile(rf"[?&]{name[0]}=(?!45,-10)"))
        assert getattr(of_link(page), name) != getattr(before, name)
        assert_numbers_are_the_library_s(page)
    assert_reopens(page, guest, server)


def test_rotation_asks_python_for_nothing_until_it_rests(page, server):
    opened(page, server, "?n=45,-10&on=circle")
    sent = counted(page)
    globe = opened(page, server, "?n=45,-10")
    labels = [point(page, name) for name in POINTS]
    assert quiet(lambda: (globe.get_attribute("data-seq"), sent("")), 1.0)[1], "requests of the page are counted"
    places, before = [centre(x) for x in labels], painted(globe)
    x, y = centre(globe)
    page.mouse.move(x, y + 120)
    page.mouse.down()
    asked = sent("")
    page.mouse.move(x + 90, y + 160, steps=15)
    becomes(lambda: painted(globe), lambda n: n > before + 3)
    assert sent("") == asked, "a rotation is a change of view only"
    page.mouse.up()
    page.wait_for_url(re.compile("eye="))
    becomes(lambda: [centre(x) for x in labels], lambda now: now != places)
    assert of_link(page).negative == (45, -10)
    quiet(lambda: address(page))  # it has stopped rotating
    globe.focus()
    eye = of_link(page).eye
    page.keyboard.press("Shift+ArrowRight")
    becomes(lambda: (of_link(page).eye[0] - eye[0]) % 360, pytest.approx(30, abs=0.01))
    assert_reopens(page, page, server)


def test_circle_and_map_share_one_state(page, server):
    opened(page, server, "?on=circle&loss=facenet&m=2")
    drag(page, point(page, "negative"), -60, -30)
    page.wait_for_url(re.compile("[?&]n="))
    assert_numbers_are_the_library_s(page)
    scene = of_link(page)
    dot = page.get_by_role("button", name="degrees from A")
    drag(page, dot, 30, 40)
    page.wait_for_url(re.compile("[?&]p="))
    moved = of_link(page)
    assert moved.positive[0] > scene.positive[0]
    assert moved.negative[0] < scene.negative[0]
    assert moved.anchor == scene.anchor
    assert_numbers_are_the_library_s(page)
    dot.focus()
    page.keyboard.press("Shift+ArrowUp")
    becomes(lambda: of_link(page).negative[0] - moved.negative[0], pytest.approx(10, abs=0.01))
    assert_numbers_are_the_library_s(page)
    assert_reopens(page, page, server)


def test_states_losses_and_the_statement_follow(page, server):
    opened(page, server, "?n=45,-10")
    page.get_by_role("button", name="antipodal negative").click()
    page.wait_for_url(re.compile("n=-180,0"))
    expect(page.locator('[data-readout="angle A–N"]')).to_have_text("180.0°")
    page.get_by_label("loss", exact=True).select_option("facenet")
    page.get_by_role("heading", name="Effect of normalisation on the FaceNet loss").wait_for()
    page.get_by_label("m value").fill("4.5")
    page.get_by_label("m value").press("Enter")
    page.get_by_text("no triplet is ever satisfied").wait_for()
    page.wait_for_url(re.compile("m=4.5"))
    assert_numbers_are_the_library_s(page)
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG", exact=True).click()
    assert saved.value.suggested_filename == "sphere.png"


@pytest.mark.usefixtures("in_motion")
def test_it_turns_on_opening_and_not_for_those_who_asked_for_stillness(page, server):
    globe = opened(page, server)
    first = painted(globe)
    becomes(lambda: painted(globe), lambda n: n > first + 5)
    assert page.evaluate(TURNING) == [5, 0], "the handles must move, too"
    page.emulate_media(reduced_motion="reduce")
    globe = opened(page, server)
    resting = quiet(lambda: painted(globe))
    place = lambda: point(page, "anchor").evaluate("(el) => el.style.transform")  # noqa: E731
    assert quiet(lambda: (painted(globe), place()), 1.0)[0] == resting


def test_the_table_of_losses_scrolls_under_their_names_on_a_phone(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, server)
    table = page.get_by_test_id("stTable")
    cell, box = table.locator("tbody td").first, table.locator("div").first

    def stays() -> None:
        box.evaluate("(el) => { el.scrollLeft = 0; }")
        before = cell.bounding_box()["x"]
        assert box.evaluate("(el) => { el.scrollLeft = 1e4; return el.scrollLeft; }") > 0
        assert cell.bounding_box()["x"] == pytest.approx(before, abs=1)

    eventually(stays)
    becomes(lambda: page.evaluate("document.documentElement.scrollWidth - innerWidth"), lambda over: over <= 0)
