"""Select box for the run in ?run=, shared by pages that show one run. The URL always contains the displayed run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.experiments import example
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.listing import Brief
from dmlcore.storage.run_directory import SPEC
from dmlcore.storage.runs import EXAMPLE, Run, RunError, RunStore
from pages.shared.widgets import menu, own_embeddings
from pages.shared.words import titles

KEY = "picked_run"
MOST_OFFERED = 300  # maximum number of runs in the box, because the browser receives every label
_RESULT = re.compile(r"MAP@R.* → ([\d.]+ %)")  # extracts the final score from the status message of a finished run
_LAST = "last_run"  # session key of the last run's id, needed because the navigation drops ?run=
_GONE = "run that an address named in vain"  # session key of the pair (unknown run in the URL, run shown instead)


def offered(
    store: RunStore,
    wanted: Callable[[str, Brief], object] = lambda run_id, brief: True,
    also: Iterable[str | None] = (),
) -> dict[str, Run]:
    """Return the newest MOST_OFFERED runs that `wanted` accepts, by id, newest first.

    The example run and the runs with an id in `also` are appended if `wanted` accepts them.
    """
    shipped = example.find(store)
    runs = {run.id: run for run in store.find(wanted, MOST_OFFERED)}
    for name in (shipped.id if shipped else None, *also):
        if name and name not in runs:
            with suppress(RunError):  # unknown or unreadable
                run = store.open(name)
                _ = run.state()
                if wanted(name, Brief.of(run.spec)):
                    runs[name] = run
    return runs


def last(store: RunStore) -> Run | None:
    """Return the run that this session showed last, else the newest run except the example; None if there is none."""
    shown = st.session_state.get(_LAST)
    if shown and shown != EXAMPLE:
        with suppress(RunError):
            return store.open(shown)
    return next(iter(store.newest(1)), None)


def head(title: str, sentence: str, imported: str | None = None) -> Run | None:
    """Show the head of an Inspection page: the title and the select box for the run on one line, then a sentence.

    `imported` is the sentence for an embedding set, which was not trained; by default it is the same. Returns the
    chosen run, or None if there are no runs. Warnings about the run in the URL are shown above the
    sentence.
    """
    line = st.container(horizontal=True, vertical_alignment="center", key="run_bar")
    line.title(title, anchor=False, width="content")
    with st.container():
        run = _pick(RunStore(), line)
    is_set = run is not None and run.is_embedding_set and not run.is_logged
    st.markdown(imported if imported and is_set else sentence)
    return run


def _pick(store: RunStore, box: DeltaGenerator) -> Run | None:
    """Show a select box of the newest runs that reads and updates ?run=; return the chosen run, None if there are none.

    `box` is the container of the select box and of the note that marks the example run. Without ?run=, the default is
    the last run of the session, else the newest evaluated run, else the newest run. Afterwards the URL contains the
    displayed run, so that the URL can be copied. An unknown run in the URL is replaced, and a warning is shown until
    another run is chosen.
    """
    wanted = st.query_params.get("run")
    runs = offered(store, also=(wanted, st.session_state.get(_LAST)))
    if not runs:
        if wanted:
            st.warning("The run in the link is not in this store.", icon=":material/link_off:")
        st.info("There are no runs yet. A first run takes seconds.", icon=":material/info:")
        menu.link("data", "Train a first network")
        own_embeddings.show_link()
        return None
    chosen = wanted if wanted in runs else _default(runs)
    st.session_state[KEY] = chosen  # the run in the URL overrides the selection stored by the widget
    everything = store.count()
    box.selectbox(
        "Run",
        list(runs),
        key=KEY,
        format_func=lambda run: _label(runs[run]),
        on_change=_write,
        width=430,
        label_visibility="collapsed",
    )
    if everything > MOST_OFFERED:
        menu.link("runs", f"All {everything:,} runs", into=box)
    if wanted != chosen:
        st.session_state[_GONE] = (wanted, chosen)
        st.query_params["run"] = chosen
    asked, instead = st.session_state.get(_GONE, (None, None))
    if asked is not None and instead == chosen:
        st.warning("The run in the link is not in this store. Showing another run instead.", icon=":material/link_off:")
    remember(runs[chosen])
    if runs[chosen].is_example:
        box.caption("Example run (not used in comparisons)", width="content")
        menu.link("data", "Train one", into=box)
    return runs[chosen]


def remember(run: Run) -> None:
    """Store `run` in the session as the one that pages show if they are opened without ?run=."""
    st.session_state[_LAST] = run.id


def present(run: Run) -> bool:
    """Return True if a run still exists; otherwise rerun the page, which then shows another run and a warning.

    Call this function in fragments, because their reruns skip the check at the start of the page.
    """
    if (run.path / SPEC).is_file():
        return True
    st.rerun()


@contextmanager
def restart_if_gone(*runs: Run) -> Iterator[None]:
    """Run the block; if it fails because one of these runs has been deleted, rerun the page."""
    try:
        yield
    except (RunError, Unreadable, OSError):
        for run in runs:
            present(run)
        raise


def _write() -> None:
    st.session_state.pop(_GONE, None)
    st.query_params["run"] = st.session_state[KEY]


def _default(runs: dict[str, Run]) -> str:
    last = st.session_state.get(_LAST)
    if last in runs:
        return str(last)
    own = {name: run for name, run in runs.items() if not run.is_example} or runs
    return next((name for name, run in own.items() if run.embeddings()), next(iter(own)))


def _label(run: Run) -> str:
    """Return the label of a run as plain text, starting with result or state because long labels are truncated."""
    try:
        state, name = run.state(), titles.label(run)
    except RunError:  # deleted at this moment
        return run.id
    if state.state != "done":
        return f"{run.status()} · {name}"
    result = _RESULT.search(state.message)
    return f"MAP@R {result[1]} · {name}" if result else name
