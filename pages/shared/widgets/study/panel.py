"""A study on a page: where it stands, start, continue and cancel, and what its runs reached."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.experiments import studies
from dmlcore.experiments.studies import PRETRAINING, Measured, StudyRequest, StudyResults, StudyRun
from dmlcore.figures import baselines
from dmlcore.figures import studies as figures
from dmlcore.jobs.launch import JobError
from dmlcore.significance import verdicts
from dmlcore.significance.verdicts import CLEARLY
from dmlcore.spec import SpecError
from dmlcore.storage import locks
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.shared.widgets.study import trials as study_trials
from pages.shared.words import sentences as words
from pages.shared.words.numbers import duration, percent

LOOK = 1.0  # seconds between two looks while it runs
HERE, SHIPPED = "on this machine", "as shipped"
Columns = Mapping[str, str]  # score -> title, in order
IN_PERCENT = {
    *("map_at_r", "recall_at_1", "foreground", "zero_shot.l2", "zero_shot.cosine"),
    *("overlap.shared_weight", "overlap.bound_holds"),
}


@dataclass(frozen=True)
class Layout:
    """What a page says about a study beside its numbers."""

    columns: Columns
    scores: str  # under the table
    curves: str  # under the curves
    examples: Callable[[], str] | None = None  # HTML shown while nothing is trained


def seed_curves(results: Sequence[Measured]) -> list[figures.SeedCurve]:
    """Validation MAP@R of each seed of the variants, of its best fold where it has folds; the pretraining left out."""
    return [
        figures.SeedCurve(r.variant, r.seed, r.validation.step, r.validation.map_at_r)
        for r in studies.best_folds(results)
        if r.variant != PRETRAINING and r.validation.step
    ]


def show(name: str, layout: Layout, head: DeltaGenerator | None = None) -> None:
    """Progress and buttons of a study, then its scores and training curves. head: where the answer stands once more."""
    study = studies.read(name)
    st.subheader(study.title, anchor=False)
    said = st.container()  # the verdict comes first, though it is read off last
    st.markdown(study.question)
    progress(name, layout.examples)
    found = results(name)
    if not found:
        return
    with said:
        answer = verdict(name, found)
    if head and answer:
        head.markdown(f"**{answer}**")
    _scores(name, found, layout.columns)
    st.caption(f"Mean and standard deviation over the {study.repeats}. {layout.scores}")
    if curves := seed_curves(found):
        level = studies.levels(found, "validation.map_at_r").get("inputs", {})
        level.pop(study.ceiling, None)
        inputs = {"inputs": statistics.fmean(level.values())} if level else {}
        spec, columns = figures.curves(curves, ceiling=study.ceiling or None, against=inputs)
        best = "; ".join(
            f"{v}: {percent(figures.ceiling_of(curves, v))}" for v in dict.fromkeys(c.variant for c in curves)
        )
        words = f"Validation MAP@R over the steps. Best, mean over the {study.repeats}: {best}"
        st.vega_lite_chart(columns, spec, width="stretch", key=f"curves-{name}", alt=words)
        st.caption(
            f"Validation MAP@R; step 0 is the network before its first step. Thin: one {study.repeats[:-1]} each; "
            f"thick: their mean. {layout.curves}"
        )


def verdict(name: str, found: Sequence[Measured]) -> str:
    """What the scores of a study say beside their baselines and their noise, in words; returns the first sentence."""
    study = studies.read(name)
    said = studies.judge(study, found)
    if said.headline:
        with st.container(border=True, key=f"verdict-{name}"):
            st.markdown(f"**{said.headline}**")
            st.markdown("\n".join(f"- {sentence}" for sentence in said.more))
            st.caption(CLEARLY.replace("seeds", study.repeats))
    return said.headline


def bars(name: str, found: Sequence[Measured]) -> None:
    """The chart of the score that a study judges by: its variants from best to worst, their baselines through them."""
    study, found = studies.read(name), studies.best_folds(found)
    title = studies.MEASURES.get(study.judged, study.judged)
    values = [
        figures.Bar(
            variant, [r.scores[study.judged] for r in found if r.variant == variant and study.judged in r.scores]
        )
        for variant in dict.fromkeys(r.variant for r in found if r.variant != PRETRAINING)
    ]
    levels = studies.levels(found, study.judged)
    top = None if study.rotate else studies.top(found, study.judged)  # folds are no independent trainings
    spec, columns = figures.bars(values, title=title, against=levels, top=top, over=study.repeats)
    words = "; ".join(f"{n}: {label} %" for n, label in zip(columns["variant"], columns["label"], strict=True))
    beside = baselines.words(levels)
    st.vega_lite_chart(
        columns, spec, width="stretch", key=f"bars-{name}", alt=f"{title}. {words}. Baselines: {beside or 'none'}"
    )
    full = "" if top is None else "Full colour: the best and all that cannot be told from it; pale: clearly behind. "
    st.caption(
        f"{full}Bars: mean over the {study.repeats}; rules: plus and minus one standard deviation; points: the "
        f"{study.repeats}. Lines through the bars: what the same samples score without training."
    )


def poolings(name: str) -> None:
    """The bar chart of all poolings, and the study behind it."""
    study = studies.read(name)
    st.subheader("All poolings", anchor=False)
    said = st.container()
    st.markdown(study.question)
    progress(name)
    found = [r for r in results(name) if r.variant != PRETRAINING]
    if found:
        with said:
            verdict(name, found)
        bars(name, found)
    for remark in study.remarks:
        st.caption(remark)


def about(name: str) -> None:
    """How much was tried, what the source says, and what is decided here."""
    study = studies.read(name)
    study_trials.show_ledger(name)
    with st.expander("About this study", icon=":material/menu_book:"):
        st.markdown(f"**The source reports:** {study.claim}")
        st.markdown("\n".join(f"- {remark}" for remark in study.remarks))
        st.caption(study.source)
        st.caption("The same from the command line; the table, and the results for machines without runs:")
        st.code(f"python -m dmlcore study {name}\npython -m dmlcore study {name} --table --write", language="bash")


def requested(name: str, store: RunStore) -> StudyRequest:
    """What was last asked of this study in the store, or all of it."""
    state = studies.conduct_of(name, store).state()
    if state:
        try:
            if state.request.entries():
                return state.request
        except SpecError:  # of another release
            pass
    return StudyRequest(study=name)


def progress(name: str, examples: Callable[[], str] | None = None) -> None:
    """Where the study stands and its buttons, kept up to date."""
    busy = studies.conduct_of(name, RunStore()).busy()
    st.fragment(_status, run_every=LOOK if busy else None)(name, busy, _done(name), examples)


def _status(name: str, was_busy: bool, were_done: int, examples: Callable[[], str] | None) -> None:
    """Where the study stands; the fragment that keeps itself up to date, and calls the page when there is more."""
    store = RunStore()
    place, request = studies.conduct_of(name, store), requested(name, store)
    if place.busy() != was_busy or _done(name) != were_done:
        st.rerun()
    entries = request.entries()
    found = studies.find(entries, store)
    done = [run is not None and _is_done(run) for run in found]
    with st.container(border=True, key=f"study-{name}"):
        if was_busy:
            _running(name, place, entries, found, done)
        else:
            _resting(name, place, request, done, examples)


def _running(
    name: str, place: studies.Conduct, entries: Sequence[StudyRun], found: Sequence[Run | None], done: Sequence[bool]
) -> None:
    state = place.state()
    current = next((i for i, run in enumerate(found) if state and run and run.id == state.run), None)
    part, words = 0.0, "about to start"
    if current is not None and (run := found[current]):
        try:
            at = run.state()
        except RunError:  # deleted
            return
        part = 0.0 if done[current] else at.step / max(1, at.steps)
        entry = entries[current]
        doing = at.message if at.state == "running" else run.status()
        words = (
            f"run {current + 1} of {len(entries)}: {entry.variant}, seed {entry.seed} · step {at.step:,} of "
            f"{at.steps:,} · {doing}"
        )
    asked = place.cancel_requested()
    st.progress(min(1.0, (sum(done) + part) / len(entries)), text="stopping after the current step" if asked else words)
    left = _minutes(name, state.request if state else StudyRequest(study=name), len(entries) - sum(done) - part)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Cancel",
            key=f"cancel-{name}",
            icon=":material/stop:",
            disabled=asked,
            on_click=studies.cancel,
            args=(place,),
            help="Ends after the current step and keeps everything; the study goes on from there.",
        )
        st.caption(f"{f'{left} left. ' if left else ''}You may close this page: it goes on.")


def _resting(
    name: str,
    place: studies.Conduct,
    request: StudyRequest,
    done: Sequence[bool],
    examples: Callable[[], str] | None,
) -> None:
    study, missing, status = studies.read(name), len(done) - sum(done), place.status()
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
            f"**Nothing of it has been trained here yet.** It is {len(done)} runs, one after another: "
            f"{len(study.variants)} variants"
            + (", each from a backbone pretrained on the training sub-classes alone," if study.pretraining else "")
            + f" with the same number of steps for {_seeds(request)}."
        )
    elif status == "incomplete" and (state := place.state()):
        st.warning("Some runs ended without a result. The reason of each is on the Runs page.")
        st.text(state.message)
    elif status == "lost":
        st.warning("The study was interrupted. Nothing is lost: it goes on from the last checkpoint.")
    if lacking:
        st.warning("It needs data that is not here.", icon=":material/folder_off:")
        st.text(lacking)
    minutes = _minutes(name, request, missing)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Start the study" if sum(done) == 0 else f"Continue: {missing} of {len(done)} runs are missing",
            key=f"start-{name}",
            type="primary",
            icon=":material/play_arrow:",
            disabled=bool(lacking),
            on_click=_start,
            args=(name, request),
        )
        st.caption(
            f"{f'{minutes}, in' if minutes else 'In'} a process of its own, which may be interrupted at any time."
        )


def _start(name: str, request: StudyRequest) -> None:
    """Start it; a refusal is shown at the next look."""
    try:
        studies.launch(request, RunStore())
    except (JobError, DataError, SpecError, locks.Busy, OSError) as error:
        st.session_state[f"refused-{name}"] = words.plain(error)


def _lacking(request: StudyRequest) -> str:
    """What is said of a data set that is not there; "" if all are."""
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
    """How long so many runs take, as far as the study says; "" where its settings are changed."""
    study = studies.read(name)
    whole = len(studies.expand(study))
    return "" if request.overrides else f"About {duration(60 * study.minutes * runs / whole)} on two quiet cores"


def _done(name: str) -> int:
    store = RunStore()
    return sum(run is not None and _is_done(run) for run in studies.find(requested(name, store).entries(), store))


def _is_done(run: Run) -> bool:
    try:
        return run.state().state == "done"
    except RunError:  # deleted this very moment
        return False


def results(name: str) -> list[Measured]:
    """Measured on this machine or, where nothing was, as shipped; a choice where there are both."""
    store = RunStore()
    request = requested(name, store)
    entries = request.entries()
    here = studies.measured(entries, store)
    try:
        shipped = studies.load(name)
    except SpecError as error:
        st.error("The shipped results cannot be read.")
        st.text(words.plain(error))
        shipped = None
    compared = [r for r in here if r.variant != PRETRAINING]
    source = HERE if compared else SHIPPED
    if compared and shipped:
        source = st.segmented_control("Measured", [HERE, SHIPPED], default=HERE, key=f"source-{name}") or HERE
    if source == SHIPPED:
        if shipped is None:
            return []
        _origin(shipped, StudyRequest(study=name))
        return list(shipped.runs)
    if compared:
        narrowed = f", with {', '.join(request.overrides)}" if request.overrides else ""
        runs = "1 run" if len(compared) == 1 else f"{len(compared)} runs"
        st.caption(f"Measured on this machine, {runs} so far{narrowed}.")
    return here


def _origin(results: StudyResults, request: StudyRequest) -> None:
    """Where, when and on what the shipped results were measured, and whether the study has changed since."""
    st.caption(f"Measured {results.written} with torch {results.torch} on {results.machine}, and shipped with the lab.")
    for name, notes in results.data.items():
        st.caption(f"{name}: {'; '.join(notes)}")
    known = {entry.digest() for entry in request.entries()}
    if not results.overrides and any(run.digest not in known for run in results.runs):
        st.warning("The study has changed since these results were measured.", icon=":material/update:")
    elif results.overrides:
        st.caption(f"Settings other than the study's: {', '.join(results.overrides)}")


def _scores(name: str, results: Sequence[Measured], columns: Columns) -> None:
    rows: list[dict[str, Any]] = []
    for row in [*studies.baseline_rows(results), *studies.table(results)]:
        shown = {"variant": row["variant"], "seeds": row["seeds"]}
        rows.append(shown | {title: _cell(key, *row[key]) for key, title in columns.items() if key in row})
    if rows:
        wide = {"variant": st.column_config.TextColumn(width=280)}
        st.dataframe(rows, hide_index=True, key=f"scores-{name}", width="content", placeholder="–", column_config=wide)


def _cell(score: str, mean: float, deviation: float | None) -> str:
    """Mean and deviation: shares in percent, other measures as they are."""
    if score in IN_PERCENT:
        return f"{verdicts.spread(mean, deviation)} %"
    return f"{mean:.3f}{'' if deviation is None else f' ± {deviation:.3f}'}"
