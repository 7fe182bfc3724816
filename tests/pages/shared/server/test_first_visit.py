"""A server opens its pages itself: each runs once, one after another, in a session that ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.browser.harness import ROOT

MAIN = """
import sys
import streamlit as st

def page(name):
    def run():
        sys.opened.append((name, st.session_state.setdefault("session", object())))
        if name == "broken":
            raise ValueError("of the page")
    return st.Page(run, title=name, url_path=name, default=name == "home")

st.navigation([page(name) for name in ("home", "one", "broken", "two")]).run()
"""
SERVER = """
import asyncio, sys, time
from contextlib import asynccontextmanager
from starlette.testclient import TestClient
from streamlit import App
from streamlit.runtime import Runtime
from pages.shared.server import host

sys.opened, done = [], []

async def opened():
    while not Runtime.exists():
        await asyncio.sleep(0.01)
    await host.open_pages(["one", "broken", "two"])
    done.append(host.sessions())

@asynccontextmanager
async def lifespan(_):
    task = asyncio.create_task(opened())
    yield
    await task

with TestClient(App(sys.argv[1], lifespan=lifespan)) as client:
    for _ in range(600):
        if done:
            break
        client.get("/_stcore/health")
        time.sleep(0.05)
print([name for name, _ in sys.opened], len({id(session) for _, session in sys.opened}), done)
"""


def test_each_page_is_opened_once_in_one_session_that_ends(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(MAIN)
    run = subprocess.run(
        [sys.executable, "-c", SERVER, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout.strip().splitlines()[-1] == "['one', 'broken', 'two'] 1 [0]"
