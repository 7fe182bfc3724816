"""The wheel contains the complete library with its data files and nothing of the app."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import dmlcore
from dmlcore import presets

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """Return a wheel built by the backend itself; pip would start another process and contact a package index."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    shutil.copytree(ROOT / "dmlcore", tree / "dmlcore", ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools import build_meta; build_meta.build_wheel('.')"
    built = subprocess.run([sys.executable, "-c", build], cwd=tree, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr[-2000:]
    (path,) = tree.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_file_of_the_library(wheel):
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    there = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "dmlcore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith(".tmp")
    }
    assert held == there
    assert "dmlcore/py.typed" in held
    assert {path.suffix for path in presets.STUDIES.iterdir()} == {".toml", ".jsonl"}


def test_what_the_wheel_asks_for_is_the_library_alone(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
    about = message_from_bytes(wheel.read(name))
    asked = [line for line in about.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert any(line.startswith("torch") for line in asked)
    assert not any(line.startswith(("streamlit", "plotly", "optuna", "ray", "submitit")) for line in asked)
    assert set(about.get_all("Provides-Extra", [])) == {"app", "backbones", "cluster", "ray", "slurm"}
    (entry,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert b"dml = dmlcore.cli.main:main" in wheel.read(entry)


def test_away_from_the_repository_runs_and_data_lie_in_the_working_directory(tmp_path, wheel):
    site = tmp_path / "site-packages"
    wheel.extractall(site)
    code = (
        "from dmlcore.storage import home, runs; from dmlcore import presets; "
        "print(home.HOME, runs.RunStore().root, presets.SPECS)"
    )
    place = tmp_path / "work"
    place.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "DML_RUNS"} | {"PYTHONPATH": str(site)}
    found = subprocess.run([sys.executable, "-c", code], cwd=place, env=environment, capture_output=True, text=True)
    assert found.stdout.split() == [str(place), str(place / "runs"), str(site / "dmlcore/presets/specs")], found.stderr


def test_help_loads_nothing_heavy():
    """Without numpy and scipy the help takes 0.35 s of CPU time instead of 0.9 s."""
    heavy = {"numpy", "scipy", "torch", "PIL", "sklearn", "altair"}
    code = f"import sys, dmlcore.cli.main; print(*{heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_citation_changelog_and_package_are_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert dmlcore.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert version in (ROOT / "CHANGELOG.md").read_text()
