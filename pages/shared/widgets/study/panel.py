"""Panel of a study: progress, buttons to start, continue and cancel it, and the results of its runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.experiments import studies
from dmlcore.experiments.studies import PRETRAINING, StudyRequest, StudyState
from dmlcore.figures import studies as figures
from dmlcore.jobs.launch import JobError
from dmlcore.spec import SpecError
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.shared.state.cache import derived
from pages.shared.widgets import machines, waiting
from pages.shared.widgets.study import scores as study_scores
from pages.shared.widgets.study import trials as study_trials
from pages.shared.words import sentences as words
from pages.shared.words.numbers import duration, percent


@dataclass(frozen=True)
class Layout:
    """Texts and score columns with which the panel of a study is shown."""

    columns: study_scores.Columns
    scores: str  # text below the table
    curves: str  # text below the curves
    examples: Callable[[], str] | None = None  # HTML shown before any run is finished


def show(name: str, layout: Layout, head: DeltaGenerator | None = None) -> None:
    """Show progress and buttons of a study, then its scores and training curves.

    If the container `head` is given, the main result is also shown there.
    """
    study = studies.read(name)
    st.subheader(study.title, anchor=False)
    place = st.container()  # container at the top for the verdict, which is computed last
    st.markdown(study.question)
    progress(name, layout.examples)
    results = study_scores.results(name)
    if not results:
        return
    with place:
        answer = study_scores.verdict(name, results)
    if head and answer:
        head.markdown(f"**Study: {study.title}.** {answer}")
    study_scores.table(name, results, layout.columns)
    st.caption(f"Mean and standard deviation over the {study.repeats}. {layout.scores}")
    if curves := study_scores.seed_curves(results):
        level = dict(derived(studies.levels, results, "validation.map_at_r").get("inputs", {}))
        level.pop(study.ceiling, None)
        best = "; ".join(f"{v}: {percent(value)}" for v, value in derived(figures.ceilings, curves).items())
        words = f"Validation MAP@R over the steps. Best, mean over the {study.repeats}: {best}"
        caption = study_scores.draw_curves(name, curves, level, words, study.ceiling or None)
        st.caption(f"{caption} {layout.curves}")


def poolings(name: str) -> None:
    """Show a study that compares all poolings: progress, verdict and bar chart."""
    study = studies.read(name)
    st.subheader("All poolings", anchor=False)
    place = st.container()
    st.markdown(study.question)
    progress(name)
    results = [r for r in study_scores.results(name) if r.variant != PRETRAINING]
    if results:
        with place:
            study_scores.verdict(name, results)
        study_scores.bars(name, results)
    for remark in study.remarks:
        st.caption(remark)


def about(name: str) -> None:
    """Show the ledger of trials of a study (all configurations run to test its claim) and the study's description."""
    study_trials.show_ledger(name)
    with st.expander("About this study", icon=":material/menu_book:"):
        describe(name)


def describe(name: str) -> None:
    """Show the claim of the study's source, remarks on the setup, and the commands that repeat the study."""
    study = studies.read(name)
    st.markdown(f"**The source reports:** {study.claim}")
    st.markdown("\n".join(f"- {remark}" for remark in study.remarks))
    st.caption(study.source)
    st.caption("Run the study from the command line, then print its table and write its results:")
    st.code(f"python -m dmlcore study {name}\npython -m dmlcore study {name} --table --write", language="bash")


def progress(name: str, examples: Callable[[], str] | None = None) -> None:
    """Show the progress of a study and its buttons, updated while the study is running.

    `examples` returns HTML that is shown before any run is finished.
    """
    store = RunStore()
    place, request = studies.conduct_of(name, store), study_scores.requested(name, store)
    with st.container(border=True, key=f"study-{name}"):
        if not waiting.wait(
            place,
            name,
            lambda state: _running(name, state),
            cancel=lambda: studies.cancel(place),
            changes=lambda: sum(_done(request)),
        ):
            _resting(name, place, request, examples)


def _running(name: str, state: StudyState) -> tuple[float, str]:
    """Return the completed fraction of a study, and a text that names its current run and the time left."""
    share, words = (state.done or 0) / (state.total or 1), state.message or "about to start"
    with suppress(RunError):  # deleted
        run = RunStore().open(state.run)
        at = run.state()
        doing = at.message if at.state == "running" else run.status()
        share += at.step / max(1, at.steps) / (state.total or 1)
        words += f" · step {at.step:,} of {at.steps:,} · {doing}"
    left = _minutes(name, state.request, (1 - share) * (state.total or 0))
    return share, f"{words}{f' · {left} left' if left and state.total else ''}"


def _resting(
    name: str,
    place: studies.Conduct,
    request: StudyRequest,
    examples: Callable[[], str] | None,
) -> None:
    study, done = studies.read(name), _done(request)
    missing = len(done) - sum(done)
    if refused := st.session_state.pop(f"refused-{name}", None):
        st.error(refused)
    if not missing:
        st.markdown(f":material/check_circle: All {len(done)} runs are done.")
        return
    lacking = _lacking(request)
    if sum(done) == 0:
        if examples and not lacking:
            st.html(examples())
        st.markdown(
            f"**Not trained here yet.** The study takes {len(done)} runs: {len(study.variants)} variants"
            + (", each from a backbone pretrained on the training sub-classes," if study.pretraining else "")
            + (f", each with {len(study.variants[0].choose)} candidates," if study.variants[0].choose else "")
            + f" with {_seeds(request)}."
        )
    waiting.ended(place)
    if lacking:
        st.warning("This study needs data that is not installed.", icon=":material/folder_off:")
        st.text(lacking)
    minutes = _minutes(name, request, missing)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Start the study" if sum(done) == 0 else f"Continue the study ({missing} of {len(done)} runs missing)",
            key=f"start-{name}",
            type="primary",
            icon=":material/play_arrow:",
            disabled=bool(lacking),
            on_click=_start,
            args=(name, request),
        )
        st.caption(f"{f'{minutes}. ' if minutes else ''}Runs in the background; you can cancel and resume it.")


def _start(name: str, request: StudyRequest) -> None:
    """Start the study; if this fails, store the error message, which the next rerun shows."""
    try:
        studies.launch(request, RunStore(), machines.chosen())
    except (JobError, DataError, SpecError, OSError) as error:
        st.session_state[f"refused-{name}"] = words.plain(error)


def _lacking(request: StudyRequest) -> str:
    """Return the error message for the first data set that is not installed; "" if all are installed."""
    try:
        for name, root in {(e.spec.data.name, e.spec.data.root): None for e in request.entries()}:
            if data.available(name, root) is None:
                data.locate(name, root)
    except DataError as error:
        return words.plain(error)
    return ""


def _seeds(request: StudyRequest) -> str:
    seeds = sorted({entry.seed for entry in request.entries()})
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"


def _minutes(name: str, request: StudyRequest, runs: float) -> str:
    """Return the estimated duration of `runs` runs as a phrase.

    Returns "" if the request overrides settings, because the estimate applies only to the study's own settings.
    """
    study = studies.read(name)
    whole = studies.candidates.count_runs(StudyRequest(study=name).entries())
    return "" if request.overrides else f"About {duration(60 * study.minutes * runs / whole)} on two idle cores"


def _done(request: StudyRequest) -> list[bool]:
    """Return a list with one boolean per run of the request, True if the run is done.

    Runs that depend on a choice count once for all candidates, of which only the chosen one is trained.
    """
    entries, done = request.entries(), dict[tuple[str, int] | int, bool]()
    for number, (entry, run) in enumerate(zip(entries, studies.find(entries, RunStore()), strict=True)):
        key = (entry.variant, entry.seed) if entry.if_chosen else number
        done[key] = done.get(key, False) or (run is not None and _is_done(run))
    return list(done.values())


def _is_done(run: Run) -> bool:
    try:
        return run.state().state == "done"
    except RunError:  # deleted at this moment
        return False
