"""The true step beside the one on three embeddings: a button that starts the job, and what came of it, as it grows."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from dmlcore import losses
from dmlcore.inspection.failure import true_step
from dmlcore.inspection.failure.one_step import NeighbourRanks, RetrievalFailure
from dmlcore.inspection.failure.true_step import Question
from dmlcore.jobs import launch
from dmlcore.storage.runs import START_GRACE, Run, RunError
from pages.inspection.failures import words as failure_words
from pages.inspection.failures.service import asked as step_size
from pages.inspection.failures.state import Home, RealScene, losses_to_compare
from pages.shared.words import sentences as words

OF = ("query", "right", "wrong")


def show(run: Run, of: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    """The section below the plane. of: the three samples; case, home: of their triplet."""
    st.subheader("The true step", anchor=False)
    st.markdown(
        "A network cannot move three embeddings alone: its weights move, and with them every embedding. This takes one "
        "step of the run's own optimiser on this triplet as it is in the data, with the sliders above, from the "
        "weights of the last evaluation, and embeds the whole test part again, once for each loss. The run itself is "
        "left as it is."
    )
    busy = _working(run, of)
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
                args=(run, of, home, whole),
            )
    _follow(run, of, case, home, busy)


@st.fragment(run_every="1s")
def _watched(run: Run, of: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    if not _working(run, of):
        st.rerun()
    asked = st.session_state[_key(run, of)]
    st.info(
        f"Stepping and embedding the test part, {time.monotonic() - asked['at']:.0f} s …",
        icon=":material/hourglass_top:",
    )
    _result(run, of, case, home)


def _follow(run: Run, of: dict[str, Any], case: RetrievalFailure, home: Home, busy: bool) -> None:
    if busy:
        _watched(run, of, case, home)
        return
    asked = st.session_state.pop(_key(run, of), None)
    if asked and _stamp(run, of) == asked["before"]:
        st.error("The step ended without a result. The last lines of the log:", icon=":material/error:")
        st.code("\n".join(run.log_tail(6)) or "the log is empty", language=None)
    _result(run, of, case, home)


def _result(run: Run, of: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    found = true_step.read(_path(run, of))
    if found is None:
        return
    before, rows = found["before"], [name for name in losses.names() if name in found["after"]]
    free = _free_steps(case, {name: found["after"][name]["hyper"] for name in rows})
    drawn = RealScene.from_query(st.query_params.to_dict(), RealScene.at(home)).loss
    if rows:
        name = drawn if drawn in rows else rows[0]
        st.text(failure_words.why(name, before, found["after"][name], free[name], run.spec.optimiser))
    st.dataframe(
        [_row(name, found["after"][name], before, free[name]) for name in rows],
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
        f"One step of {found['rule']}, without the memory of earlier steps; batch norm and dropout as in evaluation. A "
        "single triplet is no batch: a training steps by the mean over many at once."
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


def _begin(run: Run, of: dict[str, Any], home: Home, whole: bool) -> None:
    """Start the job with the sliders of the link, which the plane keeps up to date: the drawn loss first or alone."""
    scene = RealScene.from_query(st.query_params.to_dict(), RealScene.at(home))
    compared = {loss.formula.name: dict(loss.hyper) for loss in losses_to_compare(scene)}
    asked = {scene.loss: compared[scene.loss]} | (compared if whole else {})
    try:
        launch.true_step(run, Question(of["query"], of["right"], of["wrong"], asked).to_json())
    except (launch.JobError, RunError, OSError) as error:
        st.toast(words.plain(error), icon=":material/error:")
        return
    st.session_state[_key(run, of)] = {"at": time.monotonic(), "seen": False, "before": _stamp(run, of)}


def _working(run: Run, of: dict[str, Any]) -> bool:
    """Whether the job that this session asked for is under way or about to be."""
    asked = st.session_state.get(_key(run, of))
    if asked is None:
        return False
    if run.alive():
        asked["seen"] = True
        return True
    return not asked["seen"] and time.monotonic() - asked["at"] < START_GRACE and _stamp(run, of) == asked["before"]


def _path(run: Run, of: dict[str, Any]) -> Any:
    return true_step.path_of(run, *(of[name] for name in OF))


def _stamp(run: Run, of: dict[str, Any]) -> int:
    path = _path(run, of)
    return path.stat().st_mtime_ns if path and path.exists() else 0


def _key(run: Run, of: dict[str, Any]) -> str:
    return f"true step:{run.id}:{[of[name] for name in OF]}"
