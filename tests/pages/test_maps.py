"""The map page: the canvas gets the points of the run, and what is missing is made by a job."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.runs import scores
from tests.pages.test_gallery import BAD, opened


def canvas(app: AppTest) -> dict:
    return json.loads(app.get("bidi_component")[0].proto.json)


def test_the_map_shows_the_points_of_the_run(run):
    app = opened("maps.py")
    assert not app.exception
    shown = canvas(app)
    assert shown["count"] == len(np.load(run.projection())["points"])
    assert [c["name"] for c in shown["classes"]] == list("0123456789")
    assert shown["pictures"].endswith(f"/api/thumb/{run.id}/")
    caption = app.caption[-1].value
    row = scores(run.metrics()[0])["trained"]
    for part in (
        "t-SNE",
        "perplexity 30",
        "seed 0",
        f"{shown['count']:,} test",
        f"MAP@R {100 * row['map_at_r']:.1f} %",
    ):
        assert part in caption
    assert "means nothing" in caption


def test_classes_stand_out(run):
    app = opened("maps.py")
    app.multiselect[0].set_value([3, 8]).run()
    assert canvas(app)["highlight"] == [3, 8]


def test_the_point_of_a_link_is_marked(run):
    index = int(np.load(run.embeddings())["indices"][5])
    assert canvas(opened("maps.py", run=run.id, point=str(index)))["mark"] == index
    assert canvas(opened("maps.py"))["mark"] is None


@pytest.mark.parametrize("bad", [bad for bad in BAD if bad])
def test_a_senseless_link_gets_a_plain_message(run, bad):
    app = opened("maps.py", run=bad, point=bad)
    assert not app.exception
    assert len(app.warning) == 2
    assert canvas(app)["mark"] is None


def test_no_run_yet_leads_to_training(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "none"))
    app = opened("maps.py")
    assert not app.exception
    assert "no runs yet" in app.info[0].value


def finished(run, app: AppTest) -> AppTest:
    """The page once the job that it has started is done."""
    assert not app.exception
    deadline = time.monotonic() + 180
    while not run.projection() or run.alive():
        assert time.monotonic() < deadline, run.log_tail()
        time.sleep(0.2)
    return app.run()


def test_a_small_map_that_is_missing_is_made_unasked(run):
    run.projection().unlink()
    assert canvas(finished(run, opened("maps.py")))["count"] == 896


def test_a_large_map_is_made_on_request(run):
    run.projection().unlink()
    with np.load(run.embeddings()) as arrays:
        wide = {k: np.repeat(v, 20, axis=1) if k == "embeddings" else v for k, v in arrays.items()}
    np.savez(run.embeddings(), **wide)
    app = opened("maps.py")
    assert not run.alive()
    assert run.projection() is None
    app.button(key="project").click().run()
    assert canvas(finished(run, app))["count"] == 896


def test_newer_embeddings_need_a_newer_map(run):
    source = run.embeddings()
    newer = source.with_name("0" * 64 + ".npz")
    newer.write_bytes(source.read_bytes())
    row = json.loads((run.path / "metrics.jsonl").read_text().splitlines()[-1]) | {"weights": newer.stem}
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")
    app = opened("maps.py")
    assert not app.exception
    assert not app.get("bidi_component"), "the old map is not shown for the new embeddings"
    finished(run, app)
    assert run.projection().name.startswith("0" * 64)


@pytest.mark.parametrize("points", [np.zeros((3, 2)), np.full((896, 2), np.nan)])
def test_a_map_that_does_not_fit_is_refused(run, points):
    np.savez(run.projection(), points=points, perplexity=30.0)
    app = opened("maps.py")
    assert not app.exception
    assert app.error
    assert app.button(key="project")
