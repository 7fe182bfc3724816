"""docs/cluster.md prints formats that the code reads; tests/jobs/backends/test_ray.py runs its dml commands."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from dmlcore import data
from dmlcore.jobs.backends import choice, ray_engine
from dmlcore.spec import RunSpec
from tests.cli.here import here
from tests.data import layouts

TEXT = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()


def commands(language: str = "bash", after: str = "") -> list[str]:
    """Return the lines of the blocks after a heading."""
    text = TEXT.partition(after)[2] if after else TEXT
    return [line for block in re.findall(rf"```{language}\n(.*?)```", text, re.S) for line in block.splitlines()]


def test_named_backends_can_be_chosen_and_ray_starts_as_errors_say() -> None:
    ray = [line.replace(" --num-cpus=2", "") for line in commands() if "ray " in line and "dml" not in line]
    assert ray == [ray_engine.MAKE_TOKEN, ray_engine.START] * 2
    lines = [shlex.split(line) for line in commands() + commands("text")]
    named = [words[words.index("--backend") + 1] for words in lines if "--backend" in words]
    assert len(named) >= 5
    for text in named:
        assert choice.parse(text).kind in ("ray", "slurm")
    (offered,) = re.findall(r'DML_BACKENDS="([^"]+)"', TEXT)
    assert [choice.parse(word).kind for word in offered.split()] == ["ray", "slurm"]


def test_the_commands_on_larger_sets_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = TEXT.partition("## Larger sets")[2].partition("\n## ")[0]
    lines = [line for block in re.findall(r"```\n(.*?)```", section, re.S) for line in block.splitlines()]
    shared, usual = tmp_path / "shared", tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DML_DATA", str(usual))
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    layouts.sop(usual / "Stanford_Online_Products")
    layouts.class_folders(tmp_path / "photographs")
    samples = {"sop": data.read("sop"), "folder": data.read("folder", root="photographs")}
    done = []
    for line in lines:
        program, command, *words = shlex.split(line.replace("/shared", str(shared)), comments=True)
        assert program == "dml"
        done.append(command)
        if command == "data":
            ended = here(command, *words)
            assert ended.returncode == 0, ended.stderr
        else:  # the spec is written by the user
            assert command == "train"
            name = words[0].removesuffix(".toml")
            root = RunSpec().with_overrides([f"data.name={name}", *words[1:]]).data.root
            assert np.array_equal(data.read(name, root=root).inputs[:], samples[name].inputs[:])
        if words[:2] == ["pack", "sop"]:
            shutil.copytree(usual / "sop-shards", shared / "sop-shards")
        if words[:2] == ["pack", "folder"]:
            (shared / "shards-of-others").mkdir()
            for shard in (shared / "photographs-shards").glob("*.tar"):
                shutil.copy(shard, shared / "shards-of-others")
    assert done == ["data", "data", "data", "train", "train"]
