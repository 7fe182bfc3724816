"""All kinds of jobs on a Ray cluster with two nodes, one of which is killed; results must equal those of local runs."""

import platform
import shlex
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
from dmlcore.storage.run_directory import LAST, step_of
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import Task
from tests import started
from tests.cli.here import here
from tests.docs import test_cluster as page
from tests.experiments.studies.tiny import HEAD, SMALL
from tests.jobs.backends import cluster as clusters
from tests.jobs.backends.test_remote import digests

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'dml-lab[ray]'")

STUDY = f"""{HEAD}{SMALL}
[base.schedule]
steps = 10

[[variants]]
name = "only"
"""
LITTLE = ["model.hidden=[8]", "model.embedding_dim=4", "batch.classes=4", "batch.samples=2"]
SMALLER = [*LITTLE, "schedule.steps=10"]
OFTEN = ["schedule.steps=60", "schedule.checkpoint_every=2"]  # so that a node can be killed in between
SHORT = [*LITTLE, "schedule.steps=20", "schedule.checkpoint_every=5"]


@pytest.fixture(scope="module")
def running():
    with clusters.two_nodes() as made:
        yield made


@pytest.fixture
def cluster(running):
    """Return the cluster with both nodes, in case an earlier test killed one."""
    if running.worker not in running.worker_nodes:
        running.join()
    return running


def until(condition: Callable[[], object], task: Task[Any]) -> None:
    started.until(condition, lambda: f"{task.state()} {task.log_tail()}", 900)


def test_every_other_kind_of_job_and_a_cancel_reach_the_cluster(
    cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = f"ray:{cluster.address}"
    store = RunStore(tmp_path)
    # A search: its trials are concurrent tasks and its storage is a journal for several machines.
    wanted = search.prepare(RunSpec().with_overrides(SHORT), ["loss.m=0.1,0.5"], "two", method="grid")
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

    # A study: each run is a task.
    (tmp_path / "tiny.toml").write_text(STUDY)
    asked = studies.StudyRequest(study=str(tmp_path / "tiny.toml"))
    assert studies.conduct(asked, store, backend=backend).state == "done"
    assert {run.state().backend for run in studies.find(asked.entries(), store)} == {backend}

    # A job on a run of the search, monitored here; and a run monitored by its own process and cancelled while running.
    run = store.open(rows[0].run)
    with monkeypatch.context() as patch:
        patch.setattr(launch, "spawn_detached", lambda arguments, log: here(*arguments[2:]))
        launch.start_job(run, "project", Settings(method="pca").to_json(), backend)
    assert run.projection()
    long = RunSpec().with_overrides([*SHORT, "schedule.steps=1000000"])
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
