"""The documentation site builds without a warning, so all links and anchors resolve; generated pages are current."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs import make_errata

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="zensical builds the documentation site")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    built = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", built.stdout + built.stderr)
    assert built.returncode == 0, plain[:3000]
    assert "<math" in (tmp_path / "site" / "losses" / "index.html").read_text("utf-8")
    assert "dmlcore.losses.create" in (tmp_path / "site" / "reference" / "losses" / "index.html").read_text("utf-8")


def test_the_page_of_errata_is_current() -> None:
    assert make_errata.PAGE.read_text("utf-8") == make_errata.markdown(), "run: python -m docs.make_errata"
