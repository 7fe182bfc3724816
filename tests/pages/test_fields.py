"""The fields page without a browser: formula, source and numbers follow the scene of the link."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore import losses
from tests.e2e.harness import ROOT


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=30)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


@pytest.mark.parametrize("name", losses.names())
def test_each_loss_is_explained(name):
    app = opened(loss=name)
    formula = losses.formula(name)
    assert not app.exception
    assert [x.value for x in app.subheader] == [formula.title]
    assert formula.latex in app.latex[0].value
    assert any(formula.source in x.value for x in app.caption)


def test_the_numbers_are_those_of_the_triplet():
    app = opened(s="0", r="2", rho="1.7142857", m1="5", m2="inf", n="0,1")
    table = next(x.value for x in app.markdown if x.value.startswith("| |"))
    assert "| negative | 0 | 1 | -0.6133 | 2.941 |" in table


@pytest.mark.parametrize("bad", ["nan", "1e999", "../x", "\0", "x" * 100_000])
def test_a_senseless_link_opens_the_default(bad):
    app = opened(loss=bad, r=bad, a=bad, view=bad, hide=bad)
    assert not app.exception
    assert app.subheader[0].value == losses.formula("distance_sensitive").title


def test_a_committed_gesture_is_written_into_the_link():
    app = opened()
    app.session_state["field"] = {"scene": {"loss": "ranking", "hyper": {"m": 0.4}, "negative": [0.5, 0.25]}}
    app.run()
    assert app.subheader[0].value == losses.formula("ranking").title
    query = dict(app.query_params)
    assert {k: query[k] for k in ("loss", "m", "n")} == {"loss": "ranking", "m": "0.4", "n": "0.5,0.25"}
