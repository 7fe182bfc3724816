"""From a wrong neighbour to its forces, with real mouse input: the ranks shown equal those of dmlcore."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from dmlcore import losses
from dmlcore.inspection import neighbours
from dmlcore.inspection.failure import one_step, true_step
from dmlcore.inspection.failure.answers import Question
from dmlcore.inspection.failure.best_loss import best_loss
from dmlcore.inspection.failure.one_step import NeighbourRanks, RetrievalFailure, failures
from dmlcore.storage.runs import Run
from pages.inspection.failures import words
from pages.shared.plane.state import POINTS
from tests.browser.harness import Server, address, becomes, drag, eventually, go, quiet
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def failing(server: Server) -> Run:
    return make_run(server.runs)


def opened(page, server, run, query: str = "") -> None:
    go(page, f"{server.url}/failures?run={run.id}{query}")
    page.wait_for_selector("canvas.plane[data-seq]")
    page.wait_for_url(re.compile("wrong="))


def link(page) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(urlsplit(address(page)).query).items()}


def case_of(page, run: Run) -> RetrievalFailure:
    found, query = neighbours.read(run.embeddings()), link(page)
    rows = [found.row(query[name]) for name in ("query", "right", "wrong")]
    return RetrievalFailure(found, *rows, on_sphere=True)


def table(page) -> dict[str, list[str]]:
    """Return the texts of the cells by loss: force, right, wrong, AP@R."""
    rows = page.locator(".steps tbody tr")
    cells = rows.evaluate_all(
        "rows => rows.map((r) => [r.dataset.loss, ...[...r.querySelectorAll('td')].map((c) => c.textContent)])"
    )
    return {name: [each.removesuffix(" ★") for each in rest] for name, *rest in cells}


def shown_loss(page) -> losses.TripletLoss:
    """Return the loss of the panel, built from its controls."""
    name = page.get_by_label("loss", exact=True).input_value()
    hyper = {}
    for key in losses.formula(name).sliders:
        value = page.get_by_label(f"{key} value", exact=True).input_value()
        hyper[key] = float(value) if value else None
    return losses.create(name, **hyper)


def row(now: NeighbourRanks, after: NeighbourRanks) -> list[str]:
    """Return what a row says about the ranks: right, wrong, AP@R."""

    def cell(name: str, better: int, text) -> str:
        before, then = getattr(now, name), getattr(after, name)
        if before == then:
            return text(before)
        return f"{text(then)} {'✓' if better * (then - before) > 0 else '✗'}"

    return [cell("right", -1, "{:,}".format), cell("wrong", 1, "{:,}".format), cell("average_precision", 1, percent)]


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def assert_ranks_are_those_of_dmlcore(page, run: Run) -> dict[str, list[str]]:
    """Return the table once every row equals what the library computes for the state of the controls."""
    found = {}

    def exact() -> None:
        case, drawn = case_of(page, run), shown_loss(page)
        rate = float(page.get_by_label("step size value", exact=True).input_value())
        compared = [drawn if name == drawn.formula.name else losses.create(name) for name in losses.names()]
        for loss, step in zip(compared, case.steps(compared, rate, length=rate), strict=True):
            force, *ranks = table(page)[loss.formula.name]
            assert ranks == row(case.before, step.after), loss.formula.name
            assert (force not in ("satisfied", "clamped")) == step.forces.active
        found.update(table(page))

    eventually(exact)
    return found


def test_from_a_red_neighbour_of_the_gallery_to_its_forces_and_the_sliders_move_the_ranks(page, server, failing):
    go(page, f"{server.url}/neighbours?run={failing.id}&failures=true")
    red = page.locator(".neighbours .wrong a.frame").first
    red.wait_for()
    index = quiet(lambda: red.get_attribute("data-index"))
    query = page.locator(".neighbours .query a.frame").first.get_attribute("data-index")

    def leads_there() -> None:  # Neighbours handles keys only once its listener is loaded
        if "failures?" not in address(page):
            red.focus()
            page.keyboard.press("f")
        page.wait_for_url(re.compile(f"failure.*wrong={index}"), timeout=2000)

    eventually(leads_there)
    page.wait_for_selector("canvas.plane[data-seq]")
    assert link(page)["query"] == query
    before = assert_ranks_are_those_of_dmlcore(page, failing)

    slider = page.get_by_role("slider", name="step size", exact=True)
    drag(page, slider, 60, 0, release=False)
    becomes(lambda: table(page), lambda now: now != before)  # sliders act while they are dragged
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
    expect(page.get_by_role("button", name="Back to the embeddings")).to_be_hidden()
    drag(page, page.get_by_role("button", name="negative at"), 90, -50)
    page.wait_for_url(re.compile("[?&]n="))
    here = [[float(page.get_by_label(f"{name} {axis}").input_value()) for axis in "xy"] for name in POINTS]

    def exact() -> None:
        points = np.where(np.array(here) == np.round(case.triplet.points, 4), case.triplet.points, here)
        (now,) = case.ranks_at(case.triplet.lift_points(points)[None])
        assert f"N at rank {now.wrong:,} (was 1)" in page.locator(".now").inner_text()

    eventually(exact)
    page.get_by_role("button", name="Back to the embeddings").click()
    becomes(lambda: [page.get_by_label(f"{name} {axis}").input_value() for name in POINTS for axis in "xy"], home)
    becomes(lambda: "n" in link(page), False)
    page.set_viewport_size({"width": 390, "height": 844})
    choice, steps = page.get_by_label("loss", exact=True), page.locator(".steps")
    expect(choice).to_be_hidden()  # the table of steps is right below the plane
    page.get_by_role("button", name="Loss, points and view").click()
    expect(choice).to_be_visible()
    assert steps.bounding_box()["y"] < choice.bounding_box()["y"]


def test_the_next_failure_brings_its_own_triplet_and_keeps_the_loss(page, server, failing):
    opened(page, server, failing, "&loss=lifted&rate=0.5&by=length")
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


def test_a_neighbour_of_the_strip_takes_the_place_and_the_loss_stays(page, server, failing):
    opened(page, server, failing, "&loss=ratio&m=1.5")
    page.get_by_role("button", name="Angular", exact=True).click()
    page.wait_for_url(re.compile("loss=angular"))
    drag(page, page.get_by_role("slider", name="m", exact=True), 60, 0)
    page.wait_for_url(re.compile("[?&]m="))
    before = quiet(lambda: link(page))
    assert "view" not in before, "the view was not moved"
    loads = page.evaluate("performance.timeOrigin")
    tile = page.locator('.failure a[data-role="wrong"]:not([aria-current])').first
    index = tile.get_attribute("data-index")
    tile.click()
    becomes(lambda: link(page)["wrong"], index)
    becomes(lambda: {**link(page), "wrong": before["wrong"]}, before)
    expect(page.get_by_label("loss", exact=True)).to_have_value("angular")
    assert page.evaluate("performance.timeOrigin") == loads, "the app was reloaded"
    assert_ranks_are_those_of_dmlcore(page, failing)


def test_the_best_loss_is_named_and_headers_sort_and_the_true_step_follows_the_loss_drawn(page, server, failing):
    found = neighbours.read(failing.embeddings())
    query = int(failures(found)[0])
    rows = [int(one_step.neighbours(found, query, right=right)[0]) for right in (True, False)]
    samples = [int(found.indices[row]) for row in (query, *rows)]
    true_step.make(failing, Question(*samples, {"ranking": {}, "angular": {}}))
    opened(page, server, failing)
    case = RetrievalFailure(found, query, *rows, on_sphere=True)
    compared = [losses.create(name) for name in losses.names() if name != failing.spec.loss.name]
    compared.append(losses.create(failing.spec.loss.name, **failing.spec.loss.parameters))
    steps = {
        loss.formula.name: each.after
        for loss, each in zip(compared, case.steps(compared, 0.1, length=0.1), strict=True)
    }
    after = {name: steps[name] for name in losses.names()}
    judged = best_loss(case.before, after)
    expect(page.locator(".verdict:not(.last-word) strong")).to_have_text(words.verdict(judged, case.before, after))
    expect(page.locator(".last-word strong")).to_contain_text("True step:")
    for key, leaders in judged.leaders.items():
        stars = page.locator(f'.steps td[data-cell="{key}"].best')
        expect(stars).to_have_count(len(leaders))
    # Sorted numerically, best first, then reversed.
    for way in (1, -1):
        page.get_by_role("button", name="rank of P", exact=True).click()
        shown = becomes(lambda: list(table(page)), lambda names: names != losses.names())
        ranks = [way * steps[name].right for name in shown]
        assert ranks == sorted(ranks)
        expect(page.locator('[data-sort="right"]')).to_have_attribute(
            "aria-sort", "ascending" if way > 0 else "descending"
        )
    # Streamlit draws the sentence below, and is notified of the loss.
    page.get_by_text(re.compile("Right P with Ranking")).wait_for()
    page.get_by_role("button", name="Angular", exact=True).click()
    page.get_by_text(re.compile("Right P with Angular|Angular has no force")).wait_for()
    page.get_by_role("button", name="rate η").click()
    page.get_by_text(re.compile("equal rate η = 0.1")).wait_for()
    expect(page.locator(".ranks .rule")).to_contain_text("mostly compares gradient sizes")
    assert link(page)["by"] == "rate"
    assert link(page)["loss"] == "angular"
