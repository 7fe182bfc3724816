"""Computed results for one erratum: printed and correct values, an independent computation of each, and curves."""

from __future__ import annotations

import math

import streamlit as st

from dmlcore.figures import counterexamples as figures
from dmlcore.published import checks
from dmlcore.published.checks import Curve, Decision
from dmlcore.published.errata import Erratum
from pages.library.errata.words import computed_as_stated, literal, six_digits
from pages.shared.state import untrusted
from pages.shared.widgets.chart import chart
from pages.shared.widgets.live_component import explained

PLACE = "at"  # URL parameter that holds the value of the slider


def show(e: Erratum, *, asked: bool) -> None:
    """Show the computed tables of an erratum, and its curve if it has one.

    `asked` is True if the URL names this erratum.
    """
    decisions = checks.decisions(e.number)
    curve = checks.CURVES.get(e.number)
    if curve:
        with explained():
            x = _place(e, curve, asked)
        _decisions((curve.decision(x), *decisions[1:]))
        _drawing(e, curve, x)
    else:
        _decisions(decisions)
    _numbers(e)


def _place(e: Erratum, curve: Curve, asked: bool) -> float:
    """Show the slider for the variable on the curve's horizontal axis; return its value.

    If the URL names this erratum (`asked`), the initial value is read from the URL.
    """
    key = f"truth_at_{e.number}"
    if key not in st.session_state:
        given = st.query_params.get(PLACE) if asked else None
        at = curve.at if given is None else untrusted.bounded(given, curve.low, curve.high, curve.at)
        st.session_state[key] = round(at) if curve.whole else float(at)
    kind = int if curve.whole else float
    x: float = st.slider(
        curve.axis[0].upper() + curve.axis[1:] if curve.axis[:2].isascii() else curve.axis,
        kind(curve.low),
        kind(curve.high),
        step=kind(step(curve)),
        key=key,
        on_change=_follow,
        args=(e.number, key),
        width=430,
    )
    return float(x)


def _drawing(e: Erratum, curve: Curve, x: float) -> None:
    """Show the printed and the correct quantity as curves over the variable of the slider, whose value is `x`."""
    dark = st.context.theme.type == "dark"
    sides = checks.drawn(e.number)
    drawing = figures.two_sides(
        sides, x, axis=curve.axis, quantity=curve.quantity, by=curve.by, whole=curve.whole, dark=dark
    )
    chart(f"truth_curve_{e.number}", drawing, f"{curve.quantity} over {curve.axis}: printed, true, and by {curve.by}")


def step(curve: Curve) -> float:
    """Return the step of the slider: 1 for integers, otherwise a power of ten of at most 1/50 of the axis range."""
    return 1 if curve.whole else 10.0 ** math.floor(math.log10((curve.high - curve.low) / 50))


def _follow(number: int, key: str) -> None:
    st.query_params.update({"erratum": str(number), PLACE: f"{st.session_state[key]:g}"})


def _decisions(decisions: tuple[Decision, ...]) -> None:
    """Show a table of printed and correct values, and of an independent computation that decides between them."""
    if not decisions:
        return
    lines = ["| quantity | printed | true | computed | by | |", "|:--|--:|--:|--:|:--|:-:|"]
    for d in decisions:
        most = "≤ " if d.bound else ""
        printed = "–" if d.printed is None else most + six_digits(d.printed)
        sides = (printed, most + six_digits(d.true), six_digits(d.referee))
        verdict = "✗" if not d.true_holds else "both hold" if d.printed_holds else "✓"
        lines.append(f"| {literal(d.what)} | {' | '.join(sides)} | {literal(d.by)} | {verdict} |")
    st.markdown("\n".join(lines))


def _numbers(e: Erratum) -> None:
    """Show a table of the numbers stated in the source and their values computed by dmlcore."""
    rows = [(n.what, n.stated, computed_as_stated(n.value, n.stated), n.agrees) for n in checks.numbers(e.number)]
    for n in checks.coordinates(e.number):
        computed = f"({', '.join(computed_as_stated(x.value, x.stated) for x in n.numbers)})"
        rows.append((n.what, f"({', '.join(x.stated for x in n.numbers)})", computed, all(x.agrees for x in n.numbers)))
    if not rows:
        return
    lines = ["| number | stated | computed now | |", "|:--|--:|--:|:-:|"]
    lines += [f"| {literal(what)} | {stated} | {value} | {'✓' if ok else '✗'} |" for what, stated, value, ok in rows]
    st.markdown("\n".join(lines))
