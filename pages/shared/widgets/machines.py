"""Choice of machine and number of processes for new runs and jobs: this machine, or a backend in $DML_BACKENDS."""

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
HELP = "Applies to new training runs, studies, evaluations and maps. Running work stays where it is."
TOGETHER = (
    "Number of data-parallel processes: each computes its share of every batch and holds the whole network in memory. "
    "The result equals that of one process up to rounding. This speeds up training on several GPUs or machines, but "
    "hardly on the cores of one."
)


def sidebar() -> None:
    """Show a select box for the machine if there are several. The router calls this function on every page."""
    offered, wrong = _offered()
    if wrong:
        st.sidebar.warning(f"DML_BACKENDS: {wrong}")
    elif len(offered) > 1:
        st.sidebar.selectbox("Runs on", list(offered), key=_KEY, format_func=lambda text: offered[text], help=HELP)


def chosen() -> str:
    """Return the chosen backend in the form that the functions of `launch` accept; "" for this machine."""
    named: str = st.session_state.get(_KEY, "")
    return named if named in _offered()[0] else ""


def chosen_title() -> str:
    """Return the display name of the chosen machine."""
    return _offered()[0][chosen()]


def processes(spec: RunSpec) -> int:
    """Show an input for the number of processes that train one run, and return the number.

    No input is shown, and 1 is returned, if a run of `spec` can use only one process.
    """
    from dmlcore.jobs import device_queue

    here = device_queue.max_processes(spec)
    most = min(MOST_ELSEWHERE if chosen() else here, spec.batch.classes * spec.batch.samples)
    if most < 2:
        return 1
    # the stored number may come from a machine with a higher limit
    st.session_state[_PROCESSES] = min(st.session_state.get(_PROCESSES, 1), most)
    with st.expander("Several processes", icon=":material/account_tree:"):
        return int(st.number_input("Processes", 1, most, key=_PROCESSES, help=TOGETHER, width=150))


def on_command_line(command: str, processes: int = 1) -> str:
    """Return `command` with the options for the chosen machine and the number of processes appended."""
    more = [*(("--processes", str(processes)) if processes > 1 else ())]
    more += [*(("--backend", chosen()) if chosen() else ())]
    return f"{command} {shlex.join(more)}" if more else command


def any_other() -> bool:
    """Return True if the user can choose a machine other than this one."""
    return len(_offered()[0]) > 1


def _offered() -> tuple[dict[str, str], str]:
    """Return the offered machines as {line of $DML_BACKENDS: title}, and an error message.

    The message is "" if $DML_BACKENDS is valid.
    """
    if not os.environ.get("DML_BACKENDS", "").strip():
        return _HERE, ""
    # imported late: the router imports this module and should not have to wait for the import of pydantic
    from dmlcore.jobs.backends import choice
    from dmlcore.storage.task import JobError
    from pages.shared.words import sentences as words

    try:
        return {each.text: each.title for each in choice.offered_backends()}, ""
    except JobError as error:
        return _HERE, words.plain(error)
