"""Results of a study with many variants: bars, a sortable table, curves, and published numbers where available."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.experiments import studies
from dmlcore.experiments.studies import PRETRAINING, Measured, Study
from dmlcore.figures import studies as figures
from dmlcore.figures.study_scatter import scatter
from dmlcore.figures.study_sweep import lines
from dmlcore.replay import toy_runs
from dmlcore.significance.association import associate
from dmlcore.storage.runs import RunStore
from pages.shared.state.cache import derived
from pages.shared.widgets.chart import chart
from pages.shared.widgets.drawn import drawn
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study import scores as study_scores
from pages.shared.widgets.study import trials as study_trials
from pages.training.studies import attribution as attribution_view

CURVES_AT_FIRST = 4  # largest number of variants whose curves are shown by default, best first
# further scores in the table: mean only, and not in percent
FURTHER = {
    "foreground": "weight on the right tile",
    "tested_covering.train_radius": "covering radius, training classes",
    "tested_covering.test_radius": "covering radius, test classes",
    "projections.finished": "projections",
    "projections.steps": "steps per projection",
}
PUBLISHED = {
    "train.recall_at_1": "R@1",
    "train.recall_at_8": "R@8",
    "train.r_precision": "P@R",
    "train.map_at_r": "MAP@R",
}


def show(name: str) -> None:
    """Show the question, verdict, scores and curves of a study, with its progress and controls."""
    study = studies.read(name)
    st.markdown(study.question)
    place = st.container()  # of the verdict
    if busy := studies.conduct_of(name, RunStore()).is_busy():
        study_panel.progress(name)
    scores = st.container()
    if not busy:
        study_panel.progress(name)
    attribution_view.show(name)
    method = st.expander("Method", icon=":material/function:")
    with scores:
        _show_scores(name, place, method)
    with method:
        study_trials.show_ledger(name)
        study_panel.describe(name)


def _show_scores(name: str, place: DeltaGenerator, method: DeltaGenerator) -> None:
    """Show the scores, with the verdict in `place`, and notes on noise and definitions in the expander `method`."""
    with method:
        noise, notes = st.container(), st.container()
    results = [r for r in study_scores.results(name, notes) if r.variant != PRETRAINING]
    if not results:
        return
    with place:
        study_scores.verdict(name, results, noise)
    study = studies.read(name)
    if study.correlations:
        drawn(_correlations, name, study, results)
    if study.sweep:
        drawn(_sweep, name, study, results)
    study_scores.bars(name, results)
    drawn(_own_baselines, name, study, results)
    drawn(_selection, name, results)
    drawn(_promises, name, results)
    if published := _published(name):
        _compare_with_published(name, results, published)
        notes.caption(toy_runs.NOT_STATED)
    with st.expander("All scores", icon=":material/table:"):
        drawn(_table, name, studies.read(name).repeats, results)
    study_trials.seeds(name, results)
    _curves(name, results)


def _correlations(name: str, study: Study, results: Sequence[Measured]) -> None:
    """Show a scatter plot for each correlation that the study asks about, two plots in a row."""
    measure = studies.MEASURES.get(study.judged, study.judged)
    for place, asked in zip(st.columns(len(study.correlations)), study.correlations, strict=True):
        points = studies.points(results, asked.score, study.judged, asked.over)
        if points:
            association = associate(*zip(*points.values(), strict=True))
            words = f"Scatter plot of {len(points)} variants: {asked.title} and {measure}"
            figure = scatter(points, title=asked.title, measure=measure, note=association.short if association else "")
            with place:
                chart(
                    f"correlation-{asked.title}-{name}", figure, f"{words}. {association.words if association else ''}"
                )
    st.caption(f"One point per variant: mean over its {study.repeats}. Above: rank correlation, 95 % interval.")


def _sweep(name: str, study: Study, results: Sequence[Measured]) -> None:
    """Show the judged score against the setting that the study sweeps, if it names one."""
    measure = studies.MEASURES.get(study.judged, study.judged)
    scores = {
        variant: [run.scores[study.judged] for run in results if run.variant == variant and study.judged in run.scores]
        for variant in dict.fromkeys(run.variant for run in results)
    }
    swept = {
        label: {value: scores[variant] for variant, value in line.items() if scores.get(variant)}
        for label, line in study.sweep_lines().items()
    }
    swept = {label: line for label, line in swept.items() if line}
    if swept and study.sweep:
        figure = lines(swept, title=study.sweep.title, measure=measure)
        chart(f"sweep-{name}", figure, f"{measure} against {study.sweep.title}: {'; '.join(swept)}")
        st.caption(f"Mean ± standard deviation over the {study.repeats}; values of the setting are equally spaced.")


def _own_baselines(name: str, study: Study, results: Sequence[Measured]) -> None:
    """Show the gain of each method over the variant that it extends, if the study names such baselines."""
    rows, measure = studies.comparisons.rows(study, results), studies.MEASURES.get(study.judged, study.judged)
    if not rows:
        return
    st.subheader("Compared with their own baselines", anchor=False)
    text = st.column_config.TextColumn
    config = {
        "method": text(pinned=True),
        "score": text(help=f"{measure[:1].upper()}{measure[1:]} in %"),
        "own baseline": text(help="The variant that the method extends; of several, the one that validates best"),
        "difference": text(help="Mean ± deviation in points, paired over the seeds"),
        "p": text(width="small", help="Of this comparison alone"),
        "verdict": text(width="medium", help="Corrected for the number of comparisons in this table"),
        "over the test classes": text(help="95 % interval of the mean difference, in points"),
    }
    order = [key for key in dict.fromkeys(key for row in rows for key in row) if key != "data"]
    st.dataframe(
        rows,
        height="content",
        hide_index=True,
        key=f"own-baselines-{name}",
        placeholder="",
        column_config=config,
        column_order=order,
    )
    st.caption(f"{measure[:1].upper()}{measure[1:]} in %. Hover over a heading for its definition.")


def _selection(name: str, results: Sequence[Measured]) -> None:
    """Show what selection on the test split gains, if the study measures test scores at each validation."""
    rows = studies.selection.rows(results)
    if not rows:
        return
    st.subheader("Selected by validation or by test", anchor=False)
    text = st.column_config.TextColumn
    config = {
        "variant": text(pinned=True),
        "by validation": text(help="Step and setting with the best validation score"),
        "step by test": text(help="Step with the best test score, setting with the best validation score"),
        "step and setting by test": text(help="Step and setting with the best test score"),
        "difference": text(help="Step and setting by test minus by validation, in points, paired over the seeds"),
        "95 % interval": text(help="Of the mean difference, in points"),
        "verdict": text(help="Corrected for the number of variants"),
    }
    st.dataframe(rows, height="content", hide_index=True, key=f"selection-{name}", column_config=config)
    st.caption("Test MAP@R in %. Scores selected on the test split are too high; no other page uses them.")


def _promises(name: str, results: Sequence[Measured]) -> None:
    """Show the promised and the measured false match rate of each variant, if the study measures thresholds."""
    study = studies.read(name)
    rows = studies.promises.rows(study, results, studies.baseline_rows(results))
    if not rows:
        return
    st.subheader("Does a threshold keep its promise?", anchor=False)
    st.markdown(" ".join(studies.promises.summary(study, results)))
    text = st.column_config.TextColumn
    config = {
        "variant": text(pinned=True, width=200),
        "EER": text(help="Equal error rate of all pairs of test samples, in %"),
        "OPIS x 1000": text(help="Variance over the classes of their utility at one threshold; 0 if all are equal"),
        "missed": text(help="Pairs of one test class below the threshold, in %"),
        "false matches": text(help="Pairs of two test classes above the threshold of the validation classes, in %"),
        "measured / promised": text(help="With the 95 % interval over bootstrap samples of the classes"),
        "false matches, training classes": text(help="The same with a threshold chosen on training classes, in %"),
    }
    st.dataframe(rows, hide_index=True, key=f"promises-{name}", column_config=config)
    st.caption("In %, mean and standard deviation over the seeds. The page Thresholds shows the pairs of one run.")


def _table(name: str, repeats: str, results: Sequence[Measured]) -> None:
    """Show a table of means and standard deviations in separate numeric columns, so that each column can be sorted."""
    rows: list[dict[str, Any]] = []
    for row in [*studies.baseline_rows(results), *studies.table(results)]:
        shown: dict[str, Any] = {"variant": row["variant"], "seeds": row["seeds"]}
        if any(run.candidate for run in results):
            shown["chosen"] = row.get("chosen", "")
        for key, title in studies.MEASURES.items():
            if key in row:
                mean, deviation = row[key]
                shown |= {title: 100 * mean, f"± {title}": None if deviation is None else 100 * deviation}
        shown |= {title: row[key][0] for key, title in FURTHER.items() if key in row}
        shown["steps"] = max((r.steps for r in results if r.variant == row["variant"]), default=0)
        shown["steps to 95 %"] = _steps_to_95(row["variant"], results)
        rows.append(shown)
    own = ("variant", "chosen", "seeds", "steps", "steps to 95 %", *FURTHER.values())
    columns = [title for title in rows[0] if title not in own]
    config: dict[str, Any] = {c: st.column_config.NumberColumn(c, format="%.2f %%") for c in columns if c[0] != "±"}
    config |= {"seeds": st.column_config.NumberColumn(repeats)}
    config["steps to 95 %"] = st.column_config.NumberColumn(
        format="%.0f",
        help="Steps to 95 % of the own best validation MAP@R: mean over the seeds, linear between two validations",
    )
    config |= {c: st.column_config.NumberColumn("±", format="%.2f", help=c) for c in columns if c[0] == "±"}
    config |= {title: st.column_config.NumberColumn(title, format="%.2f") for title in FURTHER.values()}
    st.dataframe(rows, hide_index=True, key=f"scores-{name}", placeholder="–", column_config=config)
    st.caption(f"Mean and standard deviation over the {repeats}. Click a heading to sort.")


def _steps_to_95(variant: str, results: Sequence[Measured]) -> float | None:
    """Return the mean number of steps to 95 % of the own best validation score; None without validation curves."""
    reached = [
        share * run.validation.step[-1]
        for run in results
        if run.variant == variant and (share := studies.score_of(run, studies.CONVERGENCE)) is not None
    ]
    return statistics.fmean(reached) if reached else None


def _curves(name: str, results: Sequence[Measured]) -> None:
    curves = study_scores.seed_curves(results)
    variants = list(dict.fromkeys(curve.variant for curve in curves))
    if not variants:
        return
    ceilings = derived(figures.ceilings, curves)
    best = sorted(variants, key=lambda variant: -(ceilings[variant] or 0.0))[:CURVES_AT_FIRST]
    chosen = st.multiselect("Validation curves of", variants, default=best, max_selections=8, key=f"curves-of-{name}")
    if not chosen:
        return
    level = derived(studies.levels, results, "validation.map_at_r").get("inputs", {})
    levels = {variant: value for variant, value in level.items() if variant in chosen}
    shown = [curve for curve in curves if curve.variant in chosen]
    st.caption(study_scores.draw_curves(name, shown, levels, f"Validation MAP@R of {', '.join(chosen)}"))


def _published(name: str) -> dict[str, toy_runs.ThesisRow]:
    """Return, by variant, the matching row of Table 4.1 in Karaman 2021; {} for studies that do not repeat it."""
    if name not in ("toy-table", "toy-table-raw"):
        return {}
    variants = {entry.variant: entry.spec for entry in studies.StudyRequest(study=name, seeds=(0,)).entries()}
    rows = toy_runs.published_scores()
    return {variant: row for variant, spec in variants.items() for row in rows if toy_runs.matches(row, spec)}


def _compare_with_published(name: str, results: Sequence[Measured], published: dict[str, toy_runs.ThesisRow]) -> None:
    """Show training scores in percent: measured here and printed in the thesis."""
    st.markdown("**Compared with Table 4.1**: training scores in %, here (mean ± deviation over the seeds) | printed")
    rows = []
    for row in studies.table(results):
        shown = {"variant": row["variant"]}
        for key, title in PUBLISHED.items():
            mean, deviation = row[key]
            spread = "" if deviation is None else f" ± {100 * deviation:.1f}"
            shown[title] = f"{100 * mean:.1f}{spread} | {published[row['variant']].scores[title]:.2f}"
        rows.append(shown)
    st.dataframe(rows, hide_index=True, key=f"beside-{name}")
