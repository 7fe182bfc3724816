"""View of hubs, which are samples that unusually many queries retrieve, and of samples that no query retrieves."""

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

ROWS, EACH = 4, 10  # hubs per page; samples shown next to each hub
KINDS = {"hubs": "Hubs", "bad": "Bad hubs", "orphans": "Never retrieved"}


def show(view: ShownRun) -> None:
    """Show the hubness statistics, the distribution of occurrences, and the hubs or never retrieved samples."""
    counts = neighbour_counts(view)
    k = int(
        st.select_slider(
            "Neighbours k",
            counts,
            value=counts[:4][-1],
            key="hub-neighbours",
            bind="query-params",
            width=320,
            help="N_k of a sample is the number of queries that have it among their k nearest neighbours",
        )
    )
    if view.test.is_sample:
        st.info(
            "Hubs can be counted only after all queries have been searched; so far only a sample of them was.",
            icon=":material/info:",
        )
        return
    hubness = hubs(view.source, k)
    labelled = view.test.has_labels
    _numbers(hubness, labelled)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _distribution(hubness)
    with right:
        st.markdown(
            "In high dimensions, points near the centre of the data become neighbours of very many others"
            f"{', whatever their class' if labelled else ''}. A few such hubs can spoil many result lists."
        )
        with st.expander("Method", icon=":material/function:"):
            st.markdown(
                f"Each query contributes {k} occurrence{'s' if k > 1 else ''}, so the mean of N_k is "
                f"{hubness.mean:.3g}. The dashed curve shows N_k for neighbours drawn at random. The vertical line "
                f"marks the mean plus {FAR:g} standard deviations; a sample beyond it is a hub."
                + (
                    " An occurrence is bad if the query is of another class; the share of bad occurrences is 1 − P@k."
                    if labelled
                    else ""
                )
            )
            st.caption(
                "Skewness and bad occurrences: Radovanović, Nanopoulos & Ivanović 2010, Hubs in space, JMLR 11. Robin "
                "Hood index, the share of occurrences to move until all samples have equally many: Feldbauer et al. "
                "2018."
            )
    _samples(view, hubness, k)


def _numbers(hubness: Hubness, labelled: bool) -> None:
    """Show the statistics of hubness; those of wrong classes only if there are labels."""
    hubs, samples = len(hubness.hubs), len(hubness.rows)
    skewness = "–" if hubness.skewness is None else f"{hubness.skewness:.2f}"
    numbers: list[tuple[str, str, str | None]] = [
        ("Skewness of N_k", skewness, "0: symmetric; above 1: a few samples are retrieved by many queries"),
        ("Robin Hood index", percent(hubness.robin_hood), None),
    ]
    if labelled:
        bad = f"{len(hubness.bad_hubs):,} of {hubs:,}"
        of_samples = f"Hubs are {percent(hubs / samples)} of all samples that can be retrieved"
        numbers += [
            ("Wrong-class neighbours", percent(hubness.bad_share), "Neighbours of a wrong class: 1 − P@k"),
            ("Bad hubs", bad, "Hubs that are more often a wrong neighbour than a right one"),
            ("Wrong-class neighbours from hubs", percent(hubness.bad_by_hubs), of_samples),
        ]
    else:
        numbers.append(("Hubs", f"{hubs:,}", "Samples beyond the line in the histogram"))
    numbers.append(("Never retrieved", percent(len(hubness.orphans) / samples), "N_k = 0"))
    with st.container(horizontal=True, key="hub-numbers"):
        for title, value, explanation in numbers:
            st.metric(title, value, border=True, help=explanation)


def _distribution(hubness: Hubness) -> None:
    counts = np.bincount(hubness.occurrences)
    chance = by_chance(len(hubness.rows), hubness.queries, hubness.k, len(counts) - 1)
    chart(
        "occurrences",
        occurrences(counts, chance, hubness.threshold),
        f"Histogram of N_k, the number of queries that retrieve a sample: 0 to {len(counts) - 1}, mean "
        f"{hubness.mean:.3g}",
    )
    st.caption(
        f"Number of samples by N_k, the number of queries that have a sample among their {hubness.k} nearest "
        f"neighbours (logarithmic scale). Largest N_k: {hubness.occurrences.max():,}."
    )


def _samples(view: ShownRun, hubness: Hubness, k: int) -> None:
    labelled = view.test.has_labels
    kinds = [kind for kind in KINDS if labelled or kind != "bad"]
    kind = st.segmented_control(
        "Samples", kinds, default="hubs", required=True, format_func=KINDS.__getitem__, key="hub-kind"
    )
    places = {"hubs": hubness.hubs, "bad": hubness.bad_hubs, "orphans": hubness.orphans}[kind or "hubs"]
    rows = hubness.rows[places]
    if not len(rows):
        st.info("No such sample.", icon=":material/check:")
        return
    examples.hand_over(view, rows, f"{KINDS[kind or 'hubs'].lower()}, k = {k}", f"hubs-{kind}-{k}")
    page = range(len(rows))[examples.page_of(len(rows), ROWS, f"{kind}-{k}", "samples")]
    if kind == "orphans":
        st.caption("Left: a sample that no query retrieves. Right: its own nearest neighbours.")
        shown = [(int(rows[i]), "", view.test.neighbours[rows[i], :EACH].tolist()) for i in page]
    else:
        st.caption(
            "Left: the hub. Right: queries that retrieve it, highest rank first"
            f"{'; ✗ marks queries of another class' if labelled else ''}."
        )
        shown = []
        for i in page:
            asked = found_by(view.test.neighbours, view.test.is_gallery, int(rows[i]), k)[:EACH]
            wrong = f", {hubness.bad[places[i]]:,} wrong" if labelled else ""
            words = f"{hubness.occurrences[places[i]]:,} times{wrong}"
            shown.append((int(rows[i]), words, asked.tolist()))
    examples.tiles(view, shown, f"hubs-{kind}")
