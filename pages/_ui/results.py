"""What came of runs: their curves laid over each other, and their scores before and after training."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dmlcore.figures.curves import Curve, Panel, linked
from dmlcore.runs import Run
from pages._ui import live
from pages._ui.live import percent

REPRESENTATIONS = {
    "inputs": "raw input",
    "untrained": "untrained network",
    "trained": "trained network",
}


def show(runs: Sequence[Run]) -> None:
    """Curves and test scores of the selected runs, laid over each other."""
    histories = [(live.label(run), live.reader().history(run)) for run in runs]
    panels = [
        Panel("loss", [Curve(name, *history.loss.arrays()) for name, history in histories], height=200),
        Panel(
            "validation MAP@R",
            [Curve(name, *history.validation.arrays()) for name, history in histories],
            unit=".3~%",
        ),
        Panel(
            "active triplets",
            [Curve(name, *history.active.arrays()) for name, history in histories],
            unit=".3~%",
            height=110,
        ),
    ]
    panels = [panel for panel in panels if any(len(curve.steps) for curve in panel.curves)]
    if not panels:
        st.caption("Curves appear with the first steps.")
        return
    spec, columns = linked(panels, steps=max(run.state().steps for run in runs))
    st.subheader("Curves", anchor=False)
    st.vega_lite_chart(
        columns,
        spec,
        width="stretch",
        key="curves",
        alt="Loss, validation MAP@R and share of active triplets over the steps",
    )
    st.caption(
        "Hover to read values at the same step in all panels. The band is the range of the loss within a few steps; "
        "active triplets are those that still move a point. Tested are the weights with the best validation MAP@R."
    )
    _scores(runs, histories)


def _scores(runs: Sequence[Run], histories: Sequence[tuple[str, live.History]]) -> None:
    rows = []
    for name, history in histories:
        for of, words in REPRESENTATIONS.items():
            if score := history.scores.get(of):
                recall = {f"R@{k}": percent(value) for k, value in score["recall_at"].items()}
                rows.append({"run": name, "embedding": words, "MAP@R": percent(score["map_at_r"])} | recall)
    if not rows:
        return
    st.subheader("Scores on the test part", anchor=False)
    if len(histories) == 1:
        rows = [{key: value for key, value in row.items() if key != "run"} for row in rows]
    st.dataframe(rows, hide_index=True, key="scores", width="content")
    if any("trained" not in history.scores for _, history in histories):
        st.caption("The trained network is tested at the end of the run.")
