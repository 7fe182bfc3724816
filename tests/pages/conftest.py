"""A small real run for the page tests, trained once."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dmlcore.experiments import example
from dmlcore.inspection import neighbours
from dmlcore.inspection.maps import maps
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training.loop import train
from pages.shared.widgets import menu
from pages.shared.widgets.session_state import look_up_one_by_one
from tests.browser.harness import ROOT
from tests.once import once
from tests.pages.leaks import leaks, spoken

# Each AppTest searches all installed packages for components: 0.14 s of CPU time.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

look_up_one_by_one()  # as the server does

MAIN = ROOT / "pages" / "_main.py"
SHORT = ["schedule.steps=8", "schedule.checkpoint_every=4", "schedule.validate_every=8"]


def make_run(root: Path, *overrides: str) -> Run:
    """Train a spec for a few steps in this process."""
    run = RunStore(root).create(RunSpec().with_overrides([*SHORT, *overrides]))
    with run.lock():
        state = train(run)
    assert state.state == "done", state.message
    return run


def go_to(app: AppTest, page: str) -> AppTest:
    """Select the page with this address for the next run. AppTest can only switch to files, and only after a run."""
    app._page_hash = calc_hash("" if page == menu.FIRST else page)
    return app


def load_page(page: str, /, **query: str) -> AppTest:
    """Return a page, for example "explore", after its first run with these query parameters."""
    app = go_to(AppTest.from_file(str(MAIN), default_timeout=300), page)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


@pytest.fixture(autouse=True)
def _forked(forked_tasks: None) -> None:
    """Start background tasks of pages without importing torch again."""


@pytest.fixture(autouse=True)
def sentences_are_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check every sentence that a page shows for internal terms (tests/pages/leaks.py)."""
    run = AppTest.run

    def looked_through(app: AppTest, **options: Any) -> AppTest:
        run(app, **options)
        found = [(leak, text[:300]) for text in spoken(app) for leak in leaks(text)]
        assert not found, found
        return app

    monkeypatch.setattr(AppTest, "run", looked_through)


def _unpacked(folder: Path) -> None:
    example._unpack(folder)
    neighbours.keep(Run(folder).embeddings())


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the shipped example run, unpacked and with its neighbours computed."""
    return once(tmp_path_factory, "example", _unpacked)


@pytest.fixture(autouse=True)
def the_example_is_copied(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the example into each store; unpacking takes 0.15 s of CPU time and its neighbours as much again."""
    monkeypatch.setattr(example, "_unpack", lambda folder: shutil.copytree(shipped, folder, dirs_exist_ok=True))


def _trained(root: Path) -> None:
    run = make_run(root)
    maps.make(run)
    neighbours.keep(run.embeddings())


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs folder with one finished digits run, evaluated and projected; tests work on copies."""
    return once(tmp_path_factory, "trained", _trained)


@pytest.fixture
def runs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy of the trained run in a runs folder of its own, to which $DML_RUNS is set."""
    root = tmp_path / "runs"
    shutil.copytree(trained, root)
    monkeypatch.setenv("DML_RUNS", str(root))
    return root


@pytest.fixture
def run(runs: Path) -> Run:
    return RunStore(runs).list()[0]
