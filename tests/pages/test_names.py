"""Class folders with names in any encoding: no page and no export fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dmlcore.data import report
from dmlcore.inspection import export, neighbours
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.settings import Settings
from dmlcore.storage.runs import Run
from dmlcore.training.build import load_data
from tests.faults import foreign_names
from tests.pages.conftest import load_page, make_run

RUN = ("runs", "fork", "explore", "neighbours", "failures", "confusions", "thresholds")  # pages that show a run
PAGES = ("home", "data", "settings", "start", *RUN, "differences", "studies", "collage")
EXPORTS = ("report.html", "taken.npz", "taken.parquet", "map.csv", "projector")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run on 40 classes whose folder names use five encodings."""
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("DML_DATA", str(tmp_path / "data"))
    folder = tmp_path / "data" / "set"
    foreign_names.write(folder)
    data = [f"data.root={folder}", "data.name=folder", "data.image_size=16", "batch.samples=2", "batch.classes=4"]
    run = make_run(tmp_path / "runs", *data, "model.name=conv4_32", "schedule.steps=2", "schedule.keep_every=1")
    maps.make(run, Settings(method="pca"))
    neighbours.keep(run.embeddings())
    return run


def test_forty_names_in_five_encodings_go_through_pages_and_exports(run: Run, tmp_path: Path) -> None:
    other = shutil.copytree(run.path, run.path.with_name("copy")).name
    queries = {page: {"run": run.id} for page in RUN} | {page: {"like": run.id} for page in ("settings", "start")}
    queries |= {"differences": {"a": run.id, "b": other}, "data": {"data": "folder", "like": run.id}}
    for page in PAGES:
        app = load_page(page, **queries.get(page, {}))
        assert not app.exception, (page, app.exception[0].stack_trace)
        if page == "data":
            assert any("B\\xe4r" in frame.value.to_csv() for frame in app.dataframe)
    for name in EXPORTS:
        export.write(run, tmp_path / name)
    made = load_data(run.spec)
    for form in ("json", "csv"):
        report.split_text(made, form).encode()
    assert '"\\xba\\xef"' in (tmp_path / "map.csv").read_text()  # a class of the test split
