"""Diagnostics of one run: warnings of the collapse monitor, histograms of distances by step, commands and spec."""

from __future__ import annotations

import math
import shlex

import altair as alt
import numpy as np
import streamlit as st

from dmlcore import losses
from dmlcore.catalogue import FROM_DATA
from dmlcore.figures.curves import COLOURS
from dmlcore.figures.vega_lite import ROWS, Columns, Spec, specification, values
from dmlcore.monitoring import health
from dmlcore.monitoring.health import HealthWarning
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore, series
from pages.shared.state import run_reader
from pages.shared.state.run_reader import Histogram
from pages.shared.state.spec_link import command
from pages.shared.widgets.chart import chart
from pages.shared.widgets.drawn import drawn
from pages.shared.words import sentences as words
from pages.training.runs.steps import choose_step

AGAIN = 10  # lifetime of cached warnings in seconds; short, because those of an active run change


def show(run: Run, status: str) -> None:
    """Show warnings, histograms and exports of a single run."""
    history = run_reader.reader().history(run)
    for warning in _warnings(str(run.path.parent), run.id, status):
        _warning(warning)
    if (trained := run.spec_as_trained()) != run.spec:
        st.caption(_margin(run, trained))
    if history.histograms:
        with st.expander("Distances during training", icon=":material/bar_chart:", key=f"open-distances-{run.id}"):
            _distances(run, history.histograms, goes_on=status in ("queued", "running"))
    with st.expander("Command line, spec, TensorBoard", icon=":material/terminal:", key=f"open-exports-{run.id}"):
        exports(run)


@st.cache_data(max_entries=64, ttl=AGAIN, show_spinner=False)
def _warnings(root: str, run_id: str, status: str) -> list[HealthWarning]:
    """Return the warnings about a run; `status` is part of the cache key, so that a finished run is examined again."""
    run = RunStore(root).open(run_id)
    return health.watch(run.metrics()[0], run.spec)


def _margin(run: Run, trained: RunSpec) -> str:
    """Return a sentence with the margin that was chosen from the data; `trained` is the spec with this margin."""
    distances = series(run.metrics()[0], "measure", "pair_distance")[1]
    if not distances:
        return "The margin is chosen from the first batch and shown after the first measurement."
    name = next(k for k, v in run.spec.loss.parameters.items() if v == FROM_DATA)
    value = trained.loss.parameters[name]
    return (
        f"Margin {name} = {value:.4g}, chosen from the first batch, in which the mean distance within classes is "
        f"{distances[-1]:.3g}."
    )


def _warning(warning: HealthWarning) -> None:
    with st.container(border=True, key=f"warning-{warning.kind}"):
        st.badge(f"since step {warning.since:,}", icon=":material/monitor_heart:", color="orange")
        st.markdown(f"**{words.plain(warning.sentence)}**")
        st.markdown("What to try:\n" + "\n".join(f"- {words.plain(remedy)}" for remedy in warning.remedies))


def _distances(run: Run, histograms: list[Histogram], goes_on: bool) -> None:
    """Show histograms of distances within and between classes in one batch, with a slider over the training steps.

    `goes_on` is True while the run is queued or running.
    """
    steps = [histogram.step for histogram in histograms]
    key = f"distances-{run.id}"
    step = choose_step(key, steps, goes_on)
    chosen = histograms[steps.index(step)]
    window = _window(run)
    drawn(_draw_bars, f"{key}-chart", chosen, window)
    shaded = ""
    if window:
        least = "" if math.isinf(window[0]) else f"at least {window[0]:.3g} and "
        shaded = (
            f" A triplet has a gradient while its negative is {least}at most {window[1]:.3g} farther than its "
            "positive. The band shows this range for the mean positive distance."
        )
    st.caption(f"Share of the pairs of one batch at step {step:,}: same class and other classes.{shaded}")


def _window(run: Run) -> tuple[float, float] | None:
    """Return the range of d_an - d_ap in which a triplet has a gradient; None unless the loss is the ranking loss."""
    spec = run.spec
    if spec.loss.name != "ranking":
        return None
    try:
        loss = losses.create(spec.loss.name, **spec.loss.parameters)
    except (TypeError, ValueError):  # the spec has hyper-parameters that this version does not support
        return None
    return -math.inf if math.isinf(loss.m2) else loss.margin - loss.m2, loss.margin


def _draw_bars(key: str, chosen: Histogram, window: tuple[float, float] | None) -> None:
    chart(key, _bars(chosen, window), _words(chosen))


def _bars(chosen: Histogram, window: tuple[float, float] | None) -> tuple[Spec, Columns]:
    bins = len(chosen.positive)
    width = chosen.top / bins
    low = np.arange(bins) * width
    shares = [np.array(counts) / max(1, sum(counts)) for counts in (chosen.positive, chosen.negative)]
    rows = {
        "from": np.concatenate([low, low]),
        "to": np.concatenate([low, low]) + width,
        "share": np.concatenate(shares),
        "pairs": np.repeat(["same class", "other classes"], bins),
    }
    domain = ["same class", "other classes"]
    legend = alt.Legend(orient="top")
    bars = alt.Chart().mark_bar(opacity=0.55, binSpacing=0)
    bars = bars.encode(
        alt.X(
            "from:Q",
            title="distance",
            scale=alt.Scale(domain=[0, chosen.top]),
            bin=alt.BinParams(binned=True, step=width),
        ),
        alt.X2("to"),
        alt.Y("share:Q", title="pairs", stack=None, axis=alt.Axis(format="%")),
        alt.Color("pairs:N", title=None, scale=alt.Scale(domain=domain, range=[COLOURS[2], COLOURS[1]]), legend=legend),
        tooltip=[
            alt.Tooltip("pairs:N"),
            alt.Tooltip("from:Q", format=".3~f"),
            alt.Tooltip("to:Q", format=".3~f"),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    layers = [bars]
    if window:
        mean = float(((low + width / 2) * shares[0]).sum())
        ends = [min(max(mean + end, 0.0), chosen.top) for end in window]
        band = alt.Chart(values({"a": ends[0], "b": ends[1]})).mark_rect(opacity=0.12)
        layers.insert(0, band.encode(alt.X("a:Q"), alt.X2("b")))
    return specification(alt.layer(*layers, data=ROWS, height=220)), rows


def _words(chosen: Histogram) -> str:
    width = chosen.top / len(chosen.positive)
    places = (np.arange(len(chosen.positive)) + 0.5) * width
    means = [float((places * counts).sum() / max(1, np.sum(counts))) for counts in (chosen.positive, chosen.negative)]
    return f"Histogram of distances: mean {means[0]:.3g} within classes, {means[1]:.3g} between classes"


def exports(run: Run) -> None:
    """Show the command that trains an identical run, the commands for TensorBoard, and a download of the spec."""
    known = command(run.spec)
    if known is None:
        st.caption("Command for the same run, with the spec below:")
    st.code(known or "python -m dmlcore train spec.toml", language="bash", wrap_lines=True)
    store = ["--runs", str(run.path.parent)]
    write = shlex.join(["python", "-m", "dmlcore", "events", run.id, *store, "--follow"])
    look = shlex.join(["tensorboard", "--logdir", str(run.path / "events")])
    st.caption("For TensorBoard:")
    st.code(f"{write} &\n{look}", language="bash", wrap_lines=True)
    st.download_button(
        "Spec as TOML",
        run.spec.to_toml(),
        f"{run.id}.toml",
        "application/toml",
        key=f"toml-{run.id}",
        on_click="ignore",
    )
