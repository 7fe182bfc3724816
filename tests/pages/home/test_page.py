"""Home page: figures of the shipped run, entry points, and the link back to the last run."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree

import numpy as np
from streamlit.testing.v1 import AppTest

from dmlcore.figures.maps import FEW, Sheet
from dmlcore.significance.gain import gain
from dmlcore.storage.runs import EXAMPLE, EXAMPLE_REMOVED, Run, RunStore
from pages.home import living_map
from tests.pages.conftest import go_to, load_page


def links(app: AppTest) -> dict[str, tuple[str, str]]:
    return {link.label: (link.proto.page, link.proto.query_string) for link in app.page_link}


def test_the_example_stands_behind_three_doors(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    app = load_page("home")
    assert not app.exception
    assert {"Play with a loss", "Train a network", "Look at what it learned"} <= links(app).keys()
    assert links(app)["Look at what it learned"] == ("explore", f"run={EXAMPLE}")
    drawn = "".join(html.body for html in app.get("html"))
    assert drawn.count("data:image/svg+xml") == 1
    assert "from the untrained network" in drawn
    assert drawn.count("/api/thumb/") == 7  # a query with its six neighbours
    page, query = links(app)["See its forces for each loss"]
    assert page == "failures"
    go_to(app, page)
    for name, value in (pair.split("=") for pair in query.split("&")):
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert not app.warning
    assert "Continue" not in drawn


def test_the_last_run_is_one_press_away_and_it_is_said_whether_it_gained(run: Run, runs) -> None:
    app = load_page("home")
    assert not app.exception
    assert links(app)["Open the run"] == ("runs", f"run={run.id}")
    assert links(app)["See what it learned"] == ("explore", f"run={run.id}")
    assert gain(run.scores(), started=False).short in [caption.value for caption in app.caption]


def test_a_failed_run_is_not_what_home_goes_on_with(run: Run, runs) -> None:
    failed = RunStore(runs).create(run.spec)
    with failed.lock():
        failed.update(state="running")
        failed.update(state="failed", message="out of memory")
    app = load_page("home")
    assert links(app)["Open the run"] == ("runs", f"run={run.id}")
    assert links(app)["Look at what it learned"] == ("explore", f"run={run.id}")


def test_without_any_run_the_doors_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    (tmp_path / EXAMPLE_REMOVED).touch()
    app = load_page("home")
    assert not app.exception
    assert "Play with a loss" in links(app)
    assert any("No run yet" in caption.value for caption in app.caption)


def test_a_damaged_example_costs_its_pictures_alone(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    load_page("home")
    run = RunStore(tmp_path).open(EXAMPLE)
    run.embeddings().write_bytes(b"torn")
    for kept in run.path.glob("embeddings/*.neighbours.npz"):
        kept.unlink()
    app = load_page("home")
    assert not app.exception
    assert "Train a network" in links(app)
    assert any("cannot be read" in caption.value for caption in app.caption)


def test_the_map_draws_every_sample_of_a_coloured_class_and_moves_it_through_all_frames() -> None:
    classes, each = 30, 9
    labels = np.repeat(np.arange(classes), each)
    points = np.random.default_rng(0).normal(size=(3, classes * each, 2)).astype(np.float32)
    sheet = Sheet.of(points, labels, np.arange(classes * each))
    html = living_map.html(sheet, (0, 20, 40))
    coloured = living_map.coloured(sheet)
    assert len(coloured) == len(FEW) - 1
    drawing = ElementTree.fromstring(b64decode(html.split("base64,")[1].split('"')[0]).decode())
    moving, still = (drawing.find(f".//*[@class='{name}']") for name in ("moving", "still"))
    assert moving is not None
    assert still is not None
    paths = [node for node in moving if node.tag.endswith("path")]
    assert [path.attrib["d"].count("M") for path in paths[1:]] == [each] * len(coloured)
    assert [path.attrib["d"] for path in paths] == [node.attrib["d"] for node in still if node.tag.endswith("path")]
    for path in paths:
        first, *frames = path[0].attrib["values"].split(";")
        assert len(frames) == 4  # three frames, the last one held
        assert (first, frames[-1]) == (frames[0], path.attrib["d"])
        assert len(set(frames)) == 3
    words = ["".join(node.itertext()) for node in moving if node.tag.endswith("text")]
    assert words == ["untrained", "after 20 steps", "after 40 steps"]
    shown = [node[0].attrib["values"].split(";") for node in moving if node.tag.endswith("text")]
    assert [sum(map(int, column)) for column in zip(*shown, strict=True)] == [1] * 5  # one text at a time
