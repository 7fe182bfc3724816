"""Home page: figures of the shipped run, entry points, and the link back to the last run."""

from __future__ import annotations

import re
from base64 import b64decode
from xml.etree import ElementTree

import numpy as np
from streamlit.testing.v1 import AppTest

from dmlcore import data
from dmlcore.figures.maps import FEW, Sheet
from dmlcore.significance.gain import gain
from dmlcore.storage.runs import EXAMPLE, EXAMPLE_REMOVED, Run, RunStore
from pages.home import birds, living_map
from pages.home.living_map import Movement
from tests.data import layouts
from tests.pages.conftest import go_to, load_page, make_run


def links(app: AppTest) -> dict[str, tuple[str, str]]:
    return {link.label: (link.proto.page, link.proto.query_string) for link in app.page_link}


def test_the_example_stands_behind_three_doors(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    app = load_page("home")
    assert not app.exception
    assert {"Play with a loss", "Train a network", "Look at what it learned"} <= links(app).keys()
    assert links(app)["Look at what it learned"] == ("explore", f"run={EXAMPLE}")
    drawn = "".join(html.body for html in app.get("html"))
    assert drawn.count("data:image/svg+xml") == 2  # moving and still
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


def drawing(html: str, kind: str) -> ElementTree.Element:
    """Return the root element of the SVG image of a map, which is "moving" or "still"."""
    return ElementTree.fromstring(b64decode(html.split(f"map {kind}")[1].split("base64,")[1].split('"')[0]).decode())


def test_the_map_draws_every_sample_of_a_coloured_class_and_moves_it_through_all_frames() -> None:
    classes, each = 30, 9
    labels = np.repeat(np.arange(classes), each)
    points = np.random.default_rng(0).normal(size=(3, classes * each, 2)).astype(np.float32)
    sheet = Sheet.of(points, labels, np.arange(classes * each))
    html = living_map.html(Movement(sheet, (0, 20, 40), "test"))
    coloured = living_map.coloured(sheet)
    assert len(coloured) == len(FEW) - 1
    assert living_map.legend(sheet, images=False) == "7 classes are coloured; grey dots are other classes"
    moving, still = (drawing(html, kind) for kind in ("moving", "still"))
    paths = [node for node in moving if node.tag.endswith("path")]
    assert [path.attrib["d"].count("M") for path in paths[1:]] == [each] * len(coloured)
    assert [path.attrib["d"] for path in paths] == [node.attrib["d"] for node in still if node.tag.endswith("path")]
    assert not [node for node in still.iter() if node.tag.endswith("animate")]
    for path in paths:
        first, *frames = path[0].attrib["values"].split(";")
        assert len(frames) == 4  # three frames, the last one held
        assert (first, frames[-1]) == (frames[0], path.attrib["d"])
        assert len(set(frames)) == 3
    texts = [node for node in moving if node.tag.endswith("text")]
    assert ["".join(node.itertext()) for node in texts] == ["untrained", "after 20 steps", "after 40 steps"]
    shown = [node[0].attrib["values"].split(";") for node in texts]
    assert [sum(map(int, column)) for column in zip(*shown, strict=True)] == [1] * 5  # one text at a time


def test_images_and_dots_of_a_coloured_class_are_all_its_samples_and_follow_the_same_frames() -> None:
    classes, each = 4, 9
    labels = np.repeat(np.arange(classes), each)
    points = np.random.default_rng(0).normal(size=(2, classes * each, 2)).astype(np.float32)
    sheet = Sheet.of(points, labels, 100 + np.arange(classes * each))
    html = living_map.html(Movement(sheet, (0, 20), "validation"), "/thumb/", lambda label: f"<wren> {label}")
    assert "coloured dots are further images" in living_map.legend(sheet, images=True)
    assert living_map.legend(sheet, images=False) == "4 classes are coloured"  # and none is grey
    images = re.findall(r'<img class="sample" src="/thumb/(\d+)".*?title="([^"]*)" style="([^"]*)"', html)
    assert len({index for index, *_ in images}) == len(images) == classes * living_map.MOST_IMAGES
    assert {title for _, title, _ in images} == {f"&lt;wren&gt; {label}" for label in range(classes)}
    dots = [path.attrib["d"].count("M") for path in drawing(html, "moving") if path.tag.endswith("path")]
    assert dots == [0] + [each - living_map.MOST_IMAGES] * classes
    for _, _, style in images:
        places = dict(part.split(":") for part in style.split(";"))
        assert (places["left"], places["top"]) == (places["--x1"], places["--y1"]) != (places["--x0"], places["--y0"])
    assert html.count("left:var(--x0)") == html.count("left:var(--x1)") == 2  # the first and the last frame are held


def test_a_run_on_birds_shows_its_birds_as_they_moved_between_its_validations(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    run = make_run(
        tmp_path, "data.name=birds", "data.image_size=16", "model.name=conv4", "schedule.steps=2",
        "schedule.validate_every=1", "batch.classes=2", "batch.samples=2",
    )  # fmt: skip
    app = load_page("home")
    assert not app.exception
    (shown,) = [html.body for html in app.get("html") if "living-map" in html.body]
    assert f'src="/api/thumb/{run.id}/' in shown
    assert "from the untrained network to step 2" in shown
    assert any("7 classes are shown as images" in caption.value for caption in app.caption)
    assert "Train on drawn birds" not in links(app)  # there are birds on the page


def test_photographs_of_birds_replace_the_drawings_where_they_are(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(data, "available", lambda name: None)
    assert links(load_page("home"))["Train on drawn birds"] == ("data", "data=birds")
    monkeypatch.undo()
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("DML_DATA", str(tmp_path))
    images = tmp_path / "CUB_200_2011" / "images"
    for number in (1, 101, 102, 103):
        for image in range(3):
            layouts.write_image(images / f"{number:03}.Bird_{number}" / f"{image}.jpg", 10 * image)
    app = load_page("home")
    assert not app.exception
    assert links(app)["Train on birds of CUB-200-2011"] == ("data", "data=cub")
    (row,) = [html.body for html in app.get("html") if "bird-row" in html.body]
    assert re.findall(r'alt="([^"]*)"', row) == [f"Bird {number}" for number in (101, 101, 102, 102, 103, 103)]
    next(images.glob("101*")).joinpath("1.jpg").write_bytes(b"torn")
    birds._photographs.clear()
    assert "Train on drawn birds" in links(load_page("home"))
