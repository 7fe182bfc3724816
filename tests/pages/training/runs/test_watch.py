"""Map and neighbours of the validations on a run's page: scrubbing, damage, hostile names, data without images."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.storage import validation_frames
from dmlcore.storage.runs import Run, RunStore
from pages.training.runs import watch
from tests.pages.conftest import load_page, make_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("watched")
    make_run(root, "schedule.validate_every=4", "model.hidden=[16]")
    return root


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    root = shutil.copytree(trained, tmp_path / "runs")
    monkeypatch.setenv("DML_RUNS", str(root))
    return RunStore(root).list()[0]


def shown(app: AppTest) -> str:
    """Return the HTML of the map and the neighbours."""
    assert not app.exception
    (html,) = [element.proto.body for element in app.get("html") if 'class="watch"' in element.proto.body]
    return html


def captions(app: AppTest) -> str:
    return "\n".join(caption.value for caption in app.caption)


def test_the_newest_validation_is_shown_and_the_slider_goes_back(run):
    app = load_page("runs", run=run.id)
    newest = shown(app)
    assert 'data-step="8"' in newest
    assert re.search(r"Step 8 · validation MAP@R [\d.]+ % \([\d.]+ % at step 0\) · \d+ of 30 neighbours", captions(app))
    slider = app.select_slider(key=f"watch-step-{run.id}")
    assert slider.options == ["0", "4", "8"]
    slider.set_value(0).run()
    first = shown(app)
    assert 'data-step="0"' in first
    assert "Step 0 · " in captions(app)
    places = [re.findall(r"--x:[\d.]+%;--y:[\d.]+%", html) for html in (newest, first)]
    assert len(places[0]) == len(places[1]) > 100
    assert places[0] != places[1]


def test_images_replace_the_points_of_the_map_on_demand(run):
    app = load_page("runs", run=run.id)
    points = shown(app).count("<i title=")
    assert shown(app).count("<img src=") == 6 + 6 * 6  # queries on the map, queries and neighbours in the grid
    app.toggle(key=f"watch-images-{run.id}").set_value(True).run()
    assert shown(app).count("<i title=") == 0
    assert shown(app).count("<img src=") == points + 6 + 6 * 6


def test_a_running_run_follows_its_newest_validation_until_told_otherwise(run):
    with run.lock():
        run.update(state="queued")
        run.mark_running()
        app = load_page("runs", run=run.id)
        assert f"watch-step-{run.id}" not in [slider.key for slider in app.select_slider]
        frame = validation_frames.read(validation_frames.paths(run.path)[4])
        validation_frames.write(run.path, 12, frame)
        assert 'data-step="12"' in shown(app.run())
        app.toggle(key=f"watch-step-{run.id}-follow").set_value(False).run()
        app.select_slider(key=f"watch-step-{run.id}").set_value(4).run()
        validation_frames.write(run.path, 16, frame)
        assert 'data-step="4"' in shown(app.run())


def test_a_damaged_frame_is_a_message_and_the_others_stay(run):
    paths = validation_frames.paths(run.path)
    paths[8].write_bytes(paths[8].read_bytes()[:100])
    app = load_page("runs", run=run.id)
    (said,) = [warning.value for warning in app.warning if "cannot be read" in warning.value]
    assert "00000008.npz" in said
    assert "Choose another validation." in said
    app.select_slider(key=f"watch-step-{run.id}").set_value(4).run()
    assert 'data-step="4"' in shown(app)


def test_a_run_without_frames_shows_nothing_of_it(run):
    validation_frames.remove_after(run.path, -1)
    app = load_page("runs", run=run.id)
    assert not app.exception
    assert not any('class="watch"' in element.proto.body for element in app.get("html"))
    assert "Map during training" not in "".join(text.value for text in app.markdown)


def test_points_alone_are_shown_if_the_data_set_cannot_be_read(run, monkeypatch):
    monkeypatch.setattr("pages.shared.server.thumbnails.readable", lambda spec: False)
    html = shown(load_page("runs", run=run.id))
    assert "<img" not in html
    assert html.count("<i title=") > 100


@pytest.mark.parametrize("classes", [3, 40])
def test_names_are_escaped_and_few_classes_have_a_legend(classes, run):
    frame = validation_frames.read(validation_frames.paths(run.path)[8])
    frame = replace(frame, labels=np.arange(len(frame.labels)) % classes)
    html = watch.html(frame, frame, 8, "thumb/", lambda label: f'<b onclick="x">{label}')
    assert '<b onclick="x">' not in html
    assert html.count("&lt;b onclick=&quot;x&quot;&gt;") > len(frame.labels)
    assert (watch.UNNAMED in html) == (classes == 40)


def test_a_point_starts_where_the_previous_frame_had_it(run):
    before, frame = (validation_frames.read(validation_frames.paths(run.path)[step]) for step in (4, 8))
    reach = np.array(2.0)
    frame = replace(frame, points=np.tile(np.float32([[1, 0.5]]), (len(frame.points), 1)), reach=reach)
    before = replace(before, points=np.tile(np.float32([[-2, 2]]), (len(frame.points), 1)), reach=reach / 2)
    html = watch.html(frame, before, 8, "", str)
    assert html.count("--x:73.0%;--y:38.5%;--u:4.0%;--v:4.0%") == len(frame.points)


def test_collapsed_embeddings_are_drawn_in_the_middle(run):
    frame = validation_frames.read(validation_frames.paths(run.path)[8])
    frame = replace(frame, points=np.zeros_like(frame.points), reach=np.array(0.0))
    assert watch.html(frame, frame, 8, "", str).count("--x:50.0%;--y:50.0%") == len(frame.points)
