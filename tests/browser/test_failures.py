"""From a wrong neighbour to its forces, under a real mouse: the ranks that are shown are those of dmlcore."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from dmlcore import losses
from dmlcore.inspection import neighbours
from dmlcore.inspection.failure.one_step import NeighbourRanks, RetrievalFailure, failures
from dmlcore.storage.runs import Run
from pages.shared.plane.state import POINTS
from tests.browser.harness import Server, address, becomes, drag, eventually, go, quiet
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def failing(server: Server) -> Run:
    return make_run(server.runs)


def opened(page, server, run, query: str = "") -> None:
    go(page, f"{server.url}/failure?run={run.id}{query}")
    page.wait_for_selector("canvas.plane[data-seq]")
    page.wait_for_url(re.compile("wrong="))


def link(page) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(urlsplit(address(page)).query).items()}


def case_of(page, run: Run) -> RetrievalFailure:
    found, query = neighbours.read(run.embeddings()), link(page)
    rows = [found.row(query[name]) for name in ("query", "right", "wrong")]
    return RetrievalFailure(found, *rows, on_sphere=True)


def table(page) -> dict[str, list[str]]:
    """Texts of the cells by loss: force, right, wrong, AP@R."""
    rows = page.locator(".steps tbody tr")
    cells = rows.evaluate_all(
        "rows => rows.map((r) => [r.dataset.loss, ...[...r.querySelectorAll('td')].map((c) => c.textContent)])"
    )
    return {name: rest for name, *rest in cells}


def shown_loss(page) -> losses.TripletLoss:
    """The loss of the panel, from its controls."""
    name = page.get_by_label("loss", exact=True).input_value()
    hyper = {}
    for key in losses.formula(name).sliders:
        value = page.get_by_label(f"{key} value", exact=True).input_value()
        hyper[key] = float(value) if value else None
    return losses.create(name, **hyper)


def row(now: NeighbourRanks, after: NeighbourRanks) -> list[str]:
    """What a row says of the ranks: right, wrong, AP@R."""

    def cell(name: str, better: int, text) -> str:
        before, then = getattr(now, name), getattr(after, name)
        if before == then:
            return text(before)
        change = text(before) if text(before) == text(then) else f"{text(before)} → {text(then)}"
        return f"{change} {'✓' if better * (then - before) > 0 else '✗'}"

    return [cell("right", -1, "{:,}".format), cell("wrong", 1, "{:,}".format), cell("average_precision", 1, percent)]


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def assert_ranks_are_those_of_dmlcore(page, run: Run) -> dict[str, list[str]]:
    """The table as shown, once every row equals what the library computes for what the controls show."""
    found = {}

    def exact() -> None:
        case, drawn = case_of(page, run), shown_loss(page)
        rate = float(page.get_by_label("step size value", exact=True).input_value())
        compared = [drawn if name == drawn.formula.name else losses.create(name) for name in losses.names()]
        for loss, step in zip(compared, case.steps(compared, rate), strict=True):
            force, *ranks = table(page)[loss.formula.name]
            assert ranks == row(case.before, step.after), loss.formula.name
            assert (force not in ("satisfied", "clamped")) == step.forces.active
        found.update(table(page))

    eventually(exact)
    return found


def test_from_a_red_neighbour_of_the_gallery_to_its_forces_and_the_sliders_move_the_ranks(page, server, failing):
    go(page, f"{server.url}/gallery?run={failing.id}&failures=true")
    red = page.locator(".neighbours .wrong a.frame").first
    red.wait_for()
    index = quiet(lambda: red.get_attribute("data-index"))
    query = page.locator(".neighbours .query a.frame").first.get_attribute("data-index")

    def leads_there() -> None:  # the gallery hears keys only once its listener is loaded
        if "failure?" not in address(page):
            red.focus()
            page.keyboard.press("f")
        page.wait_for_url(re.compile(f"failure.*wrong={index}"), timeout=2000)

    eventually(leads_there)
    page.wait_for_selector("canvas.plane[data-seq]")
    assert link(page)["query"] == query
    before = assert_ranks_are_those_of_dmlcore(page, failing)

    slider = page.get_by_role("slider", name="step size", exact=True)
    drag(page, slider, 60, 0, release=False)
    becomes(lambda: table(page), lambda now: now != before)  # it acts while it is held
    page.mouse.up()
    page.wait_for_url(re.compile("rate="))
    larger = assert_ranks_are_those_of_dmlcore(page, failing)
    assert larger != before

    page.get_by_role("button", name="FaceNet", exact=True).click()
    expect(page.get_by_label("loss", exact=True)).to_have_value("facenet")
    drag(page, page.get_by_role("slider", name="m", exact=True), -300, 0)
    page.wait_for_url(re.compile("loss=facenet.*[?&]m=0"))
    without_margin = assert_ranks_are_those_of_dmlcore(page, failing)
    assert without_margin["ranking"] == larger["ranking"]


def test_a_dragged_point_asks_what_if_and_the_button_goes_back(page, server, failing):
    opened(page, server, failing, "&loss=hoffer")
    case = case_of(page, failing)
    home = quiet(lambda: [page.get_by_label(f"{name} {axis}").input_value() for name in POINTS for axis in "xy"])
    expect(page.get_by_role("button", name="Back to the data")).to_be_hidden()
    drag(page, page.get_by_role("button", name="negative at"), 90, -50)
    page.wait_for_url(re.compile("[?&]n="))
    here = [[float(page.get_by_label(f"{name} {axis}").input_value()) for axis in "xy"] for name in POINTS]

    def exact() -> None:
        points = np.where(np.array(here) == np.round(case.triplet.points, 4), case.triplet.points, here)
        (now,) = case.standings(case.triplet.lift_points(points)[None])
        assert f"wrong N at rank {now.wrong:,} (in the data 1)" in page.locator(".now").inner_text()

    eventually(exact)
    page.get_by_role("button", name="Back to the data").click()
    becomes(lambda: [page.get_by_label(f"{name} {axis}").input_value() for name in POINTS for axis in "xy"], home)
    becomes(lambda: "n" in link(page), False)


def test_the_next_failure_brings_its_own_triplet_and_keeps_the_loss(page, server, failing):
    opened(page, server, failing, "&loss=lifted&rate=0.5")
    found = neighbours.read(failing.embeddings())
    page.get_by_role("button", name="Next failure").click()
    wanted = str(found.indices[failures(found)[1]])
    page.wait_for_url(re.compile(f"query={wanted}&.*wrong="))
    expect(page.get_by_label("loss", exact=True)).to_have_value("lifted")
    expect(page.locator(".thumb.anchor")).to_have_attribute("src", re.compile(f"/{wanted}$"))
    assert_ranks_are_those_of_dmlcore(page, failing)
    other = page.locator(".failure .strip.negative a:not([aria-current])").first
    chosen = other.get_attribute("data-index")
    other.click()
    page.wait_for_url(re.compile(f"wrong={chosen}(&|$)"))
    assert link(page)["loss"] == "lifted"
    assert_ranks_are_those_of_dmlcore(page, failing)


def test_a_neighbour_of_the_strip_takes_the_place(page, server, failing):
    opened(page, server, failing)
    before = link(page)
    loads = page.evaluate("performance.timeOrigin")
    tile = page.locator('.failure a[data-role="wrong"]:not([aria-current])').first
    index = tile.get_attribute("data-index")
    tile.click()
    becomes(lambda: link(page)["wrong"], index)
    becomes(lambda: link(page).get("right"), before["right"])
    assert page.evaluate("performance.timeOrigin") == loads, "the app was loaded again"
