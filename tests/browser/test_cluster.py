"""A study of twelve runs, started in the app, on a Ray cluster of two nodes of which one is killed on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dmlcore.experiments import studies
from dmlcore.storage.runs import RunStore
from tests.browser.harness import BETWEEN, Server, becomes, eventually, go
from tests.jobs.backends import cluster as clusters
from tests.jobs.backends.test_ray import STUDY, equal_those_made_here, made_here
from tests.once import once

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'dml-lab[ray]'"),
]


@pytest.fixture
def cluster() -> Iterator[Any]:
    with clusters.two_nodes() as made:
        yield made


def test_a_study_started_in_the_app_loses_a_node_and_equals_the_runs_made_here(
    browser: Any,
    cluster: Any,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "twelve.toml").write_text(STUDY)
    monkeypatch.setenv("DML_STUDIES", str(tmp_path / "own"))
    monkeypatch.setenv("DML_BACKENDS", f"ray:{cluster.address}")
    store = RunStore(tmp_path / "runs")

    def kill_a_node_at_work() -> str:
        run = clusters.lose_node_at_work(cluster, store)
        assert run, "nothing with a checkpoint on the second node"
        return run

    def ten_are_done() -> None:
        assert sum(run.state().state == "done" for run in store.list()) >= 10

    server = Server(store.root)
    server.environment["DML_FIELD_WORKERS"] = "1"
    server.start()
    page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    try:
        page.goto(address := f"{server.url}/studies?study=twelve")
        # The choice of the machine stands in the sidebar.
        page.get_by_role("combobox", name=re.compile("Runs on")).click()
        page.get_by_role("option", name=f"Ray ({cluster.address})").click()
        page.get_by_role("button", name="Start the study").click()
        becomes(lambda: studies.conduct_of("twelve", store).state(), bool)
        go(page, f"{server.url}/{BETWEEN}")  # a page that looks at runs costs as much as they do
        killed = eventually(kill_a_node_at_work, 180)
        eventually(ten_are_done, 240)
        go(page, address)
        page.get_by_text("All 12 runs are done").wait_for(timeout=240_000)
    finally:
        page.close()
        server.kill()
    request = studies.StudyRequest(study="twelve")
    equal_those_made_here(store, f"ray:{cluster.address}", request, once(tmp_path_factory, "twelve", made_here))
    log = store.open(killed).log_tail(100)
    becomes(lambda: any("goes on from the last checkpoint elsewhere" in line for line in log), True)
