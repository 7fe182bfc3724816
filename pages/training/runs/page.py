"""Runs: what trains, how it goes, what came of it; everything is read from the run directories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dmlcore.experiments import example
from dmlcore.jobs import device_queue, launch
from dmlcore.jobs.device_queue import Waiting
from dmlcore.storage import locks
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run, RunError, RunState, RunStore
from pages.shared.state import run_reader
from pages.shared.widgets import menu, results, run_picker, run_status, waiting
from pages.shared.widgets.error_boundary import alone
from pages.shared.widgets.run_status import literal
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.training.runs.comparison import page as comparison_view
from pages.training.runs.monitors import page as monitors_view

COLUMNS = ("status", "run", "steps", "inputs", "untrained", "trained", "started")
IDLE = 5.0  # seconds between two looks while nothing works


def board() -> None:
    """Table and details."""
    store = RunStore()
    total = store.count()
    shipped = example.find(store)
    runs = _listed(store, total) if total else [shipped] if shipped else []
    shown, unknown = run_status.chosen(store)
    if not total:
        _nothing_yet(store)
    elif unknown:
        st.warning("The address names a run that is not here. Choose one from the table.", icon=":material/link_off:")
    if total and runs:
        _table(runs, shown)
        if not shown:
            st.caption("Nothing is selected: below is the newest run.")
    if shown or runs:
        _details(store, shown, runs)
    _way_to_example(store, shipped, shown or runs[:1])
    for run_id, reason in store.unreadable():
        with st.expander(f"Unreadable: {run_id}", icon=":material/warning:"):
            st.text(words.plain(reason))


def _details(store: RunStore, shown: Sequence[Run], runs: Sequence[Run]) -> None:
    """What is known of the chosen runs, or of the first of the list."""
    if len(shown) == 1:
        run_picker.remember(shown[0])
    waiting = device_queue.waiting(store)
    for run in shown or runs[:1]:
        with alone("This run"):
            _card(run, waiting.get(run.id), single=len(shown) < 2)
    with alone("The curves"):
        results.show(shown or runs[:1])
    if len(shown) < 2:
        with alone("More of this run"):
            monitors_view.show((shown or runs)[0], (shown or runs)[0].status())
    with alone("The comparison"):
        comparison_view.show(shown)


def _way_to_example(store: RunStore, shipped: Run | None, shown: Sequence[Run]) -> None:
    """The example stands in no table: a link to it, or the button that brings it back once it was deleted."""
    if shipped and shipped.id not in [run.id for run in shown]:
        address = {"run": shipped.id}
        menu.link("runs", "The example that came along", address, icon="school")
    elif example.was_removed(store) and st.button(
        "Bring back the example", key="bring-back", type="tertiary", icon=":material/undo:"
    ):
        example.bring_back(store)
        st.rerun()


def _listed(store: RunStore, total: int) -> Sequence[Run]:
    """The runs of the table: the newest or, where there are more than it shows, the newest that the words name."""
    if total <= run_status.MOST_LISTED:
        return store.newest(run_status.MOST_LISTED)
    words = st.text_input(
        "Find",
        key="find",
        bind="query-params",
        max_chars=100,
        icon=":material/search:",
        width=360,
        placeholder="loss, data, network, name or id",
    )
    runs = store.find(titles.searched(words), run_status.MOST_LISTED) if words else store.newest(run_status.MOST_LISTED)
    if not runs:
        st.info("No run has all of these words.", icon=":material/search_off:")
    elif words:
        shown = f"the newest {run_status.MOST_LISTED}" if len(runs) == run_status.MOST_LISTED else f"{len(runs)}"
        st.caption(f"Of {total:,} runs, {shown} with these words.")
    else:
        st.caption(f"The newest {run_status.MOST_LISTED} of {total:,} runs.")
    return runs


def _nothing_yet(store: RunStore) -> None:
    with st.container(border=True):
        st.markdown("**No runs yet.** Train something: with the settings as they are it takes some fifteen seconds.")
        menu.link("train", "Go to Train")
        st.caption("Runs are kept in")
        st.code(str(store.root), language=None)


def _table(runs: Sequence[Run], shown: Sequence[Run]) -> None:
    """One row per run, newest first; rows are selected by click, and the address keeps the selection."""
    ids = [run.id for run in runs]
    selected = [ids.index(run.id) for run in shown if run.id in ids]
    # Selections are row numbers: another list, or an address that changed from outside, needs another widget.
    seen = st.session_state.setdefault("runs-seen", {"table": 0, "ids": None, "run": None})
    if seen["ids"] != ids or seen["run"] != st.query_params.get("run"):
        seen |= {"table": seen["table"] + 1, "ids": ids, "run": st.query_params.get("run")}
    key = f"runs-table-{seen['table']}"
    st.dataframe(
        _columns(runs),
        key=key,
        hide_index=True,
        placeholder="–",
        selection_mode="multi-row",
        selection_default={"selection": {"rows": selected}},
        on_select=lambda: _select(key, ids),
        column_config={
            "status": st.column_config.TextColumn(width=90),
            "steps": st.column_config.ProgressColumn(min_value=0, max_value=100, format="%d %%", width=90),
            "inputs": st.column_config.NumberColumn("MAP@R raw", format="%.1f %%", help="test split, the inputs alone"),
            "untrained": st.column_config.NumberColumn("before", format="%.1f %%", help="test MAP@R, untrained"),
            "trained": st.column_config.NumberColumn("after", format="%.1f %%", help="test MAP@R, trained"),
            "started": st.column_config.DatetimeColumn(format="distance"),
        },
    )
    st.caption(f"Select up to {run_status.MOST_CHOSEN} rows to compare; the address of this page keeps the selection.")


def _columns(runs: Sequence[Run]) -> dict[str, list[Any]]:
    rows = [_row(run) for run in runs]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def _row(run: Run) -> dict[str, Any]:
    """One line of the table; what cannot be read of a run is left out of it."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS) | {"status": run.status(), "run": run.id}
    with suppress(RunError):
        state = run.state()
        row |= {"run": titles.label(run), "steps": 100 * state.step / max(1, state.steps)}
        row |= {"started": datetime.fromtimestamp(state.created, UTC)}
        for subject, score in run_reader.reader().scores(run).items():
            if subject in row and score["map_at_r"] is not None:
                row[subject] = 100 * score["map_at_r"]
    return row


def _select(key: str, ids: Sequence[str]) -> None:
    rows = st.session_state[key].selection.rows[: run_status.MOST_CHOSEN]
    if rows:
        st.query_params["run"] = ",".join(ids[row] for row in rows)
    else:
        st.query_params.pop("run", None)
    st.session_state["runs-seen"]["run"] = st.query_params.get("run")


def _card(run: Run, waits: Waiting | None, *, single: bool) -> None:
    """Name, status, progress, buttons and log of one run; smaller when it shares the page."""
    status, state = run.status(), run.state()
    with st.container(border=True, key=f"run-{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            literal(titles.label(run), "h3")
            run_status.badge(status)
            if run.is_example:
                st.caption("It came with the lab; no ranking counts it.", width="content")
        _progress(run, status, state, waits)
        if refused := st.session_state.pop(f"refused-{run.id}", None):
            st.error(refused)
        with st.container(horizontal=True, vertical_alignment="center"):
            if waits and st.button("Start now", key=f"hurry-{run.id}", icon=":material/fast_forward:", help=HURRY):
                _ask(run, device_queue.hurry)
            _buttons(run, status)
            if not single:
                with st.popover("Log", icon=":material/notes:", key=f"log-{run.id}"):
                    waiting.log(run)
        if single:
            with st.expander("Log", icon=":material/notes:"):
                waiting.log(run)


def _progress(run: Run, status: str, state: RunState, waits: Waiting | None) -> None:
    where = f"step {state.step:,} of {state.steps:,}"
    done = min(1.0, state.step / max(1, state.steps))
    on = f" · {state.device}" if state.device else ""
    if status == "running":
        asked = "stopping after the current step" if run.cancel_requested() else state.message
        left = run_reader.time_left(state, run_reader.reader().history(run).pace)
        st.progress(done, text=f"{where} · {left} · {asked}{on}")
    elif status == "queued":
        st.progress(done, text=f"{where} · {_place(waits)}")
    elif status == "lost":
        st.progress(done, text=f"{where}, then its process ended without a word")
        st.warning("Lost, not gone: all up to the last checkpoint is kept. Resume goes on from there.")
    elif status == "failed":
        st.error("Failed. The reason:", icon=":material/error:")
        st.code(words.plain(state.message), language=None, wrap_lines=True)
    else:
        st.text(f"{state.message} · {run_reader.took(run, state, where)}{on}")


def _place(waits: Waiting | None) -> str:
    """Where in the queue."""
    if waits is None:
        return "waiting for its process to start"
    device = {"cpu": "the CPU", "cuda": "a GPU"}[waits.device]
    place = "next in the queue" if waits.ahead == 0 else f"number {waits.ahead + 1} in the queue"
    others = f"; at work: {', '.join(map(words.plain, waits.at_work))}" if waits.at_work else ""
    return f"{place} for {device}{others}"


def _buttons(run: Run, status: str) -> None:
    if status in ("queued", "running"):
        asked = run.cancel_requested()
        if st.button("Cancel", key=f"cancel-{run.id}", icon=":material/stop:", disabled=asked, help=CANCEL):
            _ask(run, launch.cancel)
    elif status != "done" and st.button(
        "Resume", key=f"resume-{run.id}", icon=":material/resume:", type="primary", help=RESUME
    ):
        _ask(run, launch.resume)
    link = {"run": run.id}
    if run.embeddings():
        menu.link("gallery", "Gallery", link)
        menu.link("explore", "Map", link)
    if (run.path / LAST).exists():
        menu.link("fork", "Fork", link)
    menu.link("train", "Train another like it", {"like": run.id}, icon="tune")
    if status not in ("queued", "running"):
        with st.popover("Delete", icon=":material/delete:", key=f"delete-{run.id}"):
            st.markdown(GONE_EXAMPLE if run.is_example else GONE)
            if st.button("Delete for good", key=f"delete-for-good-{run.id}", type="primary"):
                _ask(run, _delete)


def _delete(run: Run) -> None:
    run.delete()
    left = [name for name in st.query_params.get("run", "").split(",") if name not in ("", run.id)]
    st.query_params.from_dict({"run": ",".join(left)} if left else {})


GONE = "This removes the run with its checkpoints and scores. There is no way back."
GONE_EXAMPLE = "This removes the example, with what was made of it here. This page can bring it back as it came."
HURRY = "Begins at once, beside the runs at work; all of them get slower."
CANCEL = "Ends after the current step and keeps everything; a resume goes on from there."
RESUME = "Goes on from the last checkpoint, exactly as if nothing had happened."


def _ask(run: Run, action: Callable[[Run], object]) -> None:
    """Do it; a refusal is shown on the card at the next look."""
    try:
        action(run)
    except (launch.JobError, locks.Busy, RunError, OSError) as error:
        st.session_state[f"refused-{run.id}"] = words.plain(error)
    st.rerun()


st.title("Runs", anchor=False)
st.markdown(
    "Every training run is a process of its own: close the browser, restart the server, and it goes on. Watch it here, "
    "cancel or resume it, and lay several over each other."
)


def busy() -> bool:
    """Whether anything works among the newest runs."""
    return run_reader.busy(RunStore().newest(run_status.MOST_LISTED))


waiting.live(board, busy, waiting.LOOK if busy() else IDLE)
