"""Loss reference on the Errata page: properties of one loss, computed by dmlcore.published.reference."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dmlcore import losses
from dmlcore.published import karaman
from dmlcore.published.errata import errata
from dmlcore.published.reference import Reference, hyper_text, parameter_rows, reference, tried_text
from pages.shared.state import untrusted
from pages.shared.widgets import menu
from pages.shared.widgets.live_component import explained

POINTS = ("a", "p", "n")
EDGES = (r"\text{pull along }ap", r"\text{push along }an", r"\text{push along }pn")


@st.fragment
def show(to_erratum: Callable[[int], None]) -> None:
    """Show a select box for the loss and the reference of that loss; `to_erratum(number)` opens an erratum about it."""
    names = losses.names()
    with explained():
        asked = untrusted.loss_name(st.query_params.get("loss"), names[0])
    name = st.selectbox(
        "Loss",
        names,
        index=names.index(asked),
        format_func=lambda n: losses.formula(n).title,
        key=f"reference {asked}",
        on_change=_follow,
        args=(f"reference {asked}",),
        width=350,
    )
    one(reference(name))
    _errata(name, to_erratum)


def _follow(key: str) -> None:
    st.query_params.from_dict({"loss": st.session_state[key]})


def one(r: Reference) -> None:
    """Show formula, parameters, gradients, invariances and published results of a loss."""
    formula = r.formula
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(formula.title, anchor=False)
        menu.link("fields", "Open in Fields", {"loss": formula.name})
    st.markdown(formula.sentence)
    row = st.container(horizontal=True, gap="large")
    with row.container(width=600):
        st.latex(rf"E = {r.energy}")
        st.caption(f"{formula.source}. The loss is E clipped below at 0{_upper(r)}.")
        _parameters(r)
        _gradients(r)
    with row.container(width=600):
        _invariances(r)
        _results(r)


def _errata(name: str, to_erratum: Callable[[int], None]) -> None:
    about = [e for e in errata() if name in e.losses]
    if not about:
        return
    st.markdown("**Errata about this loss**")
    with st.container(horizontal=True, gap="medium"):
        for e in about:
            label = f"{e.number}. {e.title}"
            if st.button(label, key=f"truth_to_{e.number}", on_click=to_erratum, args=(e.number,), type="tertiary"):
                st.rerun()  # the errata are drawn outside this fragment


def _upper(r: Reference) -> str:
    clamp = r.formula.clamp
    return f" and above at {clamp.to}" if clamp.to else " and above at m2" if clamp.slider else ""


def _parameters(r: Reference) -> None:
    rows = parameter_rows(r.formula)
    if not rows:
        st.markdown("This loss has no hyper-parameters.")
        return
    lines = ["| | range | default | meaning |", "|:-:|:--|--:|:--|"]
    lines += [f"| ${symbol}$ | {span} | {default} | {meaning} |" for symbol, _, span, default, meaning in rows]
    st.markdown("\n".join(lines))
    if r.tried:
        st.caption(f"Tried in the thesis: {tried_text(r)}.")


def _gradients(r: Reference) -> None:
    form = r.closed_form
    if form is None:
        return
    st.markdown("**Gradients** of the energy before the clamp, verified against automatic differentiation")
    st.latex(_aligned([rf"\nabla_{x} E" for x in POINTS], form.gradient_latex))
    st.markdown("**Along the edges** (positive pull attracts, positive push repels)")
    st.latex(_aligned(EDGES, form.laws_latex))
    if form.residual:
        st.markdown("**Off the edges**, added to the gradient")
        st.latex(form.residual)
    where = r"u_{xy}=(x-y)/d_{xy}" if any("u_{" in x for x in form.gradient_latex) else ""
    if text := r",\quad ".join(filter(None, (form.where, where))):
        st.caption(f"with ${text}$")


def _aligned(left: tuple[str, ...] | list[str], right: tuple[str, ...]) -> str:
    lines = r"\\ ".join(rf"{x} &= {y}" for x, y in zip(left, right, strict=True))
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"


def _invariances(r: Reference) -> None:
    st.markdown("**Invariances**, computed on random triplets in 2, 3 and 128 dimensions with default parameters")
    lines = [f"| {'✓' if holds else '–'} | {what} | {examples} |" for what, holds, examples in r.invariances.rows]
    st.markdown("\n".join(["| | property | result |", "|:-:|:--|:--|", *lines]))
    st.markdown(r.clamp_off + (f" {r.closed_form.remark}" if r.closed_form and r.closed_form.remark else ""))


def _results(r: Reference) -> None:
    st.markdown("**Published results**")
    if not r.results:
        st.markdown("The thesis has no experiment with this loss.")
        return
    lines = ["| data | best by | R@1 | MAP@R | with | table |", "|:--|:--|--:|--:|:--|:--|"]
    for result in r.results:
        lines += [
            f"| {result.dataset} | {column} | {row.scores['R@1']:.2f} | {row.scores['MAP@R']:.2f} | {hyper_text(row)} "
            f"| {row.table} |"
            for column, row in result.best
        ]
    st.markdown("\n".join(lines))
    st.caption(f"Per cent, Karaman 2021. {karaman.NOISE}")
    for result in r.results:
        rows = karaman.of_loss(r.formula.name, result.dataset)
        with st.expander(f"Rows on {result.dataset}: {len(rows)}"):
            st.dataframe([{"table": row.table, "with": hyper_text(row), **row.scores} for row in rows], hide_index=True)
