"""View of (d_ap, d_an) densities of triplets, with the region where a loss is active, now and during training."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dmlcore import losses
from dmlcore.figures.curves import CurvePanel, RunCurve, linked
from dmlcore.figures.distance_densities import portrait
from dmlcore.inspection.distance_density import KINDS, DistanceDensity, Kind, loss_of
from dmlcore.inspection.snapshots import Snapshot, snapshots
from dmlcore.losses import TripletLoss
from dmlcore.simulation import clamp_lines, depends_on
from pages.inspection.confusions.service import measured, snapshot
from pages.shared.widgets import job_button, menu
from pages.shared.widgets.chart import chart
from pages.shared.widgets.forms import Form
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent
from pages.shared.words.titles import loss_title

TESTED = "tested"
OTHERWISE = "ranking"  # default loss to draw if the loss of the run is not defined on single triplets
MULTIPLES = 6  # maximum number of checkpoints for which a small figure is shown
WORDS: dict[Kind, tuple[str, str]] = {
    "hardest": ("hardest", "each anchor with its farthest positive and its nearest negative"),
    "nearest": (
        "nearest",
        "each anchor with its nearest positive and its nearest negative; the share of wrong triplets is 1 − R@1",
    ),
    "random": ("random", "triplets drawn uniformly at random"),
}


def show(view: ShownRun) -> None:
    """Show the (d_ap, d_an) density of triplets for the chosen weights and loss, then those of the kept checkpoints."""
    with st.spinner("Measuring distances …"):
        tested = measured(view.source)
    kept = _measured([one for one in snapshots(view.run) if one.embeddings is not None])
    left, right = st.columns(2, gap="medium")
    with right:
        kind: Kind = (
            st.segmented_control(
                "Triplets",
                list(KINDS),
                default="hardest",
                required=True,
                format_func=lambda kind: WORDS[kind][0],
                key="triplets",
                bind="query-params",
                help="; ".join(f"{title}: {words}" for title, words in WORDS.values()),
            )
            or "hardest"
        )
        step = _step(view, list(kept))
        loss = _region_of(view)
        density = tested if step is None else kept[step]
        _shares(density, loss)
    reach = _reach([tested, *kept.values()], kind)
    with left:
        _draw(density, kind, loss, reach, key="portrait", height=520)
        st.caption(_caption(density, kind, loss, reach))
    if view.run.is_embedding_set:
        return
    st.subheader("During training", anchor=False)
    _offer(view)
    if kept:
        _curves(kept, kind, loss)
        _multiples(kept, kind, loss, reach)


def _step(view: ShownRun, steps: list[int]) -> int | None:
    """Show a slider over the kept checkpoints; return the chosen step, or None for the tested weights."""
    if not steps:
        return None
    chosen = st.select_slider(
        "Weights at step",
        [*map(str, steps), TESTED],
        value=TESTED,
        key=f"portrait-step-{view.run.id}",
        help="Kept checkpoints, or the tested weights, which have the best validation score",
    )
    return None if chosen == TESTED else int(chosen)


def _region_of(view: ShownRun) -> TripletLoss:
    """Let the user choose a triplet loss and its parameters; the default is the run's loss if it uses triplets."""
    form = Form(f"region-{view.run.id}")
    own = loss_of(view.run.spec_as_trained())
    name = form.choice(
        "loss",
        "Loss whose active region is drawn",
        list(dict.fromkeys([own.formula.name if own else OTHERWISE, *losses.names()])),
        words=lambda name: f"{loss_title(name)}{' (of this run)' if own and name == own.formula.name else ''}",
        help="A triplet in the active region has a gradient. Move the sliders to see the effect of another margin "
        "or clamp",
    )
    if own is None and not view.run.is_embedding_set:
        st.caption(
            f"This run was trained with {loss_title(view.run.spec.loss.name)}, which is not defined on single "
            "triplets. The figure shows the region of the loss above instead."
        )
    formula = losses.describe(name)
    given = own.hyper if own and name == own.formula.name else formula.defaults
    hyper = {
        key: form.parameter(f"{name}.{key}", key, parameter, given[key])
        for key, parameter in formula.parameters.items()
    }
    reduction = own.reduction if own and name == own.formula.name else "mean_valid"
    if reduction in ("mean_raw", "entangled"):
        st.caption("This run trains without clamps, so every triplet has a gradient.")
    return losses.create(name, reduction=reduction, **hyper)


def _draw(
    density: DistanceDensity, kind: Kind, loss: TripletLoss, reach: float, *, key: str, height: int, title: str = ""
) -> None:
    triplets = density.triplets(kind)
    lines = clamp_lines(loss, reach) if loss.clamps else ([], [])
    bins = 60 if height > 300 else 30
    drawn = portrait(triplets.d_ap, triplets.d_an, reach, lines, bins=bins, height=height, title=title or None)
    active = float(triplets.active(loss).mean())
    alt = (
        f"Density of {len(triplets):,} {WORDS[kind][0]} triplets by distance to the positive and to the "
        f"negative: {percent(triplets.violated)} with the negative nearer, {percent(active)} active"
    )
    chart(key, drawn, f"{title} {alt}".strip())


def _reach(density: list[DistanceDensity], kind: Kind) -> float:
    """Return the upper limit of both axes: a round number above the largest distance drawn."""
    top = max(float(max(p.triplets(kind).d_ap.max(), p.triplets(kind).d_an.max())) for p in density)
    step = 10.0 ** math.floor(math.log10(top)) / 5 if top > 0 else 1.0
    return math.ceil(top / step + 1e-9) * step


def _shares(pairs: DistanceDensity, loss: TripletLoss) -> None:
    """Show, for each kind of triplet, the fraction with the negative nearer and the fraction with a gradient."""
    rows = [(WORDS[kind][0], pairs.triplets(kind)) for kind in KINDS]
    st.dataframe(
        {
            "triplets": [title for title, _ in rows],
            "counted": [len(triplets) for _, triplets in rows],
            "wrong": [round(triplets.violated, 4) for _, triplets in rows],
            "active": [round(float(triplets.active(loss).mean()), 4) for _, triplets in rows],
        },
        key="triplet-shares",
        hide_index=True,
        column_config={
            "counted": st.column_config.NumberColumn(format="localized"),
            "wrong": st.column_config.NumberColumn(format="percent", help="The negative is nearer than the positive"),
            "active": st.column_config.NumberColumn(
                format="percent", help="The loss above has a gradient (0 < raw < m2, computed from all three distances)"
            ),
        },
    )


def _caption(pairs: DistanceDensity, kind: Kind, loss: TripletLoss, reach: float) -> str:
    sampled = (
        ""
        if kind == "random" or pairs.anchors == pairs.queries
        else f" Sample of {pairs.anchors:,} of {pairs.queries:,} anchors."
    )
    words, asked = WORDS[kind][1], depends_on(loss)
    assumed = [
        *(["d(p, n) = d(a, n)"] if "pn" in asked else []),
        *(["unit vectors"] if asked & {"a", "p", "n"} else []),
    ]
    drawn = f", assuming {' and '.join(assumed)}" if assumed else ""
    clamp = "; dashed: upper clamp, raw = m2" if math.isfinite(loss.m2) else ""
    begins = f"Orange: boundary of the loss, raw = 0{clamp}{drawn}."
    if not loss.clamps or not any(map(len, clamp_lines(loss, reach))):
        begins = "No boundary of the loss lies in this range."
    return (
        f"{len(pairs.triplets(kind)):,} tested triplets: {words}. Below the dotted diagonal the negative is "
        f"nearer than the positive. {begins}{sampled}"
    )


def _offer(view: ShownRun) -> None:
    """If embeddings or checkpoints are missing for the figures over training, explain how to obtain them."""
    kept = snapshots(view.run)
    if not kept:
        st.info(
            "This run kept no intermediate checkpoints. To follow the portrait during training, start a run with “Keep "
            "a checkpoint every”.",
            icon=":material/timeline:",
        )
        menu.link("settings", "Train one like it", {"like": view.run.id})
    elif missing := sum(one.embeddings is None for one in kept):
        st.markdown(f"{missing} of {len(kept)} kept checkpoints are not embedded yet.")
        job_button.offer(view.run, "snapshots")


def _multiples(kept: dict[int, DistanceDensity], kind: Kind, loss: TripletLoss, reach: float) -> None:
    steps = list(kept)
    few = np.unique(np.linspace(0, len(steps) - 1, min(MULTIPLES, len(steps))).round().astype(int))
    for column, step in zip(st.columns(len(few)), (steps[i] for i in few), strict=True):
        with column:
            _draw(kept[step], kind, loss, reach, key=f"portrait-{step}", height=230, title=f"step {step:,}")
    anchors = min(p.anchors for p in kept.values())
    st.caption(f"Kept checkpoints on the same scale, {anchors:,} anchors each.")


def _measured(ready: list[Snapshot]) -> dict[int, DistanceDensity]:
    densities: dict[int, DistanceDensity] = {}
    bar = st.empty()
    for number, one in enumerate(ready):
        assert one.embeddings is not None
        if number:
            bar.progress(number / len(ready), f"Measuring step {one.step:,} …")
        densities[one.step] = snapshot(one.embeddings, one.embeddings.stat().st_mtime_ns)
    bar.empty()
    return densities


def _curves(kept: dict[int, DistanceDensity], kind: Kind, loss: TripletLoss) -> None:
    steps = np.array(list(kept), np.int64)
    triplets = [p.triplets(kind) for p in kept.values()]
    values = {
        "active": [float(t.active(loss).mean()) for t in triplets],
        "wrong": [t.violated for t in triplets],
        "overlap": [p.distances.overlap for p in kept.values()],
    }
    panels = [CurvePanel(name, [RunCurve("this run", steps, np.array(v))], ".3~%", 80) for name, v in values.items()]
    chart(
        "portrait-curves",
        linked(panels, steps=int(steps[-1])),
        f"By step: {', '.join(values)} of the {WORDS[kind][0]} triplets; {loss_title(loss.formula.name)}",
    )
    st.caption(
        f"Active: share of the {WORDS[kind][0]} triplets with a gradient under the loss above. Wrong: share whose "
        "negative is nearer than the positive. Overlap: area shared by the histograms of positives and negatives."
    )
