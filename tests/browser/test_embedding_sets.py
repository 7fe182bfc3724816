"""Embedding sets on the Inspection pages, with and without labels, ids and images, in a real browser."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from dmlcore.storage.runs import Run
from tests.browser.harness import Server, address, becomes, go, press_download
from tests.embedding_set_runs import COUNT, HOSTILE, make_set

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def full(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Set with labels, ids, images and metadata."""
    return make_set(server.runs, images=tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def bare(server: Server) -> Run:
    """Set with vectors and metadata alone."""
    return make_set(server.runs, labels=False, ids=False, name="Bare")


def explore(page: Any, server: Server, run: Run, more: str = "") -> Any:
    go(page, f"{server.url}/explore?run={run.id}{more}")
    page.locator("canvas.map[data-painted]").wait_for()
    return page.locator("canvas.map")


def shown(page: Any) -> Any:
    """Return the number of images next to the map."""
    return page.locator(".wall .view").get_attribute("data-count")


def rows_of(page: Any, name: str) -> list[dict[str, str]]:
    """Download a CSV file with the button of this name; return its lines."""
    download = press_download(page, page.get_by_test_id("stDownloadButton").get_by_role("button", name=name))
    with open(download.path(), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_metadata_colour_and_filter_the_map_and_the_link_keeps_them(page, server, full):
    canvas = explore(page, server, full)
    menu = page.get_by_label("colour by")
    expect(menu.locator("optgroup option")).to_have_text(["price", "colour", HOSTILE])
    menu.select_option("meta-1")
    expect(canvas).to_have_attribute("data-colour", "meta-1")
    page.locator('details[data-filter="meta-1"]').get_by_role("button", name="red").click()
    becomes(lambda: shown(page), "36")  # even rows, without every tenth
    becomes(lambda: address(page), lambda url: "colour=meta-1" in url and "meta=1-1" in url)
    page.get_by_role("button", name=re.compile("^ash")).click()
    becomes(lambda: shown(page), "12")
    page.locator('details[data-filter="meta-0"] summary').click()
    lowest = page.get_by_label("price: lowest value")
    lowest.focus()
    lowest.press("End")
    becomes(lambda: shown(page), "0")
    lowest.press("Home")
    becomes(lambda: shown(page), "12")
    canvas = explore(page, server, full, "&colour=meta-1&meta=1-1,0-0-127")
    becomes(lambda: shown(page), lambda count: 0 < int(count or 0) < 36)
    page.get_by_role("button", name="Clear filters").click()
    becomes(lambda: shown(page), str(COUNT))


def test_a_sample_shows_its_id_and_metadata_as_text(page, server, full):
    canvas = explore(page, server, full)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    index = int(becomes(lambda: canvas.get_attribute("data-hovered"), lambda index: index not in (None, "")))
    page.keyboard.press("Enter")
    expect(page.locator(".card.pinned")).to_contain_text(f"item {index:03}")
    expect(page.locator(".card.pinned dl")).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Full screen").click()
    dialog = page.get_by_role("dialog", name="sample")
    expect(dialog.locator(".facts")).to_contain_text(f"item {index:03}")
    expect(dialog.locator("dl")).to_contain_text(f"{HOSTILE}{index % 4}")
    expect(dialog.get_by_text("During training")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("img[src=x]")).to_have_count(0)


def test_a_map_without_labels_says_nothing_about_classes(page, server, bare):
    canvas = explore(page, server, bare)
    expect(canvas).to_have_attribute("data-colour", "density")
    options = page.get_by_label("colour by").locator("option")
    expect(options).to_have_text(["density", "hubness", "tags", "price", "colour", HOSTILE])
    expect(page.get_by_role("heading", name="class", exact=True)).to_be_hidden()
    expect(page.get_by_label("search classes by name")).to_be_hidden()
    expect(page.get_by_text("embeddings without labels")).to_be_visible()
    for text in ("Suspicious labels", "Your own image", "Map during training"):
        expect(page.get_by_text(text)).to_have_count(0)
    page.locator(".tile").first.click()
    dialog = page.get_by_role("dialog", name="sample")
    expect(dialog.locator(".found button").first).to_be_visible()
    expect(dialog.locator(".found .right, .found .wrong")).to_have_count(0)
    expect(dialog).not_to_contain_text("class")
    page.keyboard.press("Escape")


def test_a_selection_is_a_csv_file(page, server, full):
    canvas = explore(page, server, full)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    index = int(becomes(lambda: canvas.get_attribute("data-hovered"), lambda index: index not in (None, "")))
    page.keyboard.press(" ")
    page.get_by_text("1 samples selected").wait_for()
    (row,) = rows_of(page, "CSV")
    assert (row["row"], row["id"], row["label"]) == (
        str(index),
        f"item {index:03}",
        ("ash", "birch", "cedar")[index % 3],
    )
    assert Path(row["image"]).name == f"{index}.png"
    assert row[HOSTILE] == str(index % 4)
    page.get_by_role("button", name="Clear selection").click()
