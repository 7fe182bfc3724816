"""docs/cluster.md prints what the code takes; its dml commands run in tests/jobs/backends/test_ray.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from dmlcore.jobs.backends import choice, ray_engine

TEXT = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()


def commands(language: str = "bash") -> list[str]:
    """The lines of its blocks."""
    return [line for block in re.findall(rf"```{language}\n(.*?)```", TEXT, re.S) for line in block.splitlines()]


def test_every_backend_it_names_can_be_chosen_and_the_start_of_ray_is_the_one_that_errors_name() -> None:
    assert ray_engine.START in commands()
    lines = [shlex.split(line) for line in commands() + commands("text")]
    named = [words[words.index("--backend") + 1] for words in lines if "--backend" in words]
    assert len(named) >= 5
    for text in named:
        assert choice.parse(text).kind in ("ray", "slurm")
    (offered,) = re.findall(r'DML_BACKENDS="([^"]+)"', TEXT)
    assert [choice.parse(word).kind for word in offered.split()] == ["ray", "slurm"]
