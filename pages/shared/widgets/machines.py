"""Where what a visitor starts is done, and on how many processes: here, or on a cluster named in $DML_BACKENDS."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from dmlcore.spec import RunSpec

_KEY = "machine"
_PROCESSES = "processes"
MOST_ELSEWHERE = 64
_HERE = {"": "This machine"}
HELP = "What you start from here on: training runs, studies, evaluations, maps. What is under way stays where it is."
TOGETHER = (
    "Number of data-parallel processes: each computes its share of every batch and holds the whole network in memory. "
    "The result is that of one process, up to rounding. It helps with several GPUs or machines, hardly with the cores "
    "of one."
)


def sidebar() -> None:
    """The choice, where there is one; drawn by the router, so that it holds on every page."""
    offered, wrong = _offered()
    if wrong:
        st.sidebar.warning(f"DML_BACKENDS: {wrong}")
    elif len(offered) > 1:
        st.sidebar.selectbox("Runs on", list(offered), key=_KEY, format_func=lambda text: offered[text], help=HELP)


def chosen() -> str:
    """What was chosen, as `launch` takes it; "": this machine."""
    named: str = st.session_state.get(_KEY, "")
    return named if named in _offered()[0] else ""


def chosen_title() -> str:
    """What was chosen, in words."""
    return _offered()[0][chosen()]


def processes(spec: RunSpec) -> int:
    """Let the user choose how many processes train a run of this spec; return 1 where there is no choice."""
    from dmlcore.jobs import device_queue

    here = device_queue.max_processes(spec)
    most = min(MOST_ELSEWHERE if chosen() else here, spec.batch.classes * spec.batch.samples)
    if most < 2:
        return 1
    st.session_state[_PROCESSES] = min(st.session_state.get(_PROCESSES, 1), most)  # of another machine
    with st.expander("Several processes", icon=":material/account_tree:"):
        return int(st.number_input("Processes", 1, most, key=_PROCESSES, help=TOGETHER, width=150))


def on_command_line(command: str, processes: int = 1) -> str:
    """A command as it does the same in the place that was chosen."""
    more = [*(("--processes", str(processes)) if processes > 1 else ())]
    more += [*(("--backend", chosen()) if chosen() else ())]
    return f"{command} {shlex.join(more)}" if more else command


def any_other() -> bool:
    """Whether there is a choice."""
    return len(_offered()[0]) > 1


def _offered() -> tuple[dict[str, str], str]:
    """Titles by line, and what is wrong with what the owner named."""
    if not os.environ.get("DML_BACKENDS", "").strip():
        return _HERE, ""
    from dmlcore.jobs.backends import choice  # late: the router begins with this module, and need not wait for pydantic
    from dmlcore.storage.task import JobError
    from pages.shared.words import sentences as words

    try:
        return {each.text: each.title for each in choice.offered_backends()}, ""
    except JobError as error:
        return _HERE, words.plain(error)
