"""Results of a study and its baselines, shown as a verdict, bars, curves and a table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.experiments import studies
from dmlcore.experiments.studies import PRETRAINING, Measured, Study, StudyRequest, StudyResults
from dmlcore.figures import baselines, vega_lite
from dmlcore.figures import studies as figures
from dmlcore.significance import verdicts
from dmlcore.significance.verdicts import CLEARLY
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore
from pages.shared.state.cache import derived
from pages.shared.widgets.chart import chart
from pages.shared.widgets.drawn import drawn
from pages.shared.words import sentences as words

HERE, SHIPPED = "on this machine", "as shipped"
Columns = Mapping[str, str]  # score name -> column title, in display order
IN_PERCENT = {
    *("map_at_r", "recall_at_1", "foreground", "zero_shot.l2", "zero_shot.cosine"),
    *("overlap.shared_weight", "overlap.bound_holds"),
}


def requested(name: str, store: RunStore) -> StudyRequest:
    """Return the last request stored for the study `name`, or a request for all of its runs."""
    state = studies.conduct_of(name, store).state()
    if state:
        try:
            if state.request.entries():
                return state.request
        except SpecError:  # the request was written by another release
            pass
    return StudyRequest(study=name)


def results(name: str, notes: DeltaGenerator | None = None) -> list[Measured]:
    """Return the results of the study measured on this machine or those that ship with the library.

    If both exist, the visitor chooses. `notes` is the container for notes on the origin of the results; by default they
    are shown in the current container.
    """
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
    source, notes = HERE if compared else SHIPPED, notes or st.container()
    if compared and shipped:
        source = st.segmented_control("Measured", [HERE, SHIPPED], default=HERE, key=f"source-{name}") or HERE
    if source == SHIPPED:
        if shipped is None:
            return []
        _origin(shipped, StudyRequest(study=name), notes)
        return list(shipped.runs)
    if compared:
        narrowed = f", with {', '.join(request.overrides)}" if request.overrides else ""
        runs = "1 run" if len(compared) == 1 else f"{len(compared)} runs"
        notes.caption(f"Measured on this machine, {runs} so far{narrowed}.")
    return here


def _origin(results: StudyResults, request: StudyRequest, notes: DeltaGenerator) -> None:
    """Show date, machine and data of the shipped results in `notes`.

    Shows a warning if the study has changed since the results were measured.
    """
    notes.caption(f"Shipped results, measured {results.written} with torch {results.torch} on {results.machine}.")
    for name, facts in results.data.items():
        notes.caption(f"{name}: {'; '.join(facts)}")
    known = {entry.digest() for entry in request.entries()}
    if not results.overrides and any(run.digest not in known for run in results.runs):
        st.warning("The study has changed since these results were measured.", icon=":material/update:")
    elif results.overrides:
        st.caption(f"Settings that differ from the study: {', '.join(results.overrides)}")


def table(name: str, results: Sequence[Measured], columns: Columns) -> None:
    drawn(_draw_table, name, results, tuple(columns.items()))


def _draw_table(name: str, results: Sequence[Measured], titles: Sequence[tuple[str, str]]) -> None:
    rows: list[dict[str, Any]] = []
    for row in [*studies.baseline_rows(results), *studies.table(results)]:
        shown = {"variant": row["variant"], "seeds": row["seeds"]}
        rows.append(shown | {title: _cell(key, *row[key]) for key, title in titles if key in row})
    if rows:
        wide = {"variant": st.column_config.TextColumn(width=280)}
        st.dataframe(rows, hide_index=True, key=f"scores-{name}", width="content", placeholder="–", column_config=wide)


def _cell(score: str, mean: float, deviation: float | None) -> str:
    """Format mean and standard deviation for a table: fractions in percent, other measures with three decimals."""
    if score in IN_PERCENT:
        return f"{verdicts.spread(mean, deviation)} %"
    return f"{mean:.3f}{'' if deviation is None else f' ± {deviation:.3f}'}"


def seed_curves(results: Sequence[Measured]) -> list[figures.SeedCurve]:
    """Return validation MAP@R curves by variant and seed, excluding pretraining runs.

    If a study uses class folds, only the curve of the best fold is returned for each variant and seed.
    """
    return derived(_seed_curves, results)


def _seed_curves(results: Sequence[Measured]) -> list[figures.SeedCurve]:
    return [
        figures.SeedCurve(r.variant, r.seed, r.validation.step, r.validation.map_at_r)
        for r in studies.best_folds(results)
        if r.variant != PRETRAINING and r.validation.step
    ]


def draw_curves(
    name: str, curves: Sequence[figures.SeedCurve], inputs: Mapping[str, float], alt: str, ceiling: str | None = None
) -> str:
    """Show the curves, with the mean score of raw inputs as a horizontal line; return a caption that explains them.

    `alt` is the text alternative. `ceiling` names the reference variant; its best score is drawn as a second line.
    """
    study = studies.read(name)
    level = statistics.fmean(inputs.values()) if inputs else None
    drawn(_draw_curves, f"curves-{name}", curves, level, ceiling, alt)
    return (
        f"Validation MAP@R; step 0 is the network before its first step. Thin lines: one {study.repeats[:-1]} each; "
        "thick lines: mean."
    )


def _draw_curves(
    key: str, curves: Sequence[figures.SeedCurve], level: float | None, ceiling: str | None, alt: str
) -> None:
    chart(key, figures.curves(curves, ceiling=ceiling, against={} if level is None else {"inputs": level}), alt)


def verdict(name: str, results: Sequence[Measured], rest: DeltaGenerator | None = None) -> str:
    """Show a verdict that compares a study's scores with its baselines and seed noise; return its headline.

    `rest` is the container for all sentences but the first two; by default all are shown together.
    """
    study = studies.read(name)
    judged = derived(studies.judge, study, results)
    if judged.headline:
        with st.container(border=True, key=f"verdict-{name}"):
            st.markdown(" ".join([f"**{judged.headline}**", *(judged.more[:1] if rest else [])]))
            with rest or st.container():
                st.markdown("\n".join(f"- {sentence}" for sentence in judged.more[1 if rest else 0 :]))
                st.caption(CLEARLY.replace("seeds", study.repeats))
    return judged.headline


def bars(name: str, results: Sequence[Measured]) -> None:
    """Show a chart of the study's main score: variants from best to worst, and baselines as vertical lines."""
    drawn(_draw_bars, name, studies.read(name), results)


def _draw_bars(name: str, study: Study, results: Sequence[Measured]) -> None:
    figure, words, whole = _bars(study, results)
    chart(f"bars-{name}", figure, words)
    full = "" if whole else "Faded bars are significantly worse than the best. "
    st.caption(f"{full}Mean ± standard deviation and single {study.repeats}. Vertical lines: scores without training.")


def _bars(study: Study, results: Sequence[Measured]) -> tuple[tuple[vega_lite.Spec, vega_lite.Columns], str, bool]:
    """Return the chart, its text alternative, and True if no bar is faded.

    A faded bar is significantly worse than the best one.
    """
    results = studies.best_folds(results)
    title = studies.MEASURES.get(study.judged, study.judged)
    values = [
        figures.Bar(
            variant, [r.scores[study.judged] for r in results if r.variant == variant and study.judged in r.scores]
        )
        for variant in dict.fromkeys(r.variant for r in results if r.variant != PRETRAINING)
    ]
    levels = studies.levels(results, study.judged)
    # skipped if the study rotates class folds, because folds are not independent training runs
    top = None if study.rotate else studies.top(results, study.judged)
    figure = figures.bars(values, title=title, against=levels, top=top, over=study.repeats)
    words = "; ".join(f"{n}: {label} %" for n, label in zip(figure[1]["variant"], figure[1]["label"], strict=True))
    return figure, f"{title}. {words}. Baselines: {baselines.describe(levels) or 'none'}", top is None
