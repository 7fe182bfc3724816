"""The errata page without a browser: every erratum and every loss with formulas and numbers, and hostile links."""

from __future__ import annotations

import math
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore import losses
from dmlcore.published import checks
from dmlcore.published.errata import errata, erratum
from dmlcore.published.printed_formulas import COUNTEREXAMPLES
from dmlcore.published.reference import reference
from pages.library.errata.state import Example
from pages.library.errata.words import literal, marked, six_digits, snippet
from pages.shared.widgets import menu
from tests.members import in_one_case
from tests.pages.conftest import load_page

NUMBERS = [e.number for e in errata()]
# every sixth, and two of each kind of figure
SAMPLE = sorted({*NUMBERS[::6], *list(COUNTEREXAMPLES)[:2], *list(checks.CURVES)[:2]})

open_page = partial(load_page, "errata")


def texts(app: AppTest) -> str:
    return "\n".join(x.value for x in app.markdown)


def tables(app: AppTest) -> list[str]:
    return [x.value for x in app.markdown if x.value.startswith("| number |")]


def decisions(app: AppTest) -> list[str]:
    return [x.value for x in app.markdown if x.value.startswith("| quantity |")]


@in_one_case(number=SAMPLE)
def test_each_erratum_shows_both_sides_its_numbers_and_a_figure_or_why_there_is_none(number):
    e = erratum(number)
    app = open_page(erratum=str(number))
    assert not app.exception
    assert [x.value for x in app.subheader] == [f"{number}. {e.title}"]
    assert literal(e.printed) in texts(app)
    assert literal(e.true) in texts(app)
    assert len(app.latex) == (2 if e.printed_latex else 0)
    found = tables(app)
    stated = checks.numbers(number)
    assert len(found) == bool(stated or e.shown)
    for x in stated:
        assert f"| {literal(x.what)} | {x.stated} |" in found[0]
    for shown in e.shown:
        for side, coordinates in (("printed", shown.printed), ("true", shown.true)):
            assert f"| gradient on the {shown.point}, {side} | ({', '.join(coordinates)}) |" in found[0]
    decided = decisions(app)
    assert len(decided) == bool(checks.decisions(number))
    for x in checks.decisions(number):
        assert f"| {literal(x.what)} |" in decided[0]
    assert "✗" not in "".join(found + decided)
    # a figure, or the reason why there is none
    reasons = [x.value for x in app.caption if "o figure" in x.value]
    assert len(reasons) == (number not in COUNTEREXAMPLES and number not in checks.CURVES)
    assert len(app.slider) == (number in checks.CURVES)
    assert len(app.code) == (number in COUNTEREXAMPLES)


@in_one_case(name=losses.names()[::6])
def test_each_loss_has_its_reference(name):
    app = open_page(loss=name)
    r = reference(name)
    assert not app.exception
    assert [x.value for x in app.subheader] == [r.formula.title]
    latex = [x.value for x in app.latex]
    assert latex[0].replace("$$", "").strip() == f"E = {r.energy}"
    if r.closed_form:
        for part in (*r.closed_form.gradient_latex, *r.closed_form.laws_latex):
            assert part in "".join(latex)
    assert any(r.formula.source in x.value for x in app.caption)
    for what, holds, found in r.invariances.rows:
        assert f"| {'✓' if holds else '–'} | {what} | {found} |" in texts(app)
    assert r.clamp_off in texts(app)
    for result in r.results:
        for column, row in result.best:
            best = f"| {result.dataset} | {column} | {row.scores['R@1']:.2f} | {row.scores['MAP@R']:.2f} |"
            assert best in texts(app)


def test_filters_narrow_the_list():
    app = open_page()
    assert any(x.value == f"{len(NUMBERS)} of {len(NUMBERS)}" for x in app.caption)
    app.toggle(key="truth_seen").set_value(True).run()
    assert any(x.value == f"{len(COUNTEREXAMPLES) + len(checks.CURVES)} of {len(NUMBERS)}" for x in app.caption)
    app.selectbox(key="truth_loss").set_value("moving").run()
    assert app.radio(key="truth_erratum").options == [f"**{n}** {erratum(n).title}" for n in (5, 6)]
    assert app.subheader[0].value.startswith("5.")
    app.text_input(key="truth_text").set_value("no such words").run()
    assert "No erratum" in app.info[0].value
    assert not app.exception


def test_the_source_narrows_the_list_and_stays_in_the_link():
    app = open_page()
    app.button_group(key="truth_source").set_value("G").run()
    of_source = [e.number for e in errata() if e.source == "G"]
    assert any(x.value == f"{len(of_source)} of {len(NUMBERS)}" for x in app.caption)
    assert app.subheader[0].value.startswith(f"{of_source[0]}.")
    app.radio(key="truth_erratum").set_value(of_source[2]).run()
    again = open_page(**{k: v[0] if isinstance(v, list) else v for k, v in app.query_params.items()})
    assert again.subheader[0].value.startswith(f"{of_source[2]}.")
    assert len(again.radio(key="truth_erratum").options) == len(of_source)
    app.button_group(key="truth_source").set_value("K").run()
    assert "erratum" not in app.query_params, "an erratum of another source must not be in the link"
    assert app.subheader[0].value.startswith("4.")
    app.button_group(key="truth_source").set_value(None).run()
    assert "source" not in app.query_params
    assert not app.exception


def test_a_number_moves_along_and_is_in_the_link():
    app = open_page(erratum="98")
    assert "-6.38938 | -0.0530816 | -0.0530816" in decisions(app)[0]
    app.slider(key="truth_at_98").set_value(0.0).run()
    assert "0.12533 | -30.7467 | -30.7467" in decisions(app)[0]
    assert app.query_params["at"] in ("0", ["0"])
    again = open_page(erratum="98", at="0")
    assert decisions(again) == decisions(app)
    app.radio(key="truth_erratum").set_value(47).run()
    assert "at" not in app.query_params
    assert "both hold" not in decisions(app)[0]
    app.slider(key="truth_at_47").set_value(0.5).run()
    assert "both hold" in decisions(app)[0], "below the margin the losses are equal"
    assert not app.exception


def test_every_live_example_is_a_page():
    live = {e.live.page for e in errata() if e.live}
    assert live <= set(menu.PAGES)


def test_choosing_writes_the_link_and_the_buttons_turn_the_page():
    app = open_page(erratum="4", rho="0.3", n="0.25,1.5")
    assert "[0.25, 1.5]" in app.code[0].value
    assert "'rho': 0.3" in app.code[0].value
    app.radio(key="truth_erratum").set_value(9).run()
    assert app.subheader[0].value.startswith("9.")
    assert app.query_params["erratum"] in ("9", ["9"])
    assert "rho" not in app.query_params
    app.button(key="truth_back").click().run()
    assert app.subheader[0].value.startswith("8.")
    app.button(key="truth_to_npairs").click().run()
    assert app.subheader[0].value == losses.formula("npairs").title
    app.button(key="truth_to_9").click().run()
    assert app.subheader[0].value.startswith("9.")
    assert not app.exception


def test_a_senseless_link_opens_the_default():
    bad = "<script>"
    app = open_page(erratum=bad, rho=bad, a=bad, n=f"{bad},{bad}", view=bad, probe=bad)
    assert not app.exception
    assert app.subheader[0].value.startswith("4.")


@pytest.mark.parametrize("number", COUNTEREXAMPLES)
def test_the_snippet_runs_and_prints_both_sides(number, capsys):
    exec(snippet(Example.of({"number": number})), {})
    assert len(capsys.readouterr().out.splitlines()) >= 3


@pytest.mark.parametrize("text", ["- ln(1 + x)", "+ ln(1 + x)"])
def test_a_sign_at_the_start_is_no_list(text):
    assert literal(text) == "\\" + text
    assert literal(text[2:]) == text[2:]


def test_six_digits():
    numbers = {3.0: "3", -2.0: "-2", 0.166666666: "0.166667", 1.55e-5: "1.55e-5", 5.6e-18: "0", math.inf: "not finite"}
    assert [six_digits(x) for x in numbers] == list(numbers.values())


def test_marks_close_where_their_brace_does():
    assert marked(r"a\diff{b_{c}}+\frac{\diff{1}}{2}", "#123") == (
        r"a\textcolor{#123}{\underline{b_{c}}}+\frac{\textcolor{#123}{\underline{1}}}{2}"
    )
