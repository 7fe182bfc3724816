"""The Fields page with real mouse and keyboard input: everything it shows equals what dmlcore computes for the
displayed state.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from dmlcore import losses
from dmlcore.geometry import forces
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import POINTS, Scene
from tests.browser import exported
from tests.browser.harness import becomes, counted, drag, eventually, go, press, quiet

pytestmark = pytest.mark.browser


def opened(page, server, query=""):
    go(page, f"{server.url}/fields{query}")
    page.wait_for_selector("canvas.plane[data-seq]")
    return page.locator("canvas.plane")


def seq(plane) -> int:
    return int(plane.get_attribute("data-seq"))


def at_rest(plane) -> None:
    """Wait until every request is answered: the plane has shown the same number for half a second."""
    quiet(lambda: seq(plane))


# Read boxes and menus by their labels, and the numbers computed for them, at one moment.
SHOWN = """plane => {
  const root = plane.getRootNode(), all = (selector) => [...root.querySelectorAll(selector)];
  return [
    Object.fromEntries(all("input[aria-label], select[aria-label]").map((box) => [box.ariaLabel, box.value])),
    Object.fromEntries(all("[data-readout]").map((node) => [node.dataset.readout, node.innerText])),
  ];
}"""


def shown(page) -> tuple[Scene, dict[str, str]]:
    """Return the state of the controls, read from the screen instead of the link, and the numbers next to them."""
    boxes, numbers = page.locator("canvas.plane").evaluate(SHOWN)
    hyper = {}
    for name, parameter in losses.formula(boxes["loss"]).sliders.items():
        if hasattr(parameter, "options"):
            hyper[name] = boxes[name]
        else:
            value = boxes[f"{name} value"]
            hyper[name] = float(value) if value else None
    points = {name: [float(boxes[f"{name} {axis}"]) for axis in "xy"] for name in POINTS}
    return Scene.of({"loss": boxes["loss"], "hyper": hyper} | points), numbers


def assert_numbers_are_exact(page) -> None:
    def exact() -> None:
        scene, numbers = shown(page)
        loss, points = scene.module(), as_tensors(scene)
        expected = {"loss": loss.clamped(*points).item(), "before clamp": loss.raw(*points).item()}
        for letter, force in zip("APN", forces(loss, *points), strict=True):
            expected[f"force on {letter}"] = force.norm().item()
        a, p, n = (x.numpy() for x in points)
        expected |= {"d(A,P)": np.hypot(*(a - p)), "d(A,N)": np.hypot(*(a - n)), "d(P,N)": np.hypot(*(p - n))}
        for name, value in expected.items():
            text = numbers[name]
            if math.isinf(value):
                assert text == "∞"
            else:
                tolerance = 6e-3 if abs(value) >= 1000 else 0
                assert float(text) == pytest.approx(value, abs=5.1e-4, rel=tolerance), name
        raw = expected["before clamp"]
        state = "active" if 0 < raw < loss.m2 else "satisfied" if raw <= 0 else "clamped"
        assert numbers["triplet"] == state

    eventually(exact)


def assert_link_reopens(page, again, server) -> None:
    """Check that the link restores state and numbers in another tab, or in the same tab after visiting another page."""
    plane = page.locator("canvas.plane")
    at_rest(plane)
    before = shown(page)
    opened(again, server, page.url.removeprefix(f"{server.url}/fields"))
    becomes(lambda: shown(again), before)


def test_dragging_a_point_keeps_every_number_exact_and_the_link_reopens_it(page, server):
    plane = opened(page, server, "?n=0.3,0.8&shade=force&probe=positive&m2=9")
    for name in POINTS:
        handle = page.get_by_role("button", name=f"{name} at")
        before, place = seq(plane), handle.get_attribute("aria-label")
        drag(page, handle, -37, 23, release=False)
        # sliders act while they are dragged
        becomes(lambda before=before: seq(plane), lambda n, before=before: n > before + 3)
        page.mouse.up()
        expect(handle).not_to_have_attribute("aria-label", place)
        assert_numbers_are_exact(page)
        page.wait_for_url(re.compile(rf"[?&]{name[0]}=(?!0\.3%2C0\.8)"))
    assert_link_reopens(page, page.context.new_page(), server)


@pytest.mark.parametrize("loss", ["distance_sensitive", "potential"])
def test_one_drag_leads_from_a_growing_to_a_decaying_pull(page, server, loss):
    """The numbers on screen are exact on the way, and the link keeps the negative exponent."""
    first = {"distance_sensitive": "s=1&r=0&m1=4.5", "potential": "alpha=1"}[loss]
    plane = opened(page, server, f"?loss={loss}&{first}&n=0.3,0.25&p=0.8,0")
    slider = page.get_by_role("slider", name={"distance_sensitive": "s", "potential": "alpha"}[loss], exact=True)
    before = seq(plane)
    drag(page, slider, -70 if loss == "distance_sensitive" else 70, 0, release=False)
    becomes(lambda: seq(plane), lambda n: n > before + 2)
    page.mouse.up()
    assert_numbers_are_exact(page)
    if loss == "distance_sensitive":
        page.wait_for_url(re.compile(r"[?&]s=-[\d.]+"))
        assert shown(page)[0].hyper["s"] < -1
    assert_link_reopens(page, page.context.new_page(), server)


@pytest.mark.parametrize("loss", ["distance_sensitive", "moving", "location_aware", "ratio"])
def test_every_slider_acts_while_it_is_dragged(page, server, loss):
    plane = opened(page, server, f"?loss={loss}&a=0.1,0.1&n=0.3,0.8")
    for name, parameter in losses.formula(loss).sliders.items():
        if hasattr(parameter, "options"):
            page.get_by_label(name, exact=True).select_option(parameter.options[-1])
            continue
        slider, before = page.get_by_role("slider", name=name, exact=True), seq(plane)
        value = page.get_by_label(f"{name} value", exact=True).input_value()
        drag(page, slider, 25, 0, release=False)
        becomes(lambda before=before: seq(plane), lambda n, before=before: n > before + 2)
        page.mouse.up()
        expect(page.get_by_label(f"{name} value", exact=True)).not_to_have_value(value)
        page.wait_for_url(re.compile(rf"[?&]{name}="))
        assert_numbers_are_exact(page)
    assert_link_reopens(page, page, server)


def test_while_the_hand_moves_and_after_streamlit_is_not_asked(page, server):
    opened(page, server)
    sent = counted(page)
    plane = opened(page, server, "?n=0.3,0.8")
    _, streamlit = quiet(lambda: (seq(plane), sent("_stcore/stream")), 1.0)
    assert streamlit, "requests of the page are counted"
    before = sent("api/field")
    slider = page.get_by_role("slider", name="r", exact=True)
    x, y = press(page, slider)

    def followed() -> None:  # one request is in flight at a time: a slow server gets fewer requests
        page.mouse.move(x + 40, y, steps=8)
        page.mouse.move(x + 20, y, steps=8)
        assert sent("api/field") > before + 5

    eventually(followed)
    page.mouse.up()
    page.wait_for_url(re.compile(r"[?&]r="))
    assert sent("_stcore/stream") == streamlit


def test_hovering_reads_out_the_place_under_the_pointer_and_keys_move_and_undo(page, server):
    plane = opened(page, server, "?n=0.3,0.8")
    at_rest(plane)
    box = quiet(plane.bounding_box)
    page.mouse.move(box["x"] + box["width"] / 2 - 80, box["y"] + box["height"] / 2 - 60)

    def of_the_place() -> None:
        lines = page.locator(".tip:visible > div").all()
        rows = {line.locator("span").inner_text(): line.locator("b").inner_text() for line in lines}
        place = torch.tensor([float(v) for v in rows["N here"].split(",")], dtype=torch.float64)
        scene, _ = shown(page)
        loss, (a, p, _) = scene.module(), as_tensors(scene)
        assert float(rows["loss"]) == pytest.approx(loss.clamped(a, p, place).item(), abs=0.02)
        assert float(rows["force"]) == pytest.approx(forces(loss, a, p, place)[2].norm().item(), rel=0.02)

    eventually(of_the_place)
    plane.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.locator(".tip:visible").wait_for()
    page.keyboard.press("Escape")
    page.locator(".tip").wait_for(state="hidden")
    moves_undoes_and_snaps(page)


def moves_undoes_and_snaps(page) -> None:
    negative = page.get_by_role("button", name="negative at")
    page.get_by_role("button", name="anchor at").focus()
    page.keyboard.press("Shift+ArrowUp")
    page.wait_for_url(re.compile(r"[?&]a=0%2C0.1"))
    page.get_by_label("snap").select_option("equilateral")
    page.wait_for_url(re.compile("snap=equilateral"))
    sides = lambda: [float(shown(page)[1][name]) for name in ("d(A,P)", "d(A,N)", "d(P,N)")]  # noqa: E731
    becomes(sides, lambda d: max(d) - min(d) < 0.002)
    page.get_by_role("button", name="undo (Ctrl+Z)").click()
    expect(negative).to_have_attribute("aria-label", re.compile("0.3, 0.8"))
    page.keyboard.press("Control+z")
    page.get_by_role("button", name="anchor at 0, 0", exact=True).wait_for()
    page.keyboard.press("Control+Shift+Z")
    page.get_by_role("button", name="anchor at 0, 0.1", exact=True).wait_for()


def test_situations_tour_losses_figures_and_margins(page, server):
    plane = opened(page, server, "?n=0.3,0.8")
    page.get_by_role("button", name="Too easy").click()
    expect(page.locator('[data-readout="triplet"]')).to_have_text("satisfied")
    page.get_by_role("button", name="Tour").click()
    for step in range(1, 7):
        page.get_by_text(f"{step} / 6").wait_for()
        page.keyboard.press("Enter")  # the focus follows below
    page.get_by_role("button", name="Tour").wait_for()
    page.wait_for_url(re.compile("discs=1"))
    expect(page.locator(".marked")).to_have_count(0)

    page.get_by_label("loss", exact=True).select_option("angular")
    page.get_by_role("heading", name="Angular").wait_for()
    expect(page.get_by_role("slider")).to_have_count(2)
    page.get_by_role("button", name="figure 3.6").click()
    page.get_by_role("button", name="r = 2", exact=True).click()
    page.wait_for_url(re.compile(r"rho=1.71429"))
    expect(page.locator('[data-readout="force on N"]')).to_have_text("7.571")
    page.get_by_text("Margins and balance").click()
    page.get_by_role("button", name=re.compile("^Margin for the ellipse")).click()
    page.wait_for_url(re.compile("m1=4.63809"))  # d = 1, s = 0, rho = 12/7: Appendix B
    page.get_by_role("button", name="normalised margin μ").click()
    page.wait_for_url(re.compile("mu=2.20952"))
    drag(page, page.get_by_role("slider", name="r", exact=True), 30, 0)
    page.wait_for_url(re.compile(r"[?&]r=(?!2(&|$)).*mu=2.20952|mu=2.20952.*[?&]r=(?!2(&|$))"))
    at_rest(plane)
    expect(page.get_by_label("mu value")).to_have_value("2.2095")


def test_without_a_socket_the_page_itself_carries_the_fields(page, server):
    plane = opened(page, server, "?n=0.3,0.8&socket=off")
    before = seq(plane)
    drag(page, page.get_by_role("button", name="positive at"), 50, -50)
    becomes(lambda: seq(plane), lambda n: n > before + 1)
    page.wait_for_url(re.compile(r"[?&]p="))
    assert "socket=off" in page.url
    expect(page.locator(".notice")).to_contain_text("a little longer")


def test_boxes_captions_and_colours_tell_the_state_in_use(page, server):
    plane = opened(page, server, "?n=0.3,0.8")
    box = page.get_by_label("r value", exact=True)
    box.fill("3")
    box.press("Enter")
    page.wait_for_url(re.compile("r=3"))
    box.fill("")
    box.press("Tab")
    expect(box).to_have_value("3")
    box.fill("99")
    box.press("Enter")
    page.wait_for_url(re.compile("r=4"))
    expect(box).to_have_value("4")
    page.get_by_role("button", name="Semi-hard").click()
    page.get_by_text("still within the margin").wait_for()
    at_rest(plane)
    page.get_by_role("button", name="negative at").press("Shift+ArrowUp")
    page.get_by_text("still within the margin").wait_for(state="detached")
    page.get_by_role("button", name="On the circle").click()
    page.get_by_role("button", name="figure 3.2").click()
    page.wait_for_url(lambda url: "loss=entangle" in url and "snap" not in url)
    page.get_by_label("loss", exact=True).select_option("ranking")
    across = page.get_by_label("negative x")
    for typed, shown in (("1e6", "100"), ("-1e300", "-100"), ("-0", "0"), ("1e-300", "0"), ("", "0"), ("0.35", "0.35")):
        across.fill(typed)
        across.press("Enter")
        expect(across).to_have_value(shown)
    page.get_by_label("negative y").fill("9")
    page.get_by_label("negative y").press("Enter")
    page.get_by_role("button", name="move the negative in").click()
    expect(page.locator('[data-readout="triplet"]')).to_have_text("active")


@pytest.mark.parametrize("layers", ["cut=1&discs=1&mining=1&lines=clamped&edges=1", "flow=streams&shade=raw"])
def test_png_svg_and_pdf_show_the_same_figure(page, server, layers):
    plane = opened(page, server, f"?n=0.3,0.8&{layers}")
    at_rest(plane)
    page.get_by_text("Export", exact=True).click()
    png, svg, pdf = (exported.save_figure(page, kind) for kind in ("PNG", "SVG", "PDF"))
    for element, least in (("<image", 1), ("<path", 11), (">N</text>", 1)):  # field, lines and letters as such
        assert svg.decode().count(element) >= least
    assert exported.count_paths(pdf) >= 11
    assert {"A", "P", "N", "−1.0"} <= set(exported.read_words(pdf))
    exported.assert_same_figure(page, png, svg, pdf)


def test_the_view_zooms_by_wheel_keys_buttons_and_two_fingers_and_is_dragged(page, server):
    plane = opened(page, server, "?n=0.3,0.8&a=0,0&p=0.5,0")
    at_rest(plane)
    box = plane.bounding_box()
    x, y = box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.8  # away from the points

    def place(name: str) -> tuple[float, float]:
        handle = page.get_by_role("button", name=f"{name} at").bounding_box()
        return handle["x"], handle["y"]

    def gap() -> float:
        return place("positive")[0] - place("anchor")[0]

    def zooms(act, closer: bool) -> None:
        before = gap()
        act()
        becomes(gap, lambda now: now > before + 2 if closer else now < before - 2)

    page.mouse.move(x, y)
    page.keyboard.down("Control")
    zooms(lambda: page.mouse.wheel(0, -240), closer=True)
    page.keyboard.up("Control")
    plane.focus()
    zooms(lambda: page.keyboard.press("-"), closer=False)
    zooms(lambda: page.keyboard.press("+"), closer=True)
    zooms(lambda: page.get_by_role("button", name="zoom out").click(), closer=False)
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, apart: int) -> None:
        points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}] if apart else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def pinch() -> None:
        fingers("touchStart", 20)
        for apart in (25, 30, 35):
            fingers("touchMove", apart)
        fingers("touchEnd", 0)

    zooms(pinch, closer=True)
    left, top = place("anchor")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 30, steps=4)
    page.mouse.up()
    becomes(lambda: place("anchor"), pytest.approx((left + 60, top - 30), abs=1.5))
    page.wait_for_url(re.compile(r"[?&]view="))


def test_a_late_message_of_streamlit_does_not_undo_a_choice(visitor, server):
    page, held, holding = visitor(), [], False

    def between(client) -> None:
        upstream = client.connect_to_server()
        client.on_message(upstream.send)
        upstream.on_message(lambda message: held.append((client, message)) if holding else client.send(message))

    page.route_web_socket(lambda url: "_stcore/stream" in url, between)
    page.goto(f"{server.url}/fields")
    page.wait_for_selector("canvas.plane[data-seq]")
    loss = page.get_by_label("loss", exact=True)
    loss.select_option("facenet")
    page.wait_for_url("**/fields?loss=facenet")
    loss.evaluate("menu => menu.blur()")
    holding = True
    page.keyboard.press("r")  # Streamlit runs the page again, with this address
    becomes(lambda: page.wait_for_timeout(100) or any(b"loss=facenet" in message for _, message in held), True)
    loss.select_option("ratio")
    page.wait_for_url("**/fields?loss=ratio")
    holding = False
    for client, message in held:
        client.send(message)
    page.wait_for_timeout(1000)  # nothing is to happen
    expect(loss).to_have_value("ratio")
