"""The Collage page: from an untrained state to a study that is cancelled; weight maps with mouse and keyboard."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from dmlcore.data import load
from dmlcore.experiments import studies
from dmlcore.inspection.local import weight_maps
from dmlcore.storage.runs import RunStore
from tests.browser.harness import Server, address, becomes, eventually, go, quiet
from tests.pages.conftest import make_run

pytestmark = pytest.mark.browser

RUNS = len(studies.expand(studies.read("omniglot-collage")))


def linked(page, name: str, value: str) -> None:
    """Wait until the link contains the value."""
    becomes(lambda: dict(parse_qsl(urlsplit(address(page)).query)).get(name), value)


def test_nothing_trained_then_the_study_starts_and_is_cancelled(page, server: Server):
    go(page, f"{server.url}/collage")
    box = page.locator(".st-key-study-omniglot-collage")
    page.get_by_text("Study: GAP and GSP on collages").click()
    expect(box).to_contain_text(f"Not trained here yet. The study takes {RUNS} runs")
    expect(box.locator("img")).to_have_count(8)
    # The shipped maps belong to the real Omniglot, so the forged images are not drawn below them.
    expect(page.locator(".collage .line")).to_have_count(3)
    expect(page.locator(".collage img")).to_have_count(0)
    expect(page.get_by_text("The images are missing")).to_be_visible()
    box.get_by_role("button", name="Start the study").click()
    expect(box).to_contain_text(f"run 1 of {RUNS}: GAP, seed 0")
    place = studies.conduct_of("omniglot-collage", RunStore(server.runs))
    try:
        box.get_by_role("button", name="Cancel").click()
        becomes(lambda: (place.status(), place.is_alive()), ("cancelled", False))
        expect(box.get_by_role("button", name=re.compile("Start the study|Continue"))).to_be_enabled()
    finally:
        studies.cancel(place)


def test_weight_maps_fade_and_a_chosen_collage_shows_its_neighbours(page, server: Server, images):
    data = ["data.name=collage", "data.augment=false", f"data.root={images}", "model.name=conv4_32"]
    small = [
        "model.embedding_dim=8",
        "batch.classes=4",
        "batch.samples=2",
        "schedule.steps=1",
        "schedule.validate_every=1",
    ]
    gsp = ["pooling.name=gsp", "pooling.memory=0", "pooling.prototypes=4"]
    runs = [make_run(server.runs, *data, *small, *extra) for extra in ([], gsp)]
    for run in runs:
        weight_maps.write(run)

    go(page, f"{server.url}/collage?runs={runs[0].id},{runs[1].id}")
    lines = page.locator(".collage .line")
    expect(lines).to_have_count(2)
    expect(lines.nth(0)).to_contain_text("25.0 % of the weight on the tile")
    cells = lines.nth(1).locator("button.cell")
    expect(cells).to_have_count(8)

    # The shares shown equal those of the maps.
    found = weight_maps.read(weight_maps.path_of(runs[1]))
    shows = load("collage", root=str(images)).facts["shows"][found.indices]
    share = dict(zip(found.indices.tolist(), weight_maps.foreground_share(found.weights, shows).tolist(), strict=True))

    def shares():
        for i in range(8):
            index = int(cells.nth(i).get_attribute("data-index"))
            shown = cells.nth(i).locator(".share").inner_text()
            assert shown.endswith(" % on the tile")
            assert abs(int(shown.split()[0]) - 100 * share[index]) < 0.501  # halves may be rounded either way

    eventually(shares)

    # The opacity follows the keys at once, and the address stores it.
    page.get_by_label("opacity of the weight maps").press("End")
    becomes(lambda: cells.first.locator("canvas").evaluate("(x) => getComputedStyle(x).opacity"), "1")
    linked(page, "opacity", "1.00")

    # The chosen collage is the query of both runs.
    chosen = quiet(lambda: cells.nth(3).get_attribute("data-index"))
    cells.nth(3).click()
    linked(page, "query", chosen)
    queries = page.locator(".neighbours .query a")
    becomes(lambda: [queries.nth(i).get_attribute("data-index") for i in range(queries.count())], [chosen, chosen])
    expect(page.locator(".neighbours .found a")).to_have_count(16)
    expect(cells.nth(3)).to_have_attribute("aria-pressed", "true")
