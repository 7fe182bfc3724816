"""Command `python -m dmlcore eject`."""

from __future__ import annotations

from dmlcore.cli.options import read_spec
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop
from tests.cli.here import here


def test_the_path_of_the_file_is_printed(tmp_path):
    run = RunStore(tmp_path / "runs").create(read_spec("digits").with_overrides(["schedule.steps=2"]))
    with run.lock():
        loop.train(run)
    to = tmp_path / "out" / "run.py"
    done = here("eject", run.id, "--to", str(to), "--runs", str(tmp_path / "runs"))
    assert (done.returncode, done.stdout.strip()) == (0, str(to))
    assert run.id in to.read_text()


def test_an_unsupported_run_is_refused_with_what_is_supported(tmp_path):
    run = RunStore(tmp_path / "runs").create(read_spec("glyphs"))
    done = here("eject", run.id, "--runs", str(tmp_path / "runs"))
    assert done.returncode == 1
    assert "data.name=glyphs" in done.stderr
    assert "One has data.name=digits or toy" in done.stderr
