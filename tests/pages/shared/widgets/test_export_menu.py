"""The popover offers the available formats, and those of the selection if there is one."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.inspection import selections
from dmlcore.inspection.maps import maps
from pages.shared.widgets import export_menu


def open_page(chosen: str = "") -> AppTest:
    def script(chosen: str) -> None:
        from dmlcore.inspection import selections
        from dmlcore.storage.runs import RunStore
        from pages.shared.widgets import export_menu

        run = RunStore().list()[0]
        export_menu.offer(run, selections.load(run, chosen) if chosen else None)

    return AppTest.from_function(script, default_timeout=60, kwargs={"chosen": chosen}).run()


def labels(app: AppTest) -> list[str]:
    return [button.proto.label for button in app.get("download_button")]


@pytest.fixture
def indices(run) -> np.ndarray:
    return np.load(run.embeddings())["indices"]


def test_everything_is_offered_and_the_map_once_there_is_one(run):
    app = open_page()
    assert not app.exception
    offered = labels(app)
    assert offered[:2] == ["Report, one HTML file", "Samples, CSV"]
    assert ("Map, CSV" in offered) == (run.projection() is not None)
    maps.make(run, maps.Settings(method="pca"))
    assert labels(open_page())[-1] == "Map, CSV"
    assert f"python -m dmlcore export {run.id} --to report.html" in app.code[0].value


def test_a_selection_is_what_is_taken_unless_all_is_asked_for(run, indices):
    chosen = selections.save(run, indices[:7], "a test")
    app = open_page(chosen.id)
    assert app.code[0].value.endswith(f"--selection {chosen.id}")
    app.session_state[f"export-which-{run.id}"] = export_menu.ALL
    app.run()
    assert not app.exception
    assert "--selection" not in app.code[0].value


def test_the_samples_of_a_selection_as_csv(run, indices):
    chosen = selections.save(run, indices[:3], "a test")
    head, *lines = export_menu._content(run, "samples.csv", chosen).decode().splitlines()
    assert head == '"row","label"'
    assert [int(line.split(",")[0]) for line in lines] == indices[:3].tolist()


def test_nothing_is_offered_before_an_evaluation(run):
    for path in (run.path / "embeddings").iterdir():
        path.unlink()
    assert labels(open_page()) == []
