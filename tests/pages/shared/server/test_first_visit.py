"""Changes to Streamlit: the server opens its pages itself and stops the runs of a page that a visitor has left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.browser.harness import ROOT

MAIN = """
import sys
import streamlit as st

@st.fragment
def part():
    sys.parts += 1
    st.write("a part")

def page(name):
    def run():
        part()
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
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import Runtime
from pages.shared.server import host

sys.opened, sys.parts, done = [], 0, []

class Tab(host._Visitor):
    def __init__(self):
        super().__init__()
        self.shown = []

    def write_forward_msg(self, message):
        super().write_forward_msg(message)
        if message.WhichOneof("type") in ("new_session", "navigation"):
            self.shown.append(getattr(message, message.WhichOneof("type")).page_script_hash)
        if message.WhichOneof("type") == "delta" and message.delta.fragment_id:
            self.part = message.delta.fragment_id

async def left():
    # The pages that a browser is told of that opens one, then another, and then asks for a part of each.
    tab, runtime = Tab(), Runtime.instance()
    session = runtime.connect_session(client=tab, user_info={})

    def ask(**what):
        tab.complete.clear()
        message = BackMsg()
        for key, value in what.items():
            setattr(message.rerun_script, key, value)
        runtime.handle_backmsg(session, message)

    parts = {}
    for name in ("two", "one"):
        ask(page_name=name)
        await tab.complete.wait()
        parts[tab.shown[-1]] = tab.part
    (two, one), tab.shown = parts, []
    ask(page_script_hash=two)
    ask(page_script_hash=one, fragment_id=parts[one])
    await tab.complete.wait()
    count = sys.parts
    ask(page_script_hash=two, fragment_id=tab.part)
    await tab.complete.wait()
    runtime.close_session(session)
    return ["one" if page == one else "two" for page in tab.shown], sys.parts - count

async def opened():
    while not Runtime.exists():
        await asyncio.sleep(0.01)
    await host.open_pages(["one", "broken", "two"])
    done.append(host.sessions())
    host.be_done_with_left_pages()
    done.append(await left())

@asynccontextmanager
async def lifespan(_):
    task = asyncio.create_task(opened())
    yield
    await task

with TestClient(App(sys.argv[1], lifespan=lifespan)) as client:
    for _ in range(600):
        if len(done) == 2:
            break
        client.get("/_stcore/health")
        time.sleep(0.05)
first = sys.opened[:3]
print([name for name, _ in first], len({id(session) for _, session in first}), done[0])
print(done[1])
"""


def test_pages_are_opened_in_one_session_that_ends_and_a_left_one_is_left(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(MAIN)
    run = subprocess.run(
        [sys.executable, "-c", SERVER, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    opened, left = run.stdout.strip().splitlines()[-2:]
    assert opened == "['one', 'broken', 'two'] 1 0"
    # Fragments of the page that was left do not run; those of the current page do.
    assert left == "(['two', 'two', 'two'], 1)"
