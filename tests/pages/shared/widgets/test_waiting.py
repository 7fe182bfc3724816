"""The waiting widget: shown with log and cancel button while a task runs, then with the reason of its end."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.storage import locks
from dmlcore.storage.task import ProgressState, Task


def waits():
    import os
    from pathlib import Path

    import streamlit as st

    from dmlcore.storage.task import ProgressState, Task
    from pages.shared.widgets import waiting

    task = Task(Path(os.environ["TASK"]), ProgressState)
    st.session_state["rounds"] = st.session_state.get("rounds", 0) + 1
    if not waiting.wait(
        task, "it", lambda state: waiting.counted(state, "{:.0f}".format), below=lambda: st.text("so far")
    ):
        waiting.ended(task)


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task[ProgressState]:
    monkeypatch.setenv("TASK", str(tmp_path / "task"))
    made = Task(tmp_path / "task", ProgressState)
    made.path.mkdir()
    return made


def test_it_is_shown_while_somebody_works_and_can_be_ended(task: Task[ProgressState]) -> None:
    task.record(ProgressState(state="running", message="reading", done=5, total=20, rate=3.0))
    (task.path / "log.txt").write_text("<b>first</b>\nsecond\n")
    with ExitStack() as at_work:
        at_work.enter_context(locks.ProcessLock(task.path / "lock"))
        app = AppTest.from_function(waits, default_timeout=180).run()
        assert not app.exception
        bar = app.get("progress")[0].proto
        assert (bar.value, bar.text) == (25, "Reading: 5 of 20, 3 per second, about 5 s left")
        assert app.code[0].value == "<b>first</b>\nsecond"
        assert [text.value for text in app.text] == ["so far"]
        assert app.session_state["rounds"] == 1
        app.button(key="cancel-it").click().run()
        assert task.cancel_requested()
        assert app.button(key="cancel-it").disabled
        assert "stopping" in app.get("progress")[0].proto.text
        task.record(task.state().replace(state="failed", message="no <b>room</b>"))
    app.run()
    assert not app.get("progress")
    assert "The last attempt failed" in app.markdown[0].value
    assert app.text[0].value == "No <b>room</b>"


@pytest.mark.parametrize(
    ("state", "said"),
    [("running", "was interrupted"), ("cancelled", "Cancelled"), ("incomplete", "Some runs failed"), ("done", "")],
)
def test_why_it_ended(task: Task[ProgressState], state: str, said: str) -> None:
    task.record(ProgressState(state=state))
    app = AppTest.from_function(waits, default_timeout=180).run()
    assert not app.exception
    assert not app.button
    assert (said in app.markdown[0].value) if said else not app.markdown
