"""Reliability of a study: the number of seeds needed to establish a difference, and the number of trials behind a
claim.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import streamlit as st

from dmlcore.experiments import studies, trial_ledger
from dmlcore.experiments.studies import Measured
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore
from pages.shared.state.cache import derived
from pages.shared.widgets.drawn import drawn
from pages.shared.words import sentences as words


@st.fragment
def seeds(name: str, results: Sequence[Measured]) -> None:
    """Show an expander that compares two variants and gives the number of seeds needed to separate them."""
    study = studies.read(name)
    values: dict[str, list[float]] = {}
    for run in results:
        if run.variant != studies.PRETRAINING and study.judged in run.scores:
            values.setdefault(run.variant, []).append(run.scores[study.judged])
    order = sorted(values, key=lambda variant: -statistics.fmean(values[variant]))
    if len(order) < 2:
        return
    with st.expander("Compare two variants", icon=":material/compare_arrows:"):
        left, right = st.columns(2)
        first = left.selectbox("Variant", order, index=0, key=f"one-{name}")
        others = [variant for variant in order if variant != first]
        second = right.selectbox("Compared with", others, index=0, key=f"against-{name}")
        stored = RunStore()
        chosen = [
            run if run.classes else run.model_copy(update={"classes": studies.by_class(run, stored)})
            for run in results
            if run.variant in (first, second)
        ]
        difference, *more = derived(studies.pair, study, chosen, (first, second))
        st.markdown(difference)
        st.markdown("\n".join(f"- {sentence}" for sentence in more))


def _ledger(name: str, _sources: Sequence[object]) -> tuple[trial_ledger.TrialLedger, list[dict[str, str | int]]]:
    ledger = trial_ledger.ledger(name)
    return ledger, trial_ledger.rows(ledger)


def show_ledger(name: str) -> None:
    """Show all configurations that were run to test a study's claim, starting with the configuration that it cites."""
    try:
        ledger, rows = derived(_ledger, name, trial_ledger.sources(name))
    except SpecError as error:
        st.error("The ledger of trials cannot be read.")
        st.text(words.plain(error))
        return
    st.subheader("Ledger of trials", anchor=False)
    st.markdown(f"**{ledger.claim.title}.**" if ledger.claim.outside else f"**{ledger.claim.title}**")
    here = trial_ledger.count_runs(name, RunStore())
    own = f" This machine has {here:,} runs on the same data, including those for other purposes." if here else ""
    st.markdown(f"{ledger.words}{own}")
    if rows:
        with st.expander(f"All {len(rows)} rows", icon=":material/receipt_long:"):
            drawn(_draw_rows, name, rows)


def _draw_rows(name: str, rows: Sequence[dict[str, str | int]]) -> None:
    wide = {"configuration": st.column_config.TextColumn(width=320)}
    st.dataframe(rows, hide_index=True, key=f"ledger-{name}", column_config=wide)
    st.caption(
        "Score of each study, mean ± deviation over its seeds. Do not rank rows of different data or networks. More "
        "trials, more selection bias."
    )
