"""Names of the user's own networks: they are readable everywhere, and accepted only where the user names them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmlcore.experiments import recovery
from dmlcore.experiments.search import space
from dmlcore.experiments.studies.spec import Study
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec, SpecError, own_network
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import JobError
from dmlcore.training import build
from dmlcore.training.forks import fork_spec
from pages.shared.state import spec_link
from tests.cli.here import here
from tests.members import in_one_case

NAME = "hostile_network.net:make"
CHANGE = f"model.name={NAME}"
REFUSED = "imported only if you name it"


@pytest.fixture(autouse=True)
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a module on the path that writes a file when it is imported; return the path of that file."""
    package = tmp_path / "hostile_network"
    package.mkdir()
    marker = tmp_path / "imported"
    (package / "net.py").write_text(
        f"from torch import nn\nopen({str(marker)!r}, 'w')\ndef make(width=8):\n"
        "    return nn.Conv2d(3, width, 4, stride=4)\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.delenv(own_network.NETWORKS, raising=False)
    monkeypatch.delenv(own_network.FOLDER, raising=False)
    return marker


def spec() -> RunSpec:
    """Return a short spec on images with the hostile network."""
    return RunSpec().with_overrides(["data.name=glyphs", CHANGE, "model.options.width=4", "schedule.steps=2"])


@in_one_case(
    name=[
        "net",
        "a b:make",
        "net:",
        ":make",
        "../net:make",
        "net:make()",
        "net:a.b",
        "1net:make",
        "net:make\n",
        "a..b:c",
    ]
)
def test_names_are_dotted_identifiers(name: str) -> None:
    if name == "net":  # a catalogue name; unknown ones are refused before training
        return
    with pytest.raises(SpecError, match=r"model\.name"):
        RunSpec.parse({"model": {"name": name}})


def test_options_need_an_own_network() -> None:
    with pytest.raises(SpecError, match=r"model\.options: only a network of your own takes arguments, and mlp"):
        RunSpec().with_overrides(["model.options.width=4"])
    assert RunSpec.from_toml(spec().to_toml()) == spec()
    assert type(spec().model.options["width"]) is int


def test_stored_runs_are_read_but_not_made(tmp_path: Path, hostile: Path) -> None:
    store = RunStore(tmp_path / "runs")
    with pytest.raises(SpecError, match=REFUSED):
        store.create(spec())
    assert store.list() == []
    with pytest.MonkeyPatch.context() as patch:  # as if it was unpacked from an archive
        patch.setenv(own_network.NETWORKS, NAME)
        run = store.create(spec())
    with run.lock():
        run.update(queued=0.0)  # not a moment ago
    assert [each.spec.model.name for each in store.list()] == [NAME]
    with pytest.raises(JobError, match=REFUSED):
        launch.resume(run)
    reports: list[str] = []
    assert recovery.recover(store, reports.append) == []
    assert REFUSED in reports[0]
    assert run.state().state == "queued"
    assert not hostile.exists()


def test_everything_but_the_command_line_refuses(tmp_path: Path, hostile: Path) -> None:
    base = RunSpec().with_overrides(["data.name=glyphs", "model.name=conv4_32"])
    with pytest.raises(SpecError, match="train it with dml train"):
        spec_link.linked({"base": "glyphs", "set": CHANGE})
    with pytest.raises(SpecError, match=REFUSED):
        space.prepare(base, [f"model.name={NAME},conv4_32", "seed=1"], "search", method="grid")
    with pytest.raises(SpecError, match=REFUSED):
        space.prepare(spec(), ["optimiser.learning_rate=0.1..1"], "search")
    with pytest.raises(SpecError, match=REFUSED):
        launch.launch(spec(), RunStore(tmp_path / "runs"))
    with pytest.raises(SpecError, match=REFUSED):
        build.refuse_unusable(spec())
    assert not hostile.exists()


def test_links_refuse_permitted_networks_too(monkeypatch: pytest.MonkeyPatch, hostile: Path) -> None:
    monkeypatch.setenv(own_network.NETWORKS, NAME)
    with pytest.raises(SpecError, match="train it with dml train"):
        spec_link.linked({"base": "glyphs", "set": CHANGE})
    assert not hostile.exists()


def test_studies_are_read_and_their_runs_refused(tmp_path: Path, hostile: Path) -> None:
    from dmlcore.experiments import studies

    study = Study.parse(
        {
            "title": "Networks",
            "question": "Which one?",
            "source": "A test",
            "claim": "None",
            "minutes": 1.0,
            "seeds": [0, 1],
            "base": {"data": {"name": "glyphs"}, "model": {"name": "conv4_32"}},
            "variants": [
                {"name": "plain", "overrides": []},
                {"name": "own", "overrides": [CHANGE]},
            ],
        }
    )
    entries = [entry for entry in studies.expand(study) if entry.spec.model.name == NAME]
    with pytest.raises(SpecError, match=REFUSED):
        RunStore(tmp_path / "runs").create(entries[0].spec)
    assert not hostile.exists()


def test_forks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: Path) -> None:
    monkeypatch.setenv(own_network.NETWORKS, NAME)
    parent = RunStore(tmp_path / "runs").create(spec())
    monkeypatch.delenv(own_network.NETWORKS)
    with pytest.raises(SpecError, match=REFUSED):
        fork_spec.check(parent.spec, build.load_data(parent.spec))
    assert not hostile.exists()


def test_the_command_line_permits_what_it_names(tmp_path: Path, hostile: Path) -> None:
    (tmp_path / "own.toml").write_text(spec().to_toml())
    command = [sys.executable, "-m", "dmlcore", "train", str(tmp_path / "own.toml"), "--runs", str(tmp_path / "runs")]
    trained = subprocess.run(command, capture_output=True, text=True)
    assert trained.returncode == 0, trained.stderr
    assert hostile.exists()
    run = RunStore(tmp_path / "runs").list()[0]
    hostile.unlink()
    evaluated = here("evaluate", run.id, "--runs", str(tmp_path / "runs"))
    assert evaluated.returncode == 1
    assert f"DML_NETWORKS={NAME}" in evaluated.stderr
    assert not hostile.exists()
