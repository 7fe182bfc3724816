"""The Neighbours page with real mouse and keyboard input, on real runs."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from dmlcore import data
from dmlcore.figures.maps import in_square
from dmlcore.inspection import own_images
from dmlcore.inspection.comparison import compare
from dmlcore.inspection.index import Index
from dmlcore.inspection.maps import maps
from dmlcore.inspection.neighbours import read
from dmlcore.storage.runs import Run
from tests.browser.harness import Server, address, becomes, go, quiet
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shown(server: Server) -> Run:
    return make_run(server.runs)


@pytest.fixture(scope="module")
def other(server: Server) -> Run:
    return make_run(server.runs, "model.embedding_dim=2")


def test_a_click_makes_a_neighbour_the_query_and_back_returns(page, server, shown):
    go(page, f"{server.url}/neighbours?run={shown.id}")
    images = page.locator(".neighbours .found a")
    page.locator(".neighbours .row").nth(9).wait_for()
    # the listener is loaded; before that a click follows a plain link
    page.get_by_role("button", name="Keys").wait_for()
    page.evaluate("window.same_page = true")
    chosen = quiet(lambda: images.nth(2).get_attribute("data-index"))
    images.nth(2).click()
    page.wait_for_url(re.compile(f"query={chosen}"))
    page.get_by_role("button", name="All queries").wait_for()
    expect(page.locator(".neighbours .query a")).to_have_attribute("data-index", chosen)
    assert page.evaluate("window.same_page"), "the app was not reloaded"
    page.go_back()
    page.locator(".neighbours .row").nth(9).wait_for()
    image = page.locator(".neighbours img").first
    becomes(lambda: image.evaluate("(x) => x.decode().then(() => x.naturalWidth)"), 128)
    wrong = page.locator(".neighbours .wrong .frame").first
    expect(wrong).to_have_css("border-style", "dashed")
    expect(wrong).to_have_css("border-color", "rgb(213, 94, 0)")


def test_images_that_are_gone_are_told_in_one_sentence(page, server, shown):
    page.route("**/api/thumb/**", lambda route: route.fulfill(status=404))
    go(page, f"{server.url}/neighbours?run={shown.id}")
    page.locator(".neighbours .row").nth(9).wait_for()
    told = page.get_by_text("Images are missing because")
    told.first.wait_for()  # a script run is in between, which takes long on a busy machine
    expect(told).to_have_count(1)


def test_the_keyboard_alone_walks_from_a_page_to_the_forces(page, server, shown):
    go(page, f"{server.url}/neighbours?run={shown.id}")
    tiles = page.locator(".neighbours a.frame")
    page.locator(".neighbours .row").nth(9).wait_for()
    listed = lambda: tiles.evaluate_all("found => found.map(x => Number(x.dataset.index))")  # noqa: E731
    at = lambda: page.evaluate("Number(document.activeElement.dataset.index ?? -1)")  # noqa: E731
    first_page = quiet(listed)
    page.evaluate("window.same_page = true")

    page.keyboard.press("n")
    second_page = becomes(listed, lambda now: now and now != first_page)
    page.keyboard.press("p")
    becomes(listed, first_page)
    assert second_page != first_page

    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()

    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    becomes(at, first_page[0])
    page.keyboard.press("ArrowDown")
    becomes(at, first_page[9])  # the query below: eight neighbours are in between
    page.keyboard.press("ArrowRight")
    becomes(at, first_page[10])
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"query={first_page[10]}(&|$)"))
    becomes(at, first_page[10])  # the focus follows to the new query
    wrong = page.locator(".neighbours .wrong a.frame").first
    wrong.focus()
    index = quiet(lambda: wrong.get_attribute("data-index"))
    page.keyboard.press("f")
    page.wait_for_url(re.compile("/failures"))
    link = becomes(lambda: address(page), lambda now: f"wrong={index}" in now)
    assert f"query={first_page[10]}" in link
    assert page.evaluate("window.same_page"), "the app was not reloaded"


def test_runs_side_by_side_show_where_one_beats_the_other(page, server, shown, other):
    go(page, f"{server.url}/neighbours?run={shown.id}&with={other.id}")
    page.locator(".neighbours .row").nth(4).wait_for()
    page.get_by_text("where A beats B").click()
    ours, theirs = read(shown.embeddings()), read(other.embeddings())
    both = compare([ours, theirs])
    wins = both.wins(0, 1)
    assert len(wins), "this selection of runs distinguishes the two"
    wanted = ours.indices[both.rows[0, wins]].tolist()[:5]
    queries = page.locator(".neighbours figure.query a")
    becomes(lambda: queries.evaluate_all("found => found.map(x => Number(x.dataset.index))"), wanted)
    for row in range(len(wanted)):
        lines = page.locator(".neighbours .row").nth(row).locator(".line")
        assert lines.nth(0).locator("figure").first.get_attribute("class") == "right"
        assert lines.nth(1).locator("figure").first.get_attribute("class") == "wrong"
    expect(page.get_by_text(re.compile(f"right in A only: {len(wins)} queries"))).to_be_visible()


def test_an_image_of_ones_own_finds_what_the_index_finds(page, server, shown):
    made = maps.read(maps.make(shown, maps.Settings("pca")))
    go(page, f"{server.url}/neighbours?run={shown.id}&view=Own picture")
    upload = page.locator("input[type=file]")
    upload.wait_for(state="attached")
    digits = data.load("digits")
    file = io.BytesIO()
    on_paper = Image.fromarray(255 - digits.image(3)).resize((200, 200), Image.Resampling.NEAREST)
    on_paper.save(file, "PNG")
    upload.set_input_files({"name": "<img src=x>.png", "mimeType": "image/png", "buffer": file.getvalue()})
    index = Index.of_run(shown)
    _, rows = index.search(on_paper, 16, invert=True)
    found = page.locator(".neighbours .found a")
    becomes(
        lambda: found.evaluate_all("found => found.map(x => Number(x.dataset.index))"), index.indices[rows[0]].tolist()
    )
    expect(page.locator(".neighbours .unknown")).to_have_count(16)
    assert np.isin(index.labels[rows[0, 0]], range(10))

    upload.set_input_files({"name": "<b>x</b>.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n cut"})
    page.get_by_text("This file cannot be used as a query").wait_for()
    page.get_by_text("<b>x</b>.png", exact=False).last.wait_for()
    assert page.locator("b", has_text="x").count() == 0

    upload.set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": file.getvalue()})
    page.get_by_role("button", name="Show on the map").click()
    page.wait_for_url(re.compile("explore.*own="))
    drawn = page.locator("[data-own]")
    inputs = own_images.as_inputs([on_paper], digits, invert=True)
    place = in_square(maps.place(made, index.embed(inputs)), made.points)[0]
    becomes(
        lambda: [float(number) for number in (drawn.get_attribute("data-own") or "9,9").split(",")],
        lambda shares: np.allclose(shares, place, atol=1e-4),
    )
