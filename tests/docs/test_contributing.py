"""The recipe of CONTRIBUTING.md and the Python blocks of README.md run as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_loss_added_by_the_recipe_fulfils_the_contract(tmp_path):
    """The block alone enters the loss into the catalogue; the generated suite then covers and accepts it."""
    (recipe,) = blocks("CONTRIBUTING.md")
    # A plugin, so that the loss is there before the suite is generated over the catalogue.
    (tmp_path / "recipe.py").write_text(recipe)
    options = ["-p", "recipe", "-k", "powered_ranking", "-q", "-p", "no:cacheprovider"]
    options += ["-o", "addopts=--import-mode=importlib", "tests/losses/test_contract.py"]
    paths = [str(ROOT), str(tmp_path)]
    code = f"import sys; sys.path[:0] = {paths}; import pytest; sys.exit(pytest.main({options}))"
    result = run(code)
    assert result.returncode == 0, result.stdout[-3000:]
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed is not None, result.stdout[-3000:]
    assert int(passed[1]) > 30


@pytest.mark.parametrize("code", blocks("README.md"))
def test_the_readme_runs(code):
    result = run(code)
    assert result.returncode == 0, result.stderr[-3000:]
