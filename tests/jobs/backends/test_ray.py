"""All kinds of jobs on a Ray cluster with two nodes, one of which is killed; results must equal those of local runs."""

from __future__ import annotations

import hashlib
import platform
import shlex
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dmlcore.cli import workers
from dmlcore.cli.main import app
from dmlcore.experiments import protocols, search, studies
from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import launch
from dmlcore.jobs.backends import backend as backends
from dmlcore.jobs.backends.submission import NODES
from dmlcore.spec import RunSpec
from dmlcore.storage.run_directory import LAST, METRICS, step_of
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.task import Task
from dmlcore.training.loop import train
from pages.shared.widgets import machines
from tests.cli.here import here
from tests.docs import test_cluster as page
from tests.jobs.backends import cluster as clusters
from tests.once import once
from tests.pages.conftest import load_page

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'dml-lab[ray]'")

STUDY = """
title = "Twelve"
question = "Does it run elsewhere?"
source = "none"
claim = "none"
minutes = 1
seeds = [0, 1, 2]

[base.data]
name = "digits"

[base.model]
hidden = [8]
embedding_dim = 4

[base.batch]
classes = 4
samples = 2

[base.schedule]
steps = 20
validate_every = 10
checkpoint_every = 2

[[variants]]
name = "first"

[[variants]]
name = "second"
overrides = ["loss.m=0.3"]

[[variants]]
name = "third"
overrides = ["loss.m=0.5"]

[[variants]]
name = "fourth"
overrides = ["loss.name=multi_similarity"]
"""
LITTLE = ["model.hidden=[8]", "model.embedding_dim=4", "batch.classes=4", "batch.samples=2"]
SMALLER = [*LITTLE, "schedule.steps=10"]
OFTEN = ["schedule.steps=60", "schedule.checkpoint_every=2"]  # so that a node can be killed in between
SMALL = [*LITTLE, "schedule.steps=20", "schedule.checkpoint_every=5"]


@pytest.fixture(scope="module")
def started():
    with clusters.two_nodes() as made:
        yield made


@pytest.fixture
def cluster(started):
    """Return the cluster with both nodes, in case an earlier test killed one."""
    if started.worker not in started.worker_nodes:
        started.join()
    return started


def until(condition: Callable[[], object], task: Task[Any]) -> None:
    deadline = time.monotonic() + 900
    while not condition():
        assert time.monotonic() < deadline, f"{task.state()} {task.log_tail()}"
        time.sleep(0.05)


def digests(run: Run) -> dict[str, str]:
    """Return everything that a run has learned and measured, by file."""
    embeddings = run.embeddings()
    files = [run.path / LAST, run.path / METRICS, embeddings]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_other_kind_of_job_and_a_cancel_reach_the_cluster(
    cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = f"ray:{cluster.address}"
    store = RunStore(tmp_path)
    # A search: its trials are concurrent tasks and its storage is a journal for several machines.
    wanted = search.prepare(RunSpec().with_overrides(SMALL), ["loss.m=0.1,0.5"], "two", method="grid")
    where = backends.create_backend(backend)
    journal = search.storage_of(wanted, store, many_nodes=where.max_concurrent > 1)
    assert search.conduct(wanted, store, storage=journal, where=where)
    assert Path(journal).read_text().startswith("{")
    rows = search.trials(wanted, store)
    assert [row.state for row in rows] == ["complete", "complete"]
    assert len({row.run for row in rows}) == 2

    # A protocol: each fold is a task.
    overrides = ("data.split=classes", "data.folds=2", *SMALLER, "batch.classes=2", "schedule.validate_every=5")
    request = protocols.ProtocolRequest(
        protocol="gurbuz-2022-fair", data="Digits", loss="triplet", overrides=overrides, seeds=(0,)
    )
    assert protocols.conduct(request, store, backend=backend).state == "done"
    measured = protocols.collect(request, request.entries(), store).runs
    assert [(one.fold, one.steps) for one in measured] == [(1, 10), (2, 10)]
    assert {store.open(one.run).state().backend for one in measured} == {backend}

    # A job on a run of the search, monitored here; and a run monitored by its own process and cancelled while running.
    run = store.open(rows[0].run)
    with monkeypatch.context() as patch:
        patch.setattr(launch, "spawn_detached", lambda arguments, log: here(*arguments[2:]))
        launch.start_job(run, "project", Settings(method="pca").to_json(), backend)
    assert run.projection()
    long = RunSpec().with_overrides([*SMALL, "schedule.steps=1000000"])
    endless = store.open(launch.launch(long, store, backend=backend))
    until(lambda: endless.state().step > 10, endless)
    launch.cancel(endless)
    until(lambda: not endless.is_alive(), endless)
    state = endless.state()
    assert (state.state, state.backend, state.host) == ("cancelled", backend, platform.node())
    assert step_of(endless.path / LAST) == state.step


def test_the_commands_of_the_page_on_clusters_run(cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))  # set by commands for their child processes
    # The preceding ones run in tests/docs/test_laptop_to_cluster.py.
    lines = [line for line in page.commands(after="\n## Ray on one machine\n") if line.startswith(".venv/bin/dml")]
    for line in lines:
        words = shlex.split(
            line.replace("10.0.0.1:6379", cluster.address).replace("/shared/runs", str(tmp_path / "runs"))
        )
        answer = CliRunner().invoke(app, [*words[1:], *SMALLER, "--runs", str(tmp_path / "runs")])
        assert answer.exit_code == 0, (line, answer.output, answer.exception)
    runs = RunStore(tmp_path / "runs").list()
    # the search executes one trial and reuses the other
    assert [run.state().state for run in runs] == ["done"] * len(lines)


def test_a_run_on_two_processes_loses_a_node_and_equals_the_one_made_here(cluster, tmp_path: Path) -> None:
    """One process per node; after one is killed, both wait for a replacement and start again."""
    store, spec = RunStore(tmp_path), RunSpec().with_overrides([*LITTLE, *OFTEN, "schedule.validate_every=30"])
    run = store.create(spec)
    with run.lock():
        run.update(processes=2)
    with clusters.losing_a_node(cluster, store) as killed:
        work = backends.create_backend(f"ray:{cluster.address}").begin(run, "train")
        until(lambda: work.has_ended() or killed, run)
    until(lambda: work.has_ended() or "the cluster has room for 1" in run.state().message, run)
    cluster.join()
    until(work.has_ended, run)
    assert (run.state().state, run.state().processes) == ("done", 2), run.state()
    assert "resuming from the last checkpoint elsewhere" in "\n".join(run.log_tail(100))
    assert not list((store.root / NODES).iterdir())
    twin = RunStore(tmp_path / "here").create(spec)
    assert workers.train(twin, processes=2).state == "done"
    assert digests(run) == digests(twin)


def made_here(folder: Path) -> None:
    """Return the runs of the study, trained in this process without interruption."""
    (folder / "twelve.toml").write_text(STUDY)
    for entry in studies.StudyRequest(study=str(folder / "twelve.toml")).entries():
        run = RunStore(folder).create(entry.spec)
        with run.lock():
            train(run, before_done=workers.keep_neighbours)


def test_a_study_started_in_the_app_loses_a_node_and_equals_the_runs_made_here(
    cluster,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve runs, executed by the process that the page starts."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "twelve.toml").write_text(STUDY)
    store, backend = RunStore(tmp_path / "runs"), f"ray:{cluster.address}"
    for name, value in (("STUDIES", tmp_path / "own"), ("RUNS", store.root), ("BACKENDS", backend)):
        monkeypatch.setenv(f"DML_{name}", str(value))
    app = load_page("studies", study="twelve")
    app.selectbox(key=machines._KEY).select(backend).run()
    place = studies.conduct_of("twelve", store)
    with clusters.losing_a_node(cluster, store) as killed:
        app.button(key="start-twelve").click().run()
        until(lambda: place.status() in ("done", "incomplete", "failed"), place)
    assert (place.status(), place.state().backend) == ("done", backend), place.state()
    assert killed
    assert "resuming from the last checkpoint elsewhere" in "\n".join(store.open(killed[0]).log_tail(100))
    assert not list((store.root / NODES).iterdir())
    assert "All 12 runs are done" in " ".join(said.value for said in app.run().markdown)

    runs, twins = (
        studies.find(studies.StudyRequest(study="twelve").entries(), each)
        for each in (store, RunStore(once(tmp_path_factory, "twelve", made_here)))
    )
    assert len(runs) == 12
    for run, twin in zip(runs, twins, strict=True):
        one = run.state()
        assert (one.state, one.backend, run.is_alive()) == ("done", backend, False)
        assert digests(run) == digests(twin), run.id
