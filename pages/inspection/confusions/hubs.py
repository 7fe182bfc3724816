"""Hubs (samples that are neighbours of very many queries), the share of wrong hits, and samples that no query
retrieves.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from dmlcore.figures.confusions import by_chance, occurrences
from dmlcore.inspection.hubness import FAR, Hubness, found_by
from pages.inspection.confusions import examples
from pages.inspection.confusions.service import hubs, neighbour_counts
from pages.shared.widgets.chart import chart
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent

ROWS, EACH = 4, 10  # hubs on a page, samples shown next to each
KINDS = {"hubs": "Hubs", "bad": "Bad hubs", "orphans": "Nobody's neighbour"}


def show(view: ShownRun) -> None:
    """Show the hubness statistics, the distribution of occurrences and the samples themselves."""
    counts = neighbour_counts(view)
    k = int(
        st.select_slider(
            "Neighbours k",
            counts,
            value=counts[:4][-1],
            key="hub-neighbours",
            bind="query-params",
            width=320,
            help="A sample counts once for each query that has it among its k nearest neighbours",
        )
    )
    if view.test.is_sample:
        st.info("Some queries make no hubs: these are counted once all queries were searched.", icon=":material/info:")
        return
    hubness = hubs(view.source, k)
    _numbers(hubness)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _distribution(hubness)
    with right:
        st.markdown(
            f"**How to read it.** Each query gives {k} occurrence{'s' if k > 1 else ''}, so the mean of N_k is "
            f"{hubness.mean:.3g}. In high dimensions some points near the centre of the data become neighbours of very "
            "many others, whatever their class: then a few samples spoil many lists. The dashed line is what drawing "
            "neighbours by lot would give, the vertical line stands at the mean plus "
            f"{FAR:g} standard deviations, beyond which a sample is called a hub. A *bad* occurrence is one for a "
            "query of another class; their share is 1 − P@k."
        )
        st.caption(
            "Skewness, wrong-class neighbours (“bad occurrences”): Radovanović, Nanopoulos & Ivanović 2010, Hubs in "
            "space, JMLR 11. Robin Hood index: the share of occurrences to be moved until all samples have the same; "
            "Feldbauer et al. 2018."
        )
    _samples(view, hubness, k)


def _numbers(hubness: Hubness) -> None:
    skewness = "–" if hubness.skewness is None else f"{hubness.skewness:.2f}"
    of_hubs = f"{len(hubness.bad_hubs):,} of {len(hubness.hubs):,}"
    with st.container(horizontal=True, key="hub-numbers"):
        st.metric("Skewness of N_k", skewness, border=True, help="0: symmetric; above 1: few samples are found by many")
        st.metric("Robin Hood index", percent(hubness.robin_hood), border=True)
        st.metric(
            "Wrong-class neighbours",
            percent(hubness.bad_share),
            border=True,
            help="Neighbours of a wrong class: 1 − P@k",
        )
        st.metric("Bad hubs", of_hubs, border=True, help="Hubs that are a wrong neighbour more often than a right one")
        st.metric(
            "Wrong-class neighbours from hubs",
            percent(hubness.bad_by_hubs),
            border=True,
            help=f"Hubs are {percent(len(hubness.hubs) / len(hubness.rows))} of all samples that can be found",
        )
        st.metric("Nobody's neighbour", percent(len(hubness.orphans) / len(hubness.rows)), border=True, help="N_k = 0")


def _distribution(hubness: Hubness) -> None:
    counts = np.bincount(hubness.occurrences)
    chance = by_chance(len(hubness.rows), hubness.queries, hubness.k, len(counts) - 1)
    chart(
        "occurrences",
        occurrences(counts, chance, hubness.threshold),
        f"How many samples are a neighbour how often: from 0 to {len(counts) - 1} times, mean {hubness.mean:.3g}",
    )
    st.caption(
        f"Samples by N_k, the number of queries that have them among their {hubness.k} nearest; logarithmic scale. The "
        f"most frequent is found {hubness.occurrences.max():,} times."
    )


def _samples(view: ShownRun, hubness: Hubness, k: int) -> None:
    kind = st.segmented_control(
        "Samples", list(KINDS), default="hubs", required=True, format_func=KINDS.__getitem__, key="hub-kind"
    )
    places = {"hubs": hubness.hubs, "bad": hubness.bad_hubs, "orphans": hubness.orphans}[kind or "hubs"]
    rows = hubness.rows[places]
    if not len(rows):
        st.info("There is none here.", icon=":material/check:")
        return
    examples.hand_over(view, rows, f"{KINDS[kind or 'hubs'].lower()}, k = {k}", f"hubs-{kind}-{k}")
    number = 1
    if len(rows) > ROWS:
        with st.container(horizontal=True, vertical_alignment="center", key="hub-pages"):
            number = st.pagination(-(-len(rows) // ROWS), key=f"page-{kind}-{k}", max_visible_pages=5)
            st.caption(f"{len(rows):,} samples, {ROWS} at a time.")
    page = range((number - 1) * ROWS, min(number * ROWS, len(rows)))
    if kind == "orphans":
        st.caption("Left: a sample that is a neighbour of nobody. Beside it: its own nearest neighbours.")
        shown = [(int(rows[i]), "", view.test.neighbours[rows[i], :EACH].tolist()) for i in page]
    else:
        st.caption(
            "Left: the hub. Beside it: queries that have it as a neighbour, by its rank there; ✗ means that it is a "
            "wrong neighbour for them."
        )
        shown = []
        for i in page:
            asked = found_by(view.test.neighbours, view.test.is_gallery, int(rows[i]), k)[:EACH]
            words = f"{hubness.occurrences[places[i]]:,} times, {hubness.bad[places[i]]:,} wrong"
            shown.append((int(rows[i]), words, asked.tolist()))
    examples.tiles(view, shown, f"hubs-{kind}")
