"""`dml bench gpu`: parts run in their own processes, and a part that fails or does not end costs only itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmlcore.bench import gpu
from dmlcore.storage.home import HOME


def stand_ins(monkeypatch: pytest.MonkeyPatch, folder: Path, **bodies: str) -> None:
    """Replace the parts with modules of these bodies, with a limit of 20 seconds or, for `endless`, of 5."""
    (folder / "parts").mkdir()
    for name, body in bodies.items():
        (folder / "parts" / f"{name}.py").write_text(body)
    monkeypatch.setattr(gpu, "PACKAGE", "parts")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    parts = [gpu.Part(name, 5 if name == "endless" else 20) for name in bodies]
    monkeypatch.setattr(gpu, "PARTS", tuple(parts))


def test_a_part_that_fails_or_does_not_end_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken, endless = "raise ValueError('no kernel')", "import time\nprint('first row')\ntime.sleep(600)"
    stand_ins(monkeypatch, tmp_path, broken=broken, endless=endless, last="import sys\nprint(sys.argv[1:])")
    assert gpu.main(["--small"]) == 1
    printed = capfd.readouterr().out
    assert "ValueError: no kernel" in printed
    assert "broken: FAILED (exit status 1)" in printed
    assert "first row" in printed
    assert "endless: stopped at its limit of 5 s" in printed
    assert "['--small']" in printed
    assert "1 of 3 parts done: broken FAILED" in printed


def test_only_and_minutes_choose_what_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_ins(monkeypatch, tmp_path, one="print('row of one')", two="print('row of two')")
    assert gpu.main(["--small", "--only", "two"]) == 0
    printed = capfd.readouterr().out
    assert "row of two" in printed
    assert "row of one" not in printed
    assert gpu.main(["--small", "--minutes", "0"]) == 1
    assert "one: not started, no time left" in capfd.readouterr().out


def test_without_a_gpu_it_says_how_to_try(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert gpu.main([]) == 1
    assert "--small" in capsys.readouterr().err


@pytest.mark.parametrize("part", gpu.PARTS, ids=lambda part: part.name)
def test_every_part_runs_from_the_package_alone(part: gpu.Part, tmp_path: Path) -> None:
    """The package is linked into an empty folder, as an installation has it: without tests, benchmarks and pages."""
    (tmp_path / "dmlcore").symlink_to(HOME / "dmlcore")
    found = subprocess.run(
        [sys.executable, "-m", f"dmlcore.bench.{part.name}", *part.small],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "--:|" in found.stdout.replace(" ", "")
