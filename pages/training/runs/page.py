"""Runs: what trains, how it goes, what came of it; everything is read from the run directories."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dmlcore.experiments import example
from dmlcore.jobs import device_queue
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.shared.state import run_reader
from pages.shared.widgets import menu, results, run_picker, run_status, waiting
from pages.shared.widgets.error_boundary import alone
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.training.runs.card import page as card_view
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
            card_view.show(run, waiting.get(run.id), single=len(shown) < 2)
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


st.title("Runs", anchor=False)
st.markdown(
    "Every training run is a process of its own: close the browser, restart the server, and it goes on. Watch it here, "
    "cancel or resume it, and lay several over each other."
)


def busy() -> bool:
    """Whether anything works among the newest runs."""
    return run_reader.busy(RunStore().newest(run_status.MOST_LISTED))


waiting.live(board, busy, waiting.LOOK if busy() else IDLE)
