"""The plug-in of docs/plugins.md trains a run in every process; one that fails is named."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from dmlcore import catalogue, losses
from dmlcore.storage.runs import RunStore

ROOT = Path(__file__).parents[2]
EXAMPLE = re.search(r"^```python\n(.*?)^```$", (ROOT / "docs" / "plugins.md").read_text("utf-8"), re.DOTALL | re.M)[1]
QUICK = ("schedule.steps=2", "schedule.validate_every=2", "batch.classes=2", "batch.samples=3", "model.embedding_dim=4")


def dml(folder: Path, *arguments: str, plugins: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", catalogue.PLUGINS: plugins}
    command = [sys.executable, "-m", "dmlcore", *arguments, "--runs", str(folder / "runs")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_example_trains_a_run_on_two_processes(tmp_path):
    (tmp_path / "my_plugin.py").write_text(EXAMPLE)
    chosen = ["data.name=my_data", "data.crop=shift", "model.name=my_backbone", "loss.name=my_loss", "loss.q=3", *QUICK]
    done = dml(tmp_path, "train", "glyphs", *chosen, "--processes", "2", plugins="my_plugin")
    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = RunStore(tmp_path / "runs").list()
    assert (run.state().state, run.state().step, run.state().processes) == ("done", 2, 2)
    assert run.spec.loss.parameters == {"q": 3.0}


def test_a_plug_in_that_fails_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('no such thing')")
    failed = dml(tmp_path, "train", "digits", *QUICK, plugins="broken")
    assert failed.returncode == 1
    assert failed.stderr.startswith(
        "error: plug-in 'broken', named by $DML_PLUGINS, cannot be imported: ValueError: no "
    )
    assert "Traceback" not in failed.stderr


def test_the_app_refuses_to_start_without_a_plug_in(monkeypatch):
    monkeypatch.setenv(catalogue.PLUGINS, "not_there")
    with pytest.raises(catalogue.PluginError, match="plug-in 'not_there', named by"):
        runpy.run_path(str(ROOT / "app.py"))


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Simulate a process that has not loaded plug-ins yet, and remove the plug-ins that it loads afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(catalogue, "_loaded", set())
    catalogue._entry_points.cache_clear()
    with losses.LOSSES.isolated():
        yield tmp_path
    catalogue._entry_points.cache_clear()


def test_an_entry_point_of_an_installed_package_is_loaded_once(fresh):
    about = fresh / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dml_lab.plugins]\nmine = entered_plugin\n")
    (fresh / "entered_plugin.py").write_text("from dmlcore.losses import LOSSES\nLOSSES.enter('entered', None)\n")
    assert "mine" in {entry.name for entry in metadata.entry_points(group=catalogue.PLUGIN_GROUP)}
    for _ in range(2):
        catalogue.load_plugins()
    assert "entered" in losses.LOSSES


def test_a_missing_plug_in_and_a_taken_name_say_what_to_do(fresh, monkeypatch):
    (fresh / "taking.py").write_text("from dmlcore.losses import LOSSES\nLOSSES.enter('triplet', None)\n")
    for name, words in (
        ("not_there", r"plug-in 'not_there', named by \$DML_PLUGINS, .*install it or put its folder on PYTHONPATH"),
        (" , taking", "plug-in 'taking'.*there is a loss named triplet already; choose another name"),
    ):
        monkeypatch.setenv(catalogue.PLUGINS, name)
        for _ in range(2):  # at every call, not only the first
            with pytest.raises(catalogue.PluginError, match=words):
                catalogue.load_plugins()
