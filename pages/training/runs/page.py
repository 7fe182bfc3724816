"""Runs page: all runs, their progress and results, read from the run directories."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dmlcore.experiments import example
from dmlcore.jobs import device_queue
from dmlcore.storage.runs import Run, RunStore
from pages.shared.state import run_reader
from pages.shared.widgets import menu, results, run_picker, run_status, waiting
from pages.shared.widgets.error_boundary import alone
from pages.shared.words import sentences as words
from pages.training.runs import card as card_view
from pages.training.runs import comparison as comparison_view
from pages.training.runs import importance as importance_view
from pages.training.runs import monitors as monitors_view
from pages.training.runs import watch as watch_view
from pages.training.runs.table import panel as table_view

IDLE = 5.0  # seconds between two updates while no run is active


def board() -> None:
    """Draw the table of runs and, below it, the selected runs or another view of the runs in the table."""
    store = RunStore()
    total = store.count()
    shipped = example.find(store)
    shown, unknown = run_status.chosen(store)
    runs: Sequence[Run] = [shipped] if shipped else []
    if not total:
        _nothing_yet(store)
    else:
        if unknown:
            st.warning(
                "The link names a run that is not in this store. Choose one from the table.", icon=":material/link_off:"
            )
        runs, made = table_view.show(store, total, shown)
        if len(runs) > 1 and table_view.view().below == "mattered":
            with alone("The importance of settings"):
                importance_view.show(runs)
            return
        if made and not shown:
            with alone("The curves"):
                results.show_groups([(group.legend, group.newest) for group in made[: run_status.MOST_CHOSEN]])
            return
    if shown or runs:
        _details(store, shown, runs)
    _way_to_example(store, shipped, shown or runs[:1])
    for run_id, reason in store.unreadable():
        with st.expander(f"Unreadable: {run_id}", icon=":material/warning:"):
            st.text(words.plain(reason))


def _details(store: RunStore, shown: Sequence[Run], runs: Sequence[Run]) -> None:
    """Show the card of each selected run in `shown`, or of the first run in the table if none is selected.

    Several selected runs are also compared, above their cards.
    """
    waiting = device_queue.waiting_runs(store)
    if len(shown) > 1:
        with alone("The curves"):
            results.show(shown, table=len(shown) > comparison_view.MOST)
        with alone("The comparison"):
            comparison_view.show(shown)
        st.subheader("Individual runs", anchor=False)
        for run in shown:
            with alone("This run"):
                card_view.show(run, waiting.get(run.id))
        return
    run = (*shown, *runs)[0]
    if shown:
        run_picker.remember(run)
    with alone("This run"):
        card_view.show(run, waiting.get(run.id))
    with alone("The map"):
        watch_view.show(run, run.status())
    with alone("The curves"):
        results.show([run])
    with alone("The diagnostics"):
        monitors_view.show(run, run.status())


def _way_to_example(store: RunStore, shipped: Run | None, shown: Sequence[Run]) -> None:
    """Link to the example run, which the table omits, unless it is already shown; offer to restore it if deleted."""
    if shipped and shipped.id not in [run.id for run in shown]:
        address = {"run": shipped.id}
        menu.link("runs", "The example run", address, icon="school")
    elif example.was_removed(store) and st.button(
        "Restore the example run", key="bring-back", type="tertiary", icon=":material/undo:"
    ):
        example.restore(store)
        st.rerun()


def _nothing_yet(store: RunStore) -> None:
    with st.container(border=True):
        st.markdown("**No runs yet.** A first training run takes less than a minute on an idle machine.")
        menu.link("data", "Go to New run")
        st.caption("Runs are stored in:")
        st.code(str(store.root), language=None)


with st.container(horizontal=True, vertical_alignment="center"):
    st.title("Runs", anchor=False, width="content")
    st.markdown(
        "Select runs to compare. Training continues when you close the browser or restart the server.",
        width="content",
    )


def busy() -> bool:
    """Return True if one of the newest runs is queued or running."""
    return run_reader.busy(RunStore().newest(run_status.MOST_LISTED))


followed = busy() and table_view.view().below == "runs"
waiting.live(board, busy, waiting.LOOK if followed else IDLE)
