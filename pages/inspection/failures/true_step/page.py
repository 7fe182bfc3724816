"""The true step beside the one on three embeddings: a button that starts the job, and what came of it, as it grows."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore import losses
from dmlcore.inspection.failure import true_step
from dmlcore.inspection.failure.one_step import NeighbourRanks, RetrievalFailure
from dmlcore.inspection.failure.true_step import Question
from dmlcore.jobs.launch import Job
from dmlcore.storage.runs import Run
from pages.inspection.failures import words as failure_words
from pages.inspection.failures.service import asked as step_size
from pages.inspection.failures.state import Home, RealScene, losses_to_compare
from pages.shared.widgets import job_button

OF = ("query", "right", "wrong")


def show(run: Run, triplet: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    """The section below the plane. of: the three samples; case, home: of their triplet."""
    st.subheader("The true step", anchor=False)
    st.markdown(
        "A network cannot move three embeddings alone: its weights move, and with them every embedding. This takes one "
        "step of the run's own optimiser on this triplet as it is in the data, with the sliders above, from the "
        "weights of the last evaluation, and embeds the whole test split again, once for each loss. The run itself is "
        "left as it is."
    )
    step = Job(run).state()
    busy = step is not None and step.task == "true-step" and Job(run).busy()
    with st.container(horizontal=True):
        for key, label, whole in (
            ("true_step", "Take the true step with this loss", False),
            ("true_steps", "With every loss", True),
        ):
            st.button(
                label,
                key=key,
                icon=":material/model_training:",
                disabled=busy,
                on_click=_begin,
                args=(run, triplet, home, whole),
            )
    if busy and job_button.busy(run, "step", lambda: _result(run, triplet, case, home)):
        return
    job_button.failed(run, "true-step")
    _result(run, triplet, case, home)


def _result(run: Run, triplet: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    step = true_step.read(_path(run, triplet))
    if step is None:
        return
    before, rows = step["before"], [name for name in losses.names() if name in step["after"]]
    free = _free_steps(case, {name: step["after"][name]["hyper"] for name in rows})
    drawn = RealScene.from_query(st.query_params.to_dict(), RealScene.at(home)).loss
    if rows:
        name = drawn if drawn in rows else rows[0]
        st.text(failure_words.why(name, before, step["after"][name], free[name], run.spec.optimiser))
    st.dataframe(
        [_row(name, step["after"][name], before, free[name]) for name in rows],
        column_config={
            "loss": st.column_config.TextColumn("Loss", width="medium"),
            "settings": st.column_config.TextColumn("With", width="medium"),
            "free": st.column_config.TextColumn("Right P, free step", help="of the three embeddings alone, as above"),
            "right": st.column_config.TextColumn("Right P, true step", help="its rank; lower is better"),
            "wrong": st.column_config.TextColumn("Wrong N, true step", help="its rank; higher is better"),
            "ap": st.column_config.TextColumn("AP@R of the query, %"),
            "map": st.column_config.TextColumn("MAP@R of all queries, %", help="what the step does to everything else"),
        },
        hide_index=True,
        height="content",
    )
    st.caption(
        f"One step of {step['rule']}, without the memory of earlier steps; batch norm and dropout as in evaluation. A "
        "single triplet is no batch: a training run steps by the mean over many at once."
    )


def _free_steps(case: RetrievalFailure, hyper: dict[str, true_step.Hyper]) -> dict[str, NeighbourRanks]:
    """Where one step of each loss puts the three embeddings alone, by the step size of the link."""
    rate, way = step_size(st.query_params.to_dict())
    compared = [losses.create(name, **given) for name, given in hyper.items()]
    steps = case.steps(compared, rate, length=rate if way == "length" else None) if compared else []
    return {name: step.after for name, step in zip(hyper, steps, strict=True)}


def _row(name: str, after: dict[str, Any], before: dict[str, Any], free: NeighbourRanks) -> dict[str, str]:
    formula = losses.formula(name)
    given = {k: v for k, v in after["hyper"].items() if v is not None and v != formula.defaults.get(k)}
    row = {"loss": formula.title, "settings": ", ".join(f"{k} = {v}" for k, v in given.items()) or "defaults"}
    row["free"] = f"{before['right']:,} → {free.right:,}"
    if not after["active"]:
        return (
            row
            | {"settings": f"{row['settings']}; no force"}
            | {
                "right": f"{before['right']:,}",
                "wrong": f"{before['wrong']:,}",
                "ap": _percent(before["ap"]),
                "map": _percent(before["map_at_r"]),
            }
        )
    return row | {
        "right": f"{before['right']:,} → {after['right']:,}",
        "wrong": f"{before['wrong']:,} → {after['wrong']:,}",
        "ap": f"{_percent(before['ap'])} → {_percent(after['ap'])}",
        "map": f"{_percent(before['map_at_r'])} → {_percent(after['map_at_r'])}",
    }


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _begin(run: Run, triplet: dict[str, Any], home: Home, whole: bool) -> None:
    """Start the job with the sliders of the link, which the plane keeps up to date: the drawn loss first or alone."""
    scene = RealScene.from_query(st.query_params.to_dict(), RealScene.at(home))
    compared = {loss.formula.name: dict(loss.hyper) for loss in losses_to_compare(scene)}
    asked = {scene.loss: compared[scene.loss]} | (compared if whole else {})
    job_button.begin(run, "true-step", Question(triplet["query"], triplet["right"], triplet["wrong"], asked).to_json())


def _path(run: Run, triplet: dict[str, Any]) -> Any:
    return true_step.path_of(run, *(triplet[name] for name in OF))
