"""Start button in the sidebar of a new run: it starts the run of each step, and says what the run lacks."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.jobs import launch
from dmlcore.storage.runs import RunStore
from pages.shared.state.spec_link import presets
from tests.pages.conftest import go_to, load_page

STEPS = {"data": "start-data", "settings": "start-settings", "start": "start"}


@pytest.fixture
def store(tmp_path, monkeypatch):
    for variable, folder in (("DML_RUNS", "runs"), ("DML_DATA", "data"), ("DML_CACHE", "cache")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setattr("dmlcore.data.files.locate.HOME", tmp_path / "elsewhere" / "main")
    monkeypatch.setattr(launch, "start_process", lambda *_: None)
    return RunStore()


def lacks(app: AppTest) -> list[str]:
    """Return the obstacles that the sidebar lists, as HTML."""
    return [element.proto.body for element in app.sidebar.get("html") if "<small" in element.proto.body]


@pytest.mark.parametrize(("page", "key"), STEPS.items())
def test_every_step_starts_the_run(page, key, store):
    app = load_page(page)
    button = app.sidebar.button(key=key)
    assert (button.label, button.disabled, lacks(app)) == ("Start training", False, [])
    button.click().run()
    assert not app.exception
    (run,) = store.list()
    assert run.spec == presets()["glyphs"]
    assert app.title[0].value == "Runs"


@pytest.mark.parametrize(("page", "key"), [("settings", "start-settings"), ("start", "start")])
def test_the_sidebar_names_what_is_wrong_and_nothing_starts(page, key, store):
    app = load_page(page, base="digits-classes", set="batch.classes=8")
    assert app.sidebar.button(key=key).disabled
    (reason,) = lacks(app)
    assert "8 requested" in reason
    if page == "settings":
        app.number_input(key="train-batch-classes").set_value(5).run()
        assert not app.sidebar.button(key=key).disabled
        assert lacks(app) == []


def test_an_absent_data_set_cannot_be_trained_on(store):
    app = load_page("data", data="omniglot")
    assert app.sidebar.button(key="start-data").disabled
    assert ["The data set is not ready." in reason for reason in lacks(app)] == [True]


def test_the_first_step_trains_on_the_split_that_it_shows(store):
    app = load_page("data", data="digits")
    app.selectbox(key="data-split-digits").select("classes").run()
    assert any("unseen classes" in text.value for text in app.sidebar.markdown)
    app.sidebar.button(key="start-data").click().run()
    (run,) = store.list()
    assert (run.spec.data.name, run.spec.data.split) == ("digits", "classes")


def test_settings_of_the_form_are_kept_on_all_steps(store):
    app = load_page("settings", base="digits")
    app.number_input(key="train-schedule-steps").set_value(77).run()
    app.query_params.clear()
    go_to(app, "data").run()
    app.sidebar.button(key="start-data").click().run()
    (run,) = store.list()
    assert (run.spec.data.name, run.spec.schedule.steps) == ("digits", 77)


def test_at_most_three_obstacles_are_listed():
    def panel() -> None:
        from pages.training.new_run import launch_panel

        launch_panel.show(None, [f"Obstacle <{number}>" for number in range(5)], key="start")

    app = AppTest.from_function(panel).run()
    assert ["Obstacle &lt;0&gt;" in reason for reason in lacks(app)] == [True, False, False]
    assert app.sidebar.caption[-1].value == "2 more on the page."
