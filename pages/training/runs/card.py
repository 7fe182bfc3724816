"""Card of a run: name, status, progress, actions, note and log."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import streamlit as st

from dmlcore.inspection import notes, tags_and_views
from dmlcore.inspection.tags_and_views import NotKept
from dmlcore.jobs import device_queue, launch
from dmlcore.jobs.device_queue import QueuePosition
from dmlcore.storage import locks
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run, RunError, RunState
from pages.shared.state import run_reader, time_left
from pages.shared.widgets import machines, menu, run_status, waiting
from pages.shared.widgets.run_status import literal
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.training.runs.table import panel as table_view

GONE = "This removes the run with its checkpoints and scores. It cannot be undone."
GONE_EXAMPLE = "This removes the example run and all results derived from it. This page can restore the original."
HURRY = "Starts now, in parallel with the active runs; all of them slow down."
CANCEL = "Stops after the current step and keeps everything; Resume continues from there."
CANCEL_OUTSIDE = "Asks the program that trains this run to stop; it decides when."
BASELINE = "The table then shows the difference of each run from this one, in score and settings."
# statuses shown with a progress bar or an error instead of a one-line result
UNDER_WAY = ("queued", "running", "lost", "failed")
RESUME = "Continues from the last checkpoint with identical results."


def show(run: Run, waits: QueuePosition | None) -> None:
    """Show name, status, progress, buttons and log of one run; `waits` is its position in the device queue, if any."""
    status, state = run.status(), run.state()
    with st.container(border=True, key=f"run-{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            literal(titles.label(run), "h3")
            if status not in UNDER_WAY:
                took = "" if run.is_embedding_set else f" · {time_left.took(run, state, _where(state))}{_on(state)}"
                st.text(state.message + took, width="content")
            if run.embeddings():
                menu.inspect(run.id)
            run_status.badge(status)
            if run.is_example:
                st.caption("Example run (not used in comparisons)", width="content")
        if status in UNDER_WAY:
            _progress(run, status, state, waits)
        if not run.embeddings():
            _when_to_inspect(run, status, state)
        _show_note(run)
        if refused := st.session_state.pop(f"refused-{run.id}", None):
            st.error(refused)
        with st.container(horizontal=True, vertical_alignment="center"):
            if waits and st.button("Start now", key=f"hurry-{run.id}", icon=":material/fast_forward:", help=HURRY):
                _ask(run, device_queue.start_now)
            _buttons(run, status)
            with st.popover("Log", type="tertiary", icon=":material/notes:", key=f"log-{run.id}"):
                waiting.log(run)


def _progress(run: Run, status: str, state: RunState, waits: QueuePosition | None) -> None:
    where, on = _where(state), _on(state)
    done = min(1.0, state.step / max(1, state.steps))
    if status == "running":
        asked = "stopping after the current step" if run.cancel_requested() else state.message
        left = time_left.time_left(state, run_reader.reader().history(run).pace)
        st.progress(done, text=f"{where} · {left} · {asked}{on}")
    elif status == "queued":
        st.progress(done, text=f"{where} · {state.message if state.backend and state.message else _place(waits)}")
    elif status == "lost":
        st.progress(done, text=f"{where}, then its process ended unexpectedly")
        outside = "The program that trained this run has ended. All logged values are kept."
        kept = "Everything up to the last checkpoint is kept. Resume continues from there."
        st.warning(outside if run.is_embedding_set else kept)
    else:
        st.error("The run failed:", icon=":material/error:")
        st.code(words.plain(state.message), language=None, wrap_lines=True)


def _when_to_inspect(run: Run, status: str, state: RunState) -> None:
    """Explain when the map and neighbours of a run become available, or link to evaluating its last checkpoint."""
    saved = (run.path / LAST).exists()
    if status in ("queued", "running"):
        early = " To see them earlier, cancel the run and evaluate its last checkpoint." if saved else ""
        at = "when its program finishes" if run.is_embedding_set else f"after the final test, at step {state.steps:,}"
        st.caption(f"Explore and Neighbours open {at}.{early}")
    elif saved:
        menu.link("explore", "Evaluate the last checkpoint for the map and neighbours", {"run": run.id})


def _where(state: RunState) -> str:
    return f"step {state.step:,} of {state.steps:,}"


def _on(state: RunState) -> str:
    where = f" on {state.host}" if state.backend and state.host else ""
    return f" · {state.device}{where}" if state.device else ""


def _resume(run: Run) -> None:
    """Resume a run on the machine selected in the sidebar, or on its previous machine if the sidebar offers no choice.

    If the previous machine is not available, a message on the card explains why the run continues elsewhere.
    """
    if refused := launch.resume(run, machines.chosen() if machines.any_other() else None):
        st.session_state[f"refused-{run.id}"] = words.plain(f"{run.id} continues {refused}")


def _place(waits: QueuePosition | None) -> str:
    """Return a run's position in the device queue as a phrase; None means that it waits for its process to start."""
    if waits is None:
        return "waiting for its process to start"
    device = {"cpu": "the CPU", "cuda": "a GPU"}[waits.device]
    place = "next in the queue" if waits.ahead == 0 else f"number {waits.ahead + 1} in the queue"
    others = f"; running: {', '.join(map(words.plain, waits.running))}" if waits.running else ""
    return f"{place} for {device}{others}"


def _buttons(run: Run, status: str) -> None:
    if status in ("queued", "running"):
        asked = run.cancel_requested()
        help_text = CANCEL_OUTSIDE if run.is_embedding_set else CANCEL
        if st.button("Cancel", key=f"cancel-{run.id}", icon=":material/stop:", disabled=asked, help=help_text):
            _ask(run, launch.cancel)
    elif (
        status != "done"
        and not run.is_embedding_set
        and st.button("Resume", key=f"resume-{run.id}", icon=":material/resume:", type="primary", help=RESUME)
    ):
        _ask(run, _resume)
    if (run.path / LAST).exists():
        menu.link("fork", "Continue with a change", {"run": run.id})
    again = "Train on these embeddings" if run.is_embedding_set else "New run with these settings"
    if run.embeddings() or not run.is_embedding_set:
        menu.link("settings", again, {"like": run.id}, icon="tune")
    if table_view.view().baseline != run.id:
        st.button(
            "Pin as baseline",
            key=f"pin-{run.id}",
            icon=":material/keep:",
            type="tertiary",
            on_click=table_view.change,
            kwargs={"baseline": run.id},
            help=BASELINE,
        )
    _note_button(run)
    if status not in ("queued", "running"):
        with st.popover("Delete", type="tertiary", icon=":material/delete:", key=f"delete-{run.id}"):
            st.markdown(GONE_EXAMPLE if run.is_example else GONE)
            if st.button("Delete permanently", key=f"delete-for-good-{run.id}", type="primary"):
                _ask(run, _delete)


def _delete(run: Run) -> None:
    run.delete()
    table_view.choose([name for name in st.query_params.get("run", "").split(",") if name not in ("", run.id)])
    if table_view.view().baseline == run.id:
        table_view.change(baseline="")


def _ask(run: Run, action: Callable[[Run], object]) -> None:
    """Call `action` with a run and rerun the page; an error is shown on the run's card after the rerun."""
    try:
        action(run)
    except (launch.JobError, locks.Busy, RunError, OSError) as error:
        st.session_state[f"refused-{run.id}"] = words.plain(error)
    st.rerun()


def _show_note(run: Run) -> None:
    """Show the note on a run as plain text, if there is one."""
    try:
        if text := notes.read(run):
            st.html(f"<p style='margin:0;white-space:pre-wrap;overflow-wrap:anywhere'><bdi>{escape(text)}</bdi></p>")
    except NotKept as error:
        st.error(str(error), icon=":material/broken_image:")


def _note_button(run: Run) -> None:
    """Show the button that opens the editor for the note on a run."""
    try:
        before, why = notes.read(run), tags_and_views.read_only_reason(run)
    except NotKept as error:
        before, why = "", str(error)
    key = f"note-{run.id}"
    base = _find_base_text(key, before)
    with st.popover(
        "Note",
        type="tertiary",
        icon=":material/edit_note:",
        key=f"{key}-open",
        disabled=bool(why),
        help=why or None,
    ):
        st.text_area("Note on this run", base, key=key, max_chars=notes.LONGEST, height=160)
        if base != before:
            st.warning("The note was changed elsewhere. The card shows the new version.")
            st.button("Overwrite note", key=f"{key}-over", on_click=_save_note, args=(run, before))
        else:
            st.button("Save note", key=f"{key}-keep", type="primary", on_click=_save_note, args=(run, base))


def _find_base_text(key: str, before: str) -> str:
    """Return the version of the note that the text in the editor was edited from.

    If the visitor has not edited the text, it is first replaced with `before`, the stored note.
    """
    base: str = st.session_state.setdefault(f"{key}-begun", before)
    typed = st.session_state.get(key)
    if base == before or typed not in (None, base):
        return base
    st.session_state[f"{key}-begun"] = before
    if typed is not None:
        st.session_state[key] = before
    return before


def _save_note(run: Run, before: str) -> None:
    key = f"note-{run.id}"
    try:
        st.session_state[f"{key}-begun"] = notes.keep(run, st.session_state[key], before=before)
    except NotKept as error:
        st.toast(str(error), icon=":material/error:")
