"""Benchmarks are those whose figures the documents quote."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPTS = {path.stem: path.read_text() for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "harness"}
TEXT = "\n".join(path.read_text() for path in (ROOT / "README.md", ROOT / "Makefile", *(ROOT / "docs").glob("*.md")))


def test_the_documents_name_every_benchmark_and_no_other():
    assert set(re.findall(r"\bbenchmarks[./](?!md\b)(\w+)", TEXT)) == set(SCRIPTS)


def test_no_benchmark_needs_the_tests():
    harness = (ROOT / "benchmarks" / "harness.py").read_text()
    assert not [text for text in (*SCRIPTS.values(), harness) if re.search(r"^\s*(from|import) tests\b", text, re.M)]


def test_the_documents_name_modules_of_the_tests_that_exist():
    named = re.findall(r"python -m (tests(?:\.\w+)+)", TEXT)
    assert "tests.faults.kills" in named
    assert all((ROOT / f"{name.replace('.', '/')}.py").is_file() for name in named)
