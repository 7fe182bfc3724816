import json
import shutil
import socket
from collections import namedtuple
from importlib import metadata

import pytest
from typer.testing import CliRunner

from dmlcore.cli.main import app
from dmlcore.jobs import device_queue
from dmlcore.monitoring import doctor
from dmlcore.storage.runs import RunStore
from tests.made_runs import make_finished_run


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    return RunStore(tmp_path / "runs")


def found(store, subject, port=0):
    return [diagnosis for diagnosis in doctor.examine(store, port) if diagnosis.subject == subject]


def test_a_machine_without_a_fault(store, monkeypatch):
    monkeypatch.setattr(doctor, "MIN_MEMORY", 0)
    monkeypatch.setattr(doctor, "MIN_SPACE", 0)
    make_finished_run(store, [], 0.5)
    diagnoses = list(doctor.examine(store, 0))
    assert [diagnosis for diagnosis in diagnoses if diagnosis.verdict == "fault"] == []
    assert all(diagnosis.remedy for diagnosis in diagnoses if diagnosis.verdict == "fault")
    assert {diagnosis.subject for diagnosis in diagnoses} >= {"machine", "memory", "packages", "GPU", "store", "cache"}
    assert not list(store.root.glob(".new-*"))


def test_what_is_wrong_is_told_with_its_remedy(store, monkeypatch, tmp_path):
    run = make_finished_run(store, [], 0.5)
    with run.lock():
        (run.path / "state.json").write_text(run.state().model_copy(update={"state": "running"}).model_dump_json())
    broken = make_finished_run(store, ["seed=1"], 0.5)
    (broken.path / "spec.json").write_text("{")
    little = tmp_path / "meminfo"
    little.write_text("MemTotal: 4000000 kB\nMemAvailable: 100000 kB\n")
    monkeypatch.setattr(doctor, "MEMORY", little)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "total used free")(10, 9, 1))
    monkeypatch.setattr(device_queue, "visible_gpus", lambda: ("0",))  # a GPU that this build of torch cannot use
    monkeypatch.setenv("DML_CPU_RUNS", "many")
    monkeypatch.setenv("DML_TOKEN", "short")
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: ["numpy<1", "nothing-like-it>=1"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        diagnoses = list(doctor.examine(store, taken.getsockname()[1]))
    wrong = {(f.subject, f.verdict): f for f in diagnoses if f.verdict != "good"}
    assert wrong.keys() >= {
        *((subject, "fault") for subject in ("memory", "settings", "GPU", "store", "cache", "packages")),
        *((subject, "note") for subject in ("store", "port", "packages")),
    }
    assert all(diagnosis.remedy for diagnosis in wrong.values())
    told = "\n".join(diagnosis.what for diagnosis in diagnoses)
    assert f"1 interrupted, including {run.id}" in told
    assert f"{broken.id} is unreadable" in told
    assert f"numpy is {metadata.version('numpy')}, tested with <1" in told
    assert "nothing-like-it is missing" in told


def test_a_store_that_cannot_be_written_is_a_fault(store):
    store.root.parent.mkdir(exist_ok=True)
    store.root.write_text("a file")
    assert any(diagnosis.verdict == "fault" for diagnosis in doctor.examine(store, 0))


def test_a_look_that_fails_hides_no_other(store, monkeypatch):
    monkeypatch.setattr(doctor, "MEMORY", store.root / "nowhere")
    diagnoses = list(doctor.examine(store, 0))
    assert [diagnosis for diagnosis in diagnoses if diagnosis.subject == "doctor" and diagnosis.verdict == "fault"]
    assert [diagnosis for diagnosis in diagnoses if diagnosis.subject == "weights"]


def test_the_commands(store, monkeypatch):
    monkeypatch.setattr(doctor, "MIN_SPACE", 0)
    monkeypatch.setattr(doctor, "MIN_MEMORY", 0)
    make_finished_run(store, [], 0.5)
    run = CliRunner().invoke
    told = run(app, ["doctor", "--port", "0", "--json"])
    assert told.exit_code == 0, told.output
    assert {"subject", "verdict", "what", "remedy"} == json.loads(told.stdout.splitlines()[0]).keys()
    assert "nothing was removed" in run(app, ["clean", "--old-runs", "0"]).stdout
    assert len(store.list()) == 1
    assert "1 removed" in run(app, ["clean", "--old-runs", "0", "--yes"]).stdout
    assert len(store.list()) == 0
    monkeypatch.setattr(doctor, "MIN_SPACE", 1e18)
    assert run(app, ["doctor", "--port", "0"]).exit_code == 1
    assert run(app, ["clean"]).exit_code == 1
