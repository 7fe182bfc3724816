"""Section on the true step, which is an optimiser step on the weights: buttons that start the job, and its results."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore import losses
from dmlcore.inspection.failure import answers, true_step
from dmlcore.inspection.failure.best_loss import BestLoss, best_loss
from dmlcore.inspection.failure.one_step import NeighbourRanks, RetrievalFailure
from dmlcore.storage.runs import Run
from pages.inspection.failures import words as failure_words
from pages.inspection.failures.address import OF
from pages.inspection.failures.service import asked as step_size
from pages.inspection.failures.state import Home, RealScene, losses_to_compare
from pages.inspection.failures.true_step import table
from pages.shared.widgets import job_button


def show(run: Run, triplet: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    """Show the section on the true step, including stored results if there are any.

    Args:
        triplet: ID of the run, and the data set indices of the query and its correct and incorrect neighbour.
        case: The retrieval failure of this triplet.
        home: The initial view of this triplet.
    """
    with st.container(key="true_step_head"):
        st.subheader("The true step", anchor=False)
    st.markdown(
        "Take one real optimiser step on this triplet and rank the whole test split again.",
        help="A real step changes the weights and thus every embedding. It uses the loss and the parameters chosen "
        "above, and the original embeddings even if you dragged points. The run is not changed.",
    )
    if run.spec.conditioning.neighbours:
        st.info(answers.READ_TOGETHER, icon=":material/info:")
        return
    busy = job_button.at_work(run, "true-step")
    with st.container(horizontal=True):
        for key, label, whole in (
            ("true_step", "Take the step with this loss", False),
            ("true_steps", "Take the step with every loss", True),
        ):
            st.button(
                label,
                key=key,
                icon=":material/model_training:",
                disabled=busy,
                on_click=_begin,
                args=(run, triplet, home, whole),
            )
    if not job_button.follow(run, "true-step", busy, lambda: _result(run, triplet, case, home)):
        _result(run, triplet, case, home)


def _result(run: Run, triplet: dict[str, Any], case: RetrievalFailure, home: Home) -> None:
    step = true_step.read(_path(run, triplet))
    if step is None:
        return
    before, rows = step["before"], [name for name in losses.names() if name in step["after"]]
    scene, (rate, way) = RealScene.from_query(query := st.query_params.to_dict(), RealScene.at(home)), step_size(query)
    free = _free_steps(case, {name: step["after"][name]["hyper"] for name in rows}, rate, way)
    if rows:
        _verdict(before, {name: step["after"][name] for name in rows})
        name = scene.loss if scene.loss in rows else rows[0]
        st.text(failure_words.why(name, before, step["after"][name], free[name], run.spec.optimiser))
    st.dataframe(
        table.of_steps(before, {name: step["after"][name] for name in rows}, free),
        column_config={
            "loss": st.column_config.TextColumn("Loss", width="medium"),
            "settings": st.column_config.TextColumn("With", width="medium"),
        }
        | {key: st.column_config.NumberColumn(each.title, help=each.help) for key, each in table.COLUMNS.items()},
        hide_index=True,
        height="content",
    )
    same = f"equal rate η = {rate:g}" if way == "rate" else f"equal length δ = {rate:g}"
    st.caption(
        f"Free: only A, P and N move, as in the table above ({same}). True: one step of {step['rule']} without "
        "optimiser state, with batch norm and dropout in evaluation mode. Training steps average over many triplets. "
        f"{failure_words.held_equal(run.spec.optimiser)}"
    )


def _verdict(before: dict[str, Any], after: dict[str, dict[str, Any]]) -> None:
    """Show which losses rank the query best after the true step, and the effect of that step on all other queries."""
    lead, best = _judged(before, after)
    kindest = max(best.names, key=lambda name: after[name]["map_at_r"] or 0.0)
    others = failure_words.price(before["map_at_r"], after[kindest]["map_at_r"]) if best.gain > 0 else ""
    if others and len(best.names) > 1:
        others = f"With {losses.describe(kindest).title}, {others}"
    only = "" if len(after) == len(losses.names()) else f"{len(after)} of {len(losses.names())} losses done so far."
    show = st.success if best.gain > 0 else st.info
    show(" ".join(filter(None, (f"**{lead}**", others, failure_words.JUDGED, only))), icon=":material/star:")


def _judged(before: dict[str, Any], after: dict[str, dict[str, Any]]) -> tuple[str, BestLoss]:
    ranks = {name: ranks_of(each) for name, each in after.items()}
    best = best_loss(ranks_of(before), ranks)
    return failure_words.verdict(best, ranks_of(before), ranks), best


def last_word(run: Run, triplet: dict[str, Any]) -> str:
    """Return the verdict on the true steps stored for a triplet; "" if there are none."""
    step = true_step.read(_path(run, triplet))
    after = {name: step["after"][name] for name in losses.names() if name in step["after"]} if step else {}
    if step is None or not after:
        return ""
    taken, known = len(after), len(losses.names())
    lead, _ = _judged(step["before"], after)
    return lead if taken == known else f"{lead} ({taken} of {known} losses done so far.)"


def ranks_of(standing: dict[str, Any]) -> NeighbourRanks:
    return NeighbourRanks(standing["right"], standing["wrong"], standing["ap"])


def _free_steps(
    case: RetrievalFailure, hyper: dict[str, answers.Hyper], rate: float, way: str
) -> dict[str, NeighbourRanks]:
    """Return the ranks after one step of each loss that moves only the three embeddings.

    Args:
        hyper: Parameters of each loss, by name.
        rate: Size of the step.
        way: "length" or "rate": the quantity that is equal for all losses.
    """
    compared = [losses.create(name, **given) for name, given in hyper.items()]
    steps = case.steps(compared, rate, length=rate if way == "length" else None) if compared else []
    return {name: step.after for name, step in zip(hyper, steps, strict=True)}


def _begin(run: Run, triplet: dict[str, Any], home: Home, whole: bool) -> None:
    """Start the job for the chosen loss or, if `whole`, for all losses, with the loss parameters in the URL."""
    scene = RealScene.from_query(st.query_params.to_dict(), RealScene.at(home))
    compared = {loss.formula.name: dict(loss.hyper) for loss in losses_to_compare(scene)}
    asked = {scene.loss: compared[scene.loss]} | (compared if whole else {})
    question = answers.Question(triplet["query"], triplet["right"], triplet["wrong"], asked)
    job_button.begin(run, "true-step", question.to_json())


def _path(run: Run, triplet: dict[str, Any]) -> Any:
    return true_step.path_of(run, *(triplet[name] for name in OF))
