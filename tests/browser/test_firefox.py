"""The main journey in Debian's Firefox; all other tests use Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from dmlcore.storage.runs import EXAMPLE
from tests.browser.conftest import missing
from tests.browser.harness import ROOT

pytestmark = pytest.mark.browser


def test_from_a_force_to_a_failure(server, tmp_path):
    firefox, node = shutil.which("firefox-esr"), shutil.which("node", path=f"{ROOT}/.venv/bin:{os.environ['PATH']}")
    if firefox is None:
        missing("no Firefox: apt-get install firefox-esr")
    if node is None or not (ROOT / "node_modules" / "puppeteer-core").exists():
        missing("no puppeteer-core: npm ci --ignore-scripts")
    journey = subprocess.run(
        [node, "tests/browser/firefox.js", firefox, server.url, EXAMPLE],
        cwd=ROOT,
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=900,  # above the sum of what firefox.js waits for its steps on a loaded machine
    )
    assert journey.returncode == 0, journey.stderr
