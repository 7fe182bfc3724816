"""The comparison survives every link and message a browser may send, and a link reopens it to the last bit."""

from __future__ import annotations

import json
import math
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore import losses
from pages.losses.fields.compare.presets import PAIRS
from pages.losses.fields.compare.state import FEWEST, MOST, Comparison
from pages.shared.state.untrusted import REACH
from tests.pages.shared.plane.test_state import NASTY, anything

FIELDS = list(Comparison().to_json())


def assert_valid(comparison: Comparison) -> None:
    assert FEWEST <= len(comparison.panels) <= MOST
    for panel in comparison.panels:
        assert set(panel.hyper) == set(panel.module().formula.parameters)
    first, second = comparison.pair
    assert first != second
    assert {first, second} <= set(range(len(comparison.panels)))
    for point in (comparison.anchor, comparison.positive, comparison.negative):
        assert all(math.isfinite(v) and abs(v) <= REACH for v in point)
    assert 0.05 <= comparison.view[2] <= 50
    assert Comparison.of(json.loads(json.dumps(comparison.to_json(), allow_nan=False))) == comparison


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*FIELDS, "other"], anything)))
def test_any_message_gives_a_valid_comparison(message):
    assert_valid(Comparison.of(message))


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"loss": st.sampled_from(losses.names()) | anything, "hyper": anything})
    )
)
def test_any_number_of_panels_is_brought_to_two_to_four(panels):
    comparison = Comparison.of({"panels": panels})
    assert_valid(comparison)
    assert len(comparison.panels) == min(max(len(panels), FEWEST), MOST)


@pytest.mark.parametrize(
    "text", [*NASTY, "ranking,m", "ranking,m:nan", "ranking,:::,m:1e999", "angular," * 90_000, ",", "1,1", "9,-1"]
)
def test_any_link_gives_a_valid_comparison(text):
    for key in ("l1", "l2", "l3", "l4", "l5", "a", "p", "n", "pair", "probe", "shade", "space", "clamp", "fit", "view"):
        assert_valid(Comparison.from_query({key: text}))


@pytest.mark.parametrize("name", losses.names())
def test_a_link_reopens_the_same_comparison(name):
    hyper = {k: v.low / 3 + v.high / 7 for k, v in losses.formula(name).parameters.items() if hasattr(v, "low")}
    comparison = Comparison.of(
        {
            "panels": [{"loss": name, "hyper": hyper}, {"loss": "ranking"}, {"loss": name}],
            "pair": [2, 0],
            "negative": [1 / 3, -0.5],
            "probe": "anchor",
            "space": "sphere",
            "clamp": False,
            "fit": True,
            "view": [0, 1, 2],
        }
    )
    assert Comparison.from_query(dict(parse_qsl(comparison.link()))) == comparison


def test_the_default_needs_no_link():
    assert Comparison().to_query() == {}
    assert Comparison.from_query({}) == Comparison()


def test_a_loss_in_a_link_without_values_has_its_own_defaults():
    (first, second) = Comparison.from_query({"l1": "ranking", "l2": "distance_sensitive,m2:inf,r:0"}).panels
    assert first.hyper == losses.formula("ranking").defaults
    assert second.hyper["m2"] == math.inf
    assert second.hyper["r"] == 0


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.title)
def test_a_preset_is_a_comparison_that_its_link_reopens(pair):
    comparison = pair.comparison()
    assert_valid(comparison)
    assert Comparison.from_query(dict(parse_qsl(comparison.link()))) == comparison
