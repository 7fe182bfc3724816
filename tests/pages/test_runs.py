"""The runs page without a browser: every status in words, buttons that act on real processes, curves and scores."""

from __future__ import annotations

import os
import signal
import time

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore import jobs
from dmlcore.runs import Run, RunStore, scores
from dmlcore.spec import RunSpec
from dmlcore.train import train
from tests.e2e.harness import ROOT

TINY = RunSpec().with_overrides(["schedule.steps=12", "schedule.validate_every=4", "schedule.checkpoint_every=5"])
HOSTILE = "<img src=//x/y> $x$ **b** ![a](http://x/y) :red[r]"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two runs that are done and one that failed."""
    store = RunStore(tmp_path_factory.mktemp("finished"))
    made = [
        store.create(TINY.with_overrides(["name=first"])),
        store.create(TINY.with_overrides(["loss.name=facenet", f"name={HOSTILE}", "schedule.steps=8"])),
        store.create(TINY.with_overrides(["data.split=classes", "batch.classes=9"])),
    ]
    for run in made:
        with run.lock():
            train(run)
    assert [run.status() for run in made] == ["done", "done", "failed"]
    return store, made


@pytest.fixture
def opened(monkeypatch):
    def run(store: RunStore, **query: str) -> AppTest:
        monkeypatch.setenv("DML_RUNS", str(store.root))
        app = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=180).run()
        for key, value in query.items():
            app.query_params[key] = value
        return app.switch_page("runs.py").run()

    return run


def wait(condition, seconds=180):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def texts(app: AppTest, *kinds: str) -> str:
    return "\n".join(str(element.value) for kind in kinds for element in app.get(kind))


def test_without_runs_the_page_leads_to_train(opened, tmp_path):
    app = opened(RunStore(tmp_path))
    assert not app.exception
    assert "No runs yet" in texts(app, "markdown")
    assert [link.label for link in app.page_link] == ["Go to Train"]


def test_the_table_lists_every_run_newest_first(opened, finished):
    store, made = finished
    table = opened(store).dataframe[0].value
    assert list(table["status"]) == ["failed", "done", "done"]
    assert [name[-4:] for name in table["run"]] == [run.id[-4:] for run in reversed(made)]
    assert list(table["steps"]) == [0.0, 100.0, 100.0]
    trained = scores(made[0].metrics()[0])["trained"]["map_at_r"]
    assert table["trained"].iloc[-1] == pytest.approx(100 * trained)


def test_without_a_choice_the_newest_run_is_shown_with_its_reason(opened, finished):
    store, made = finished
    app = opened(store)
    assert any("Failed" in error.value for error in app.error)
    assert "a batch needs 9 classes" in texts(app, "code")
    assert app.button(key=f"resume-{made[2].id}")
    assert not any(button.key == f"cancel-{made[2].id}" for button in app.button)


def test_several_runs_share_curves_and_scores(opened, finished):
    store, (first, second, _) = finished
    app = opened(store, run=f"{first.id},{second.id}")
    assert not app.exception
    (chart,) = app.get("vega_lite_chart")
    for run in (first, second):
        assert run.id[-4:] in chart.proto.spec
    table = app.dataframe[-1].value
    assert len(table) == 6
    assert list(table["embedding"][:3]) == ["raw input", "untrained network", "trained network"]
    expected = scores(first.metrics()[0])["trained"]
    assert table["MAP@R"][2] == f"{100 * expected['map_at_r']:.1f} %"
    assert table["R@1"][2] == f"{100 * expected['recall_at']['1']:.1f} %"


def test_a_name_is_shown_literally(opened, finished):
    store, (_, hostile, _) = finished
    app = opened(store, run=hostile.id)
    assert not app.exception
    assert "&lt;img src=//x/y&gt;" in texts(app, "html")
    interpreted = texts(app, "markdown", "caption", "subheader", "title", "badge", "warning", "error", "html")
    assert "<img" not in interpreted
    assert "![a]" not in texts(app, "markdown", "caption", "subheader")


@pytest.mark.parametrize(
    "bad", ["nan", "1e999", "\0", "../x", "/etc", "%252e", "a,b,,c", "<b>x</b>", "x" * 100_000, "," * 100_000]
)
def test_a_senseless_link_gives_a_plain_message_and_the_newest_run(opened, finished, bad):
    app = opened(finished[0], run=bad)
    assert not app.exception
    assert len(app.warning) == (0 if bad.strip(",") == "" else 1)
    assert app.button(key=f"resume-{finished[1][2].id}")


def test_a_damaged_run_is_named_and_the_others_stay(opened, tmp_path):
    store = RunStore(tmp_path)
    good, bad = store.create(TINY), store.create(TINY)
    (bad.path / "state.json").write_text("{")
    app = opened(store, run=bad.id)
    assert not app.exception
    assert [expander.label for expander in app.expander if "Unreadable" in expander.label] == [f"Unreadable: {bad.id}"]
    assert app.button(key=f"cancel-{good.id}")


def test_cancel_resume_kill_and_delete(opened, tmp_path):
    store = RunStore(tmp_path)
    run = store.open(jobs.launch(TINY.with_overrides(["schedule.steps=1000000"]), store))
    try:
        _live(opened, store, run)
    finally:
        if run.path.exists() and run.alive():
            os.kill(run.state().pid, signal.SIGKILL)


def _live(opened, store: RunStore, run: Run) -> None:
    app = opened(store, run=run.id)
    wait(lambda: run.state().step > 10)
    app.run()
    assert "running" in texts(app, "badge", "markdown")
    assert any("of 1,000,000" in bar.proto.text and "left" in bar.proto.text for bar in app.get("progress"))

    app.button(key=f"cancel-{run.id}").click().run()
    wait(lambda: run.status() == "cancelled" and not run.alive())
    at = run.state().step
    app.run().button(key=f"resume-{run.id}").click().run()
    assert not app.error
    wait(lambda: run.status() == "running" and run.state().step > at)

    os.kill(run.state().pid, signal.SIGKILL)
    wait(lambda: run.status() == "lost")
    app.run()
    assert "Lost, not gone" in texts(app, "warning")
    assert app.button(key=f"resume-{run.id}")

    app.button(key=f"delete-for-good-{run.id}").click().run()
    assert not app.exception
    assert not run.path.exists()
    assert "run" not in app.query_params
    assert "No runs yet" in texts(app, "markdown")
