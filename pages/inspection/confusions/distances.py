"""Distance histograms of positive and negative test pairs, with the range in which the loss has a gradient."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dmlcore.figures.distance_densities import Histograms, distances
from dmlcore.inspection.distance_density import DistanceDensity, loss_of, window
from dmlcore.losses import TripletLoss
from dmlcore.simulation import depends_on
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import RunStore
from pages.inspection.confusions.service import measured
from pages.shared.widgets import menu, run_picker
from pages.shared.widgets.chart import chart
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.shared.words.numbers import percent


def show(view: ShownRun) -> None:
    """Show the distance histograms, their statistics, and the range in which the loss has a gradient."""
    with st.spinner("Measuring distances …"):
        own = measured(view.source)
    other = _other(view)
    named = [(titles.label(view.run), own), *([other] if other else [])]
    left, right = st.columns([3, 1], gap="medium")
    loss = loss_of(view.run.spec_as_trained())
    mean = own.distances.positive_mean
    reach = float(own.distances.edges[-1])
    windows = window(loss, mean, reach) if loss else []
    with left:
        drawn = distances(
            [Histograms(name, p.distances.edges, p.distances.positives, p.distances.negatives) for name, p in named],
            windows,
            mean if loss else None,
        )
        chart("distances", drawn, _words(own))
        _caption(view, named, loss, bool(windows))
    with right:
        _numbers(named)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("To decide from which similarity two samples are the same class:", width="content")
        menu.link("thresholds", None, {"run": view.run.id})


def _other(view: ShownRun) -> tuple[str, DistanceDensity] | None:
    """Let the user choose a second run on the same data set; return its title and distances, or None without one."""
    data = view.run.spec.data.name
    alike = run_picker.offered(RunStore(), lambda name, brief: brief.data == data and name != view.run.id)
    runs = {name: run for name, run in alike.items() if run.embeddings()}
    if not runs:
        return None
    chosen = st.selectbox(
        "Compare with",
        ["", *runs],
        format_func=lambda name: titles.label(runs[name]) if name else "no second run",
        key="compare-distances",
        width=420,
        help=f"{'Another embedding set' if view.run.is_embedding_set else 'A run on the same data set'}, shown as "
        "dashed lines",
    )
    source = runs[chosen].embeddings() if chosen in runs else None
    if source is None:
        return None
    try:
        with st.spinner("Measuring distances …"):
            return titles.label(runs[chosen]), measured(source)
    except (Unreadable, ValueError) as error:
        st.warning(words.plain(error), icon=":material/broken_image:")
        return None


def _numbers(named: list[tuple[str, DistanceDensity]]) -> None:
    """Show the statistics of the run and, next to them, those of the other run."""
    numbers: tuple[tuple[str, Callable[[DistanceDensity], str], str], ...] = (
        (
            "Overlap",
            lambda p: percent(p.distances.overlap),
            "Area shared by both histograms: 0 % if they are separate, 100 % if they are equal",
        ),
        ("Mean distance, same class", lambda p: f"{p.distances.positive_mean:.3g}", "Mean over the positive pairs"),
        ("Mean distance, other classes", lambda p: f"{p.distances.negative_mean:.3g}", "Mean over the negative pairs"),
        (
            "Negative nearer than positive",
            lambda p: percent(p.random.violated),
            f"Share of {len(named[0][1].random):,} random triplets in which the negative is nearer to the anchor",
        ),
    )
    for title, value, explanation in numbers:
        own, *other = (value(density) for _, density in named)
        change = f"{other[0]} in the other run" if other else None
        st.metric(title, own, change, delta_color="off", delta_arrow="off", help=explanation)


def _caption(view: ShownRun, named: list[tuple[str, DistanceDensity]], loss: TripletLoss | None, open_: bool) -> None:
    density = named[0][1]
    d = density.distances
    counted = (
        f"{int(d.positives.sum()):,} ordered pairs of the same class and {int(d.negatives.sum()):,} of "
        "different classes"
    )
    if d.all_positives and d.all_negatives:
        words = f"All {counted}."
    else:
        every = "all positives, " if d.all_positives else ""
        words = (
            f"Sample: {counted}; {every}{'negatives' if d.all_positives else 'pairs'} of {density.anchors:,} of "
            f"{density.queries:,} anchors, drawn at random."
        )
    if loss is None and view.run.is_embedding_set:
        pass
    elif loss is None:
        title = titles.loss_title(view.run.spec.loss.name)
        words += f" {title} is not defined on single triplets, so no active window is drawn."
    elif open_:
        assumed = depends_on(loss) - {"ap", "an"}
        words += (
            f" Dotted line: mean distance of positives, {d.positive_mean:.3g}. Blue band: distances of a negative at "
            "which a triplet with that positive has a gradient under the loss of this run"
            f"{', assuming d(p, n) = d(a, n) and unit vectors' if assumed else ''}."
        )
    else:
        words += f" At the mean distance of positives, {d.positive_mean:.3g}, no negative has a gradient."
    st.caption(words + (" Dashed: the second run." if len(named) > 1 else ""))


def _words(density: DistanceDensity) -> str:
    d = density.distances
    return (
        f"Histograms of distances: mean {d.positive_mean:.3g} within a class, {d.negative_mean:.3g} between classes, "
        f"overlap {percent(d.overlap)}"
    )
