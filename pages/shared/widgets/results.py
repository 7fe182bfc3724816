"""Results of runs: training curves of several runs in one chart, and test scores before and after training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dmlcore.figures.curves import CurvePanel, RunCurve, averaged, linked
from dmlcore.metrics import SCORES
from dmlcore.significance import verdicts
from dmlcore.significance.gain import gain
from dmlcore.significance.transductive import mark_transductive
from dmlcore.spec import RunSpec
from dmlcore.storage.metrics_rows import REPRESENTATIONS, Row, representation
from dmlcore.storage.runs import Run
from pages.shared.state import run_reader
from pages.shared.state.cache import derived
from pages.shared.state.run_reader import RunHistory
from pages.shared.widgets.chart import chart
from pages.shared.widgets.drawn import drawn
from pages.shared.words import titles
from pages.shared.words.numbers import percent

# titles of the additional validation curves, which exist if embeddings are conditioned on neighbours
BESIDE = {"alone": "network alone"}
# Panels in display order: name in RunHistory -> title, number format, height in pixels.
PANELS = {
    "loss": ("loss", ".3~g", 200),
    "validation": ("validation MAP@R", ".3~%", 190),
    "nmi": ("validation NMI", ".3~%", 130),
    "active": ("active tuples", ".3~%", 110),
    "member_weights": ("weights of the losses", ".3~%", 150),
    "member_losses": ("losses of the ensemble", ".3~g", 150),
    "tcm": ("consistent margin", ".3~g", 110),
    "diversity": ("distance of the learners", ".3~g", 110),
    "positive_distance": ("distance of positives", ".3~g", 130),
    "negative_distance": ("distance of negatives", ".3~g", 130),
    "violating": ("negatives nearer than positives", ".3~%", 110),
    "pull": ("pull", ".3~g", 110),
    "push": ("push", ".3~g", 110),
    "gradient_norm": ("norm of the gradient", ".3~g", 110),
    "effective_rank": ("effective dimensions", ".3~g", 110),
    "spread": ("spread of the batch", ".3~g", 110),
    "norm": ("length of embeddings", ".3~g", 110),
    "alignment": ("alignment", ".3~g", 110),
    "uniformity": ("uniformity", ".3~g", 110),
    "covering_radius": ("covering radius", ".3~g", 110),
    "learning_rate": ("learning rate", ".2~e", 90),
}
# factor for the panel heights if a single run is shown, so that the run's summary and curves fit in the window
ALONE = 0.5
SHARES = tuple(title for title, unit, _ in PANELS.values() if unit.endswith("%"))
HOW = "Logarithmic above the smallest nonzero value, linear below it so that 0 can be drawn; shares stay linear"
MOST_SMOOTHING = 0.99
SMOOTH = (
    "Weight of the past in an exponential moving average, debiased as in TensorBoard: 0.9 averages over about ten "
    "points. The raw values stay visible as a faint line"
)
FIRST = ("loss", "validation", "active", "tcm", "member_weights")
# (label in the legend, histories of one run or of a group of runs)
Histories = Sequence[tuple[str, Sequence[RunHistory]]]
# (label, [(history, file offset up to which it was read)]). A history grows, so cache keys must include the offset.
AsRead = Sequence[tuple[str, Sequence[tuple[RunHistory, int]]]]


def show(runs: Sequence[Run], forks: Sequence[int] = (), *, table: bool = True) -> None:
    """Show the training curves of the selected runs in shared charts, and a verdict on their test scores.

    `forks` lists the steps at which runs were forked; if `table` is True, a table of scores is shown.
    """
    histories = [(titles.label(run), run_reader.reader().history(run)) for run in runs]
    band = "The band is the range of the loss within a few steps"
    ends = [int(step) for step in histories[0][1].projections.arrays()[0]] if len(histories) == 1 else []
    if ends:
        band += "; a vertical line marks the end of a projection, when the proxies were moved to new samples"
    if _curves([(name, [history]) for name, history in histories], runs, [*forks, *ends], band):
        drawn(_scores, [run.spec for run in runs], _as_read([(name, [history]) for name, history in histories]), table)


def show_groups(groups: Sequence[tuple[str, Sequence[Run]]]) -> None:
    """Show one mean curve for each (name, runs) group, and a verdict on the test scores of all runs."""
    histories = [(name, [run_reader.reader().history(run) for run in runs]) for name, runs in groups]
    every = [run for _, runs in groups for run in runs]
    if _curves(histories, every, (), "A line is the mean of a group; its band spans the lowest to the highest run"):
        _verdict([run.spec for run in every], [history for _, members in histories for history in members])


def _curves(histories: Histories, runs: Sequence[Run], forks: Sequence[int], band: str) -> bool:
    """Show the curves with their controls; return False if there are no curves yet.

    `band` is the text that explains the shaded bands.
    """
    there = [name for name in PANELS if any(_has(each, name) for _, members in histories for each in members)]
    if not there:
        st.caption("Curves appear with the first steps.")
        return False
    # the container for the curves is above the controls, so that the curves are visible together with the run
    drawing = st.container()
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        chosen = _chosen(there)
        panels = derived(_panels, _as_read(histories), chosen)
        smoothing = st.slider(
            "Smoothing", 0.0, MOST_SMOOTHING, 0.0, 0.01, key="smooth", bind="query-params", help=SMOOTH, width=260
        )
        if _spans(panels) and st.toggle("Logarithmic axes", key="curves-log", bind="query-params", help=HOW):
            panels = derived(_all_logarithmic, panels)
    if panels:
        steps = max(run.state().steps for run in runs)
        with drawing:
            drawn(_draw_curves, panels, steps, tuple(forks), smoothing)
    st.caption(
        f"Hover to read values at the same step in all panels. {band}. "
        "Active tuples are the triplets or pairs of a loss with a nonzero gradient. Test scores use the "
        "best-validation checkpoint."
    )
    return True


def _as_read(histories: Histories) -> AsRead:
    return [(name, [(history, history.offset) for history in members]) for name, members in histories]


def _panels(read: AsRead, chosen: Sequence[str]) -> list[CurvePanel]:
    histories = [(name, [history for history, _ in members]) for name, members in read]
    return [_panel(name, histories) for name in PANELS if name in chosen]


def _draw_curves(panels: Sequence[CurvePanel], steps: int, forks: Sequence[int], smoothing: float) -> None:
    shown = ", ".join(panel.title for panel in panels)
    chart("curves", linked(panels, steps=steps, forks=forks, smoothing=smoothing), f"Over the steps: {shown}")


def _chosen(there: Sequence[str]) -> list[str]:
    """Let the user choose the panels to show in a popover, and return them; the default is those in FIRST.

    `there` lists the panels with data.
    """
    first = [name for name in FIRST if name in there]
    if len(there) == len(first):
        return first
    # the user may have chosen panels for other runs that these runs lack
    kept = [name for name in st.session_state.get("curves-shown", first) if name in there]
    if kept != st.session_state.get("curves-shown"):
        st.session_state["curves-shown"] = kept
    with st.popover("More curves", icon=":material/show_chart:", key="open-curves"):
        chosen = st.pills(
            "Curves",
            there,
            selection_mode="multi",
            key="curves-shown",
            format_func=lambda name: PANELS[name][0],
            label_visibility="collapsed",
        )
    return list(chosen)


def _series(history: RunHistory, name: str) -> run_reader.Series:
    own = {"loss": history.loss, "validation": history.validation, "active": history.active}
    return own.get(name) or history.measures.get(name) or run_reader.Series()


def _has(history: RunHistory, name: str) -> bool:
    return len(_series(history, name)) > 0 or name in history.members


def _positive(panel: CurvePanel) -> list[float]:
    return [value for curve in panel.curves for value in curve.values if 0 < value < math.inf]


def _spans(panels: Sequence[CurvePanel]) -> bool:
    """Return True if a panel has several positive values, so that a logarithmic axis is useful.

    Panels in percent are ignored, because they stay linear.
    """
    return any(panel.title not in SHARES and len(set(_positive(panel))) > 1 for panel in panels)


def _logarithmic(panel: CurvePanel) -> CurvePanel:
    """Return the panel with an axis that is logarithmic above its smallest positive value.

    A panel in percent is returned unchanged.
    """
    positive = _positive(panel)
    if panel.title in SHARES or not positive:
        return panel
    bend, top = max(min(positive), max(positive) / 1e6), max(positive)
    decades = range(math.ceil(math.log10(bend)), math.floor(math.log10(top)) + 1)
    return replace(panel, bend=bend, ticks=(0.0, *(10.0**decade for decade in decades)))


def _all_logarithmic(panels: Sequence[CurvePanel]) -> list[CurvePanel]:
    return [_logarithmic(panel) for panel in panels]


def _panel(name: str, histories: Histories) -> CurvePanel:
    title, unit, height = PANELS[name]
    curves = [_curve(label, [_series(history, name) for history in runs]) for label, runs in histories]
    curves += _of_members(name, histories)
    levels: tuple[tuple[str, float], ...] = ()
    # no horizontal line for the untrained network, because the curve starts with its score at step 0
    if name == "validation":
        every = [history for _, members in histories for history in members]
        raw = {history.baselines.get(("inputs", "validation"), {}).get("map_at_r") for history in every}
        if len(raw) == 1 and (level := raw.pop()) is not None:
            levels = (("inputs", level),)
    height = round(height * (ALONE if len(histories) == 1 else 1))
    return CurvePanel(title, [curve for curve in curves if len(curve.steps)], unit=unit, height=height, levels=levels)


def _of_members(name: str, histories: Histories) -> list[RunCurve]:
    """Return one curve per run and ensemble member; labels omit the run if there is only one run."""
    curves = []
    for label, runs in histories:
        every = [history.members.get(name, {}) for history in runs]
        for member in dict.fromkeys(loss for losses in every for loss in losses):
            words = BESIDE.get(member, member.replace("_", " "))
            series = [losses[member] for losses in every if member in losses]
            curves.append(_curve(words if len(histories) == 1 else f"{words} · {label}", series))
    return curves


def _curve(label: str, series: Sequence[run_reader.Series]) -> RunCurve:
    """Return the curve of a run, or the mean curve of several runs."""
    curves = [RunCurve(label, *each.arrays()) for each in series]
    return curves[0] if len(curves) == 1 else averaged(label, curves)


def score_columns(score: Row) -> dict[str, Any]:
    """Return the cells {column title: text} of a table of scores for a "scores" row of metrics.jsonl."""
    recall = {f"R@{k}": percent(value) for k, value in score["recall_at"].items()}
    shown = {name: entry.title for name, entry in SCORES.items() if entry.shown and name != "map_at_r"}
    columns = {title: percent(score[name]) for name, title in shown.items() if score.get(name) is not None}
    return {"MAP@R": percent(score["map_at_r"])} | recall | columns


def _scores(specs: Sequence[RunSpec], read: AsRead, table: bool) -> None:
    histories = [(name, history) for name, members in read for history, _ in members]
    rows = []
    for spec, (name, history) in zip(specs, histories, strict=True):
        for subject in REPRESENTATIONS:
            if score := history.scores.get(subject):
                words = representation(subject, pretrained=bool(spec.model.start))
                rows.append(
                    {"run": name, "embedding": mark_transductive(words, score.get("transductive"))}
                    | score_columns(score)
                )
    if not rows:
        return
    st.subheader("Scores on the test split", anchor=False)
    _verdict(specs, [history for _, history in histories])
    if len(histories) == 1:
        rows = [{key: value for key, value in row.items() if key != "run"} for row in rows]
    if table:
        # the width of a column is taken from its first values, which "–" would make too narrow
        narrow = [key for key in rows[-1] if any(key not in row for row in rows)]
        wide = {key: st.column_config.TextColumn(width=70) for key in narrow}
        st.dataframe(rows, hide_index=True, key="scores", width="content", placeholder="–", column_config=wide)
    if any("trained" not in history.scores for _, history in histories):
        st.caption("The trained network is tested at the end of the run.")


def _verdict(specs: Sequence[RunSpec], histories: Sequence[RunHistory]) -> None:
    """Show a verdict that compares the test MAP@R of the runs with the baselines.

    Runs that differ only in the seed form one variant; their differences estimate the noise.
    """
    values: dict[str, dict[int, float]] = {}
    against: dict[str, dict[str, dict[int, float]]] = {}
    tested = set()
    for spec, history in zip(specs, histories, strict=True):
        if (score := history.scores.get("trained", {}).get("map_at_r")) is None:
            continue
        name = f"{titles.data_title(spec.data.name)} · {titles.loss_title(spec.loss.name)}"
        key = spec.model_copy(update={"name": "", "seed": 0}).digest()
        name = mark_transductive(name, spec.conditioning.transductive)
        label = name if len(specs) == 1 else f"{name} ({key[:4]})"
        values.setdefault(label, {})[spec.seed] = score
        rows = [*history.scores.values(), *history.baselines.values()]
        for subject, scores in verdicts.baselines(rows, started=bool(spec.model.start)).items():
            if subject in verdicts.NAMES and "map_at_r" in scores:
                against.setdefault(subject, {}).setdefault(label, {})[spec.seed] = scores["map_at_r"]
        tested.add(spec.data.model_dump_json())
    if len(tested) != 1:  # scores on different test samples cannot be compared
        return
    verdict = verdicts.verdict(values, against, things="settings", measure="test MAP@R")
    gained = gain(histories[0].scores, started=bool(specs[0].model.start)) if len(specs) == 1 else None
    sentences = [gained.words] if gained else []
    sentences += [verdict.headline, *verdict.more]
    st.markdown(f"**{sentences[0]}** {' '.join(sentences[1:])}")
    if max(map(len, values.values())) > 1:
        st.caption(verdicts.CLEARLY)
