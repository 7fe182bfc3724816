"""The recipes of docs/recipes.md work as printed, each in one file, and the Python blocks of the README run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.started import run_python

ROOT = Path(__file__).parents[2]
PAGE = "docs/recipes.md"
# Name that each recipe registers, and the contract tests of its catalogue, which cover it.
RECIPES = {
    "powered_ranking": "tests/losses/test_contract.py",
    "neighbourhood_components": "tests/losses/test_batch_contract.py",
    "lse": "tests/pooling/test_contract.py",
    "hard_positive_semi_hard": "tests/mining/test_contract.py",
    "spirals": "tests/data/test_load.py",
    "patches": "tests/models/backbones/test_contract.py",
    "nadam": "tests/spec/test_optimisers.py",
    "lookahead": "tests/training/methods/test_contract.py",
    "worst_average_precision": "tests/metrics/test_scores.py",
    "C-9.1": "tests/published/test_tables.py",
    "far-negatives": "tests/lessons/test_contract.py",
}


def blocks(name: str, language: str = "python") -> list[str]:
    fence = "````" if language.startswith("`") else "```"  # a lesson contains fences
    return re.findall(rf"^```{language}\n(.*?)^{fence}$", (ROOT / name).read_text("utf-8"), flags=re.DOTALL | re.M)


def follow(recipe: str, tree: Path) -> Path:
    """Write one recipe into a copy of the library and return the only file that it changes."""
    where, _, body = recipe.partition("\n")
    path = tree / where.split()[-1]
    if "at the end of" in where:
        path.write_text(f"{path.read_text('utf-8')}\n\n{body}", "utf-8")
    else:
        assert not path.exists()
        path.write_text(body, "utf-8")
    return path


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """Return (suite, case, "passed", "skipped" or message) of the contract tests on a library with every recipe."""
    tree = tmp_path_factory.mktemp("contributed")
    # including bytecode
    shutil.copytree(ROOT / "dmlcore", tree / "dmlcore", ignore=shutil.ignore_patterns("example.zip"))
    recipes = [*blocks(PAGE), *blocks(PAGE, "toml"), *blocks(PAGE, "`markdown")]
    assert len({follow(recipe, tree) for recipe in recipes}) == len(RECIPES)
    options = ["-q", "-p", "no:cacheprovider", "-k", " or ".join(RECIPES), f"--junitxml={tree / 'report.xml'}"]
    options += ["-o", "addopts=--import-mode=importlib", "-o", "pythonpath=", *dict.fromkeys(RECIPES.values())]
    code = f"import sys, pytest; sys.path[:0] = {[str(tree), str(ROOT)]}; sys.exit(pytest.main({options}))"
    found = run_python("-c", code, timeout=600)
    assert (tree / "report.xml").is_file(), found.stdout[-3000:] + found.stderr[-3000:]
    cases = ElementTree.parse(tree / "report.xml").iter("testcase")
    return [
        (f"{case.get('classname', '').replace('.', '/')}.py", case.get("name", ""), _outcome(case)) for case in cases
    ]


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        if (said := case.find(kind)) is not None:
            return "skipped" if kind == "skipped" else said.text or kind
    return "passed"


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_recipe_adds_fulfils_the_contract_of_its_family(name, outcomes):
    here = [(case, outcome) for suite, case, outcome in outcomes if suite == RECIPES[name] and name in case]
    wrong = "\n".join(f"{case}: {outcome}" for case, outcome in here if outcome not in ("passed", "skipped"))
    assert not wrong, wrong[-3000:]
    functions = {case.partition("[")[0] for case, outcome in here if outcome == "passed"}
    assert len(functions) >= 3, f"{name} is covered by {functions}"


@pytest.mark.parametrize("code", blocks("README.md"))
def test_the_readme_runs(code):
    result = run_python("-c", code)
    assert result.returncode == 0, result.stderr[-3000:]
