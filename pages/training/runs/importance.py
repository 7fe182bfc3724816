"""Importance of settings: a parallel-coordinates plot of finished runs, and the variance explained by each setting."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from dmlcore.experiments import importance
from dmlcore.experiments.importance import FEW, LEAST
from dmlcore.figures.importances import bars
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.shared.state import run_reader
from pages.shared.widgets.chart import chart
from pages.shared.words import sentences as words
from pages.shared.words import titles

SCORES = {"validation": "best validation MAP@R", "test": "test MAP@R"}
MOST_LINES = 10  # settings shown as axes
GREY, STRONG = "rgb(127, 127, 127)", "rgb(213, 94, 0)"  # line colours of the worst and the best run


def show(runs: Sequence[Run]) -> None:
    """Show the importance of settings, computed from the finished runs among `runs` on the selected data set."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        score = st.segmented_control(
            "Score",
            list(SCORES),
            default="validation",
            required=True,
            format_func=SCORES.__getitem__,
            key="mattered-score",
            help="Choose settings by the validation score; choosing by the test score overfits to the test split",
        )
        scored = _scored(runs, str(score))
        data = _data(scored)
    scored = [each for each in scored if each[0].spec.data.name == data]
    if len(scored) < LEAST:
        info = f"Importance needs at least {LEAST} runs. Finished runs with this score: {len(scored)}."
        st.info(info, icon=":material/info:")
        return
    known = tuple((run.id, value) for run, value in scored)
    dark = st.context.theme.type == "dark"
    figure, shares, points, alike = _computed(str(scored[0][0].path.parent), known, str(score), dark)
    if not figure:
        st.info("These runs have the same settings.", icon=":material/info:")
        return
    _verdict(shares, points)
    st.plotly_chart(
        json.loads(figure), key="mattered-lines", theme="streamlit", alt="One line per run, across its settings"
    )
    if shares:
        chart("mattered-shares", bars(shares), f"Share of the variance: {_listed(shares)}")
    st.caption(
        f"Based on {len(scored)} finished runs on {titles.data_title(data)} with {points} different settings. "
        "fANOVA share: the part of the score variance that a setting explains alone. A share no larger than the "
        "seed's is noise. Settings that always change together share their effect." + alike
    )


def _scored(runs: Sequence[Run], score: str) -> list[tuple[Run, float]]:
    """Return the finished runs that have the score ("validation" or "test"), each with its MAP@R in 0..1."""
    read = run_reader.reader()
    pairs: list[tuple[Run, float | None]] = []
    for run in runs:
        try:
            if run.state().state == "done":
                test = read.scores(run).get("trained", {}).get("map_at_r")
                pairs.append((run, read.best_validation(run) if score == "validation" else test))
        except RunError:
            continue
    return [(run, value) for run, value in pairs if value is not None]


def _data(scored: Sequence[tuple[Run, float]]) -> str:
    """Show a select box if there are several data sets; return the selected one, by default that with the most runs.

    Returns "" if `scored` is empty.
    """
    counts = Counter(run.spec.data.name for run, _ in scored)
    names = [name for name, _ in counts.most_common()]
    if len(names) < 2:
        return "".join(names)
    if st.session_state.get("mattered-data") not in names:
        st.session_state["mattered-data"] = names[0]
    return st.selectbox("Data set", names, key="mattered-data", format_func=titles.data_title, width=260)


@st.cache_data(max_entries=16, show_spinner="Computing the importance of settings")
def _computed(
    root: str, known: tuple[tuple[str, float], ...], score: str, dark: bool
) -> tuple[str, dict[str, float], int, str]:
    """Return a figure as JSON, the fANOVA share of each setting, the number of combinations of settings, and a note.

    The note names settings that always change together. The figure is "" if no setting varies. `known` holds (run ID,
    score) pairs.
    """
    # imported here, because optuna and plotly are slow to import and only this panel needs them
    from optuna import visualization

    store, read = RunStore(root), run_reader.reader()
    runs = [(read.settings(store.open(run_id)), value) for run_id, value in known]
    made = importance.trials(runs, title=words.setting, word=words.value)
    if not made.keys:
        return "", {}, 0, ""
    shares = importance.importances(made)
    axes = [name for name in shares or made.keys if made.keys[name] != "seed"][:MOST_LINES] or list(made.keys)
    figure = visualization.plot_parallel_coordinate(
        made.study, params=axes, target=lambda trial: 100 * float(trial.value or 0), target_name=f"{SCORES[score]}, %"
    )
    named = [titles.label(store.open(run_id)) for run_id, _ in known]
    _restyle(figure, [value for _, value in known], named, dark=dark)
    alike = "".join(
        f" {name} was always changed together with {', '.join(map(words.setting, others))}."
        for name, others in made.alike.items()
    )
    text: Any = figure.to_json()
    return str(text), shares, made.points, alike


def _restyle(figure: Any, scores: Sequence[float], names: Sequence[str], *, dark: bool) -> None:
    """Colour the lines of Optuna's figure by score rank, from grey (worst) to orange (best, drawn on top)."""
    from plotly import colors

    order = sorted(range(len(scores)), key=scores.__getitem__)
    *lines, _ = figure.data  # the last trace only holds the colour bar
    for rank, place in enumerate(order):
        line, height = lines[place], rank / max(1, len(order) - 1)
        line.line.color = colors.find_intermediate_color(GREY, STRONG, height, colortype="rgb")
        line.line.width, line.opacity = 1 + 1.5 * height, 0.4 + 0.5 * height
        line.hovertemplate = f"%{{customdata[0]}}: %{{customdata[1]}}<br>{escape(names[place])}<extra></extra>"
    figure.data = [lines[place] for place in order]
    ink, ground = (
        ("rgb(214, 219, 226)", "rgba(18, 22, 28, 0.8)") if dark else ("rgb(60, 66, 74)", "rgba(255, 255, 255, 0.8)")
    )
    low, high = 100 * min(scores), 100 * max(scores)
    for tick in figure.layout.annotations:
        tick.text = _score_tick(tick.y, low, high) if tick.x == 0 and high > low else _written_out(tick.text)
    figure.update_annotations(font={"color": ink, "size": 12}, bgcolor=ground, borderpad=1)
    figure.update_layout(title=None, height=330, margin={"l": 60, "r": 40, "t": 10, "b": 40})
    figure.update_layout(plot_bgcolor="rgba(0,0,0,0)", hoverlabel_namelength=-1)


def _score_tick(height: float, low: float, high: float) -> str:
    """Format the score at `height` (0 to 1) of an axis from `low` to `high`, with enough digits to tell ticks apart."""
    digits = max(1, math.ceil(-math.log10((high - low) / 10)))
    return f"{low + height * (high - low):.{digits}f}"


def _written_out(tick: str) -> str:
    """Return a tick label without scientific notation, for example 3,000 for Optuna's 3e+03."""
    return f"{float(tick):,.0f}" if re.fullmatch(r"-?\d(\.\d+)?e\+\d+", tick) else tick


def _verdict(shares: dict[str, float], points: int) -> None:
    """Show which setting explains most of the variance; warn if there are too few distinct combinations (`points`)."""
    if not shares:
        return
    first, share = next(iter(shares.items()))
    head = f"**{first} mattered most: {100 * share:.0f} % of the variance.**"
    if points < FEW:
        head += f" With {points} different settings this is unreliable; a ranking needs about {FEW}."
    st.markdown(head)


def _listed(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
