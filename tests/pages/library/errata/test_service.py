"""Counterexamples over the socket: exact numbers, links that restore the scene, untrusted input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore.published.printed_formulas import COUNTEREXAMPLES, compare
from pages.library.errata.service import answer, readout
from pages.library.errata.state import Example
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import Scene
from pages.shared.server.wire import unpack
from tests.members import in_one_case


@in_one_case(number=COUNTEREXAMPLES)
def test_numbers_are_those_of_the_library(number):
    scene = Example.of({"number": number, "negative": [0.3, 0.7]})
    points = [torch.tensor(x, dtype=torch.float64) for x in (scene.anchor, scene.positive, scene.negative)]
    expected = compare(COUNTEREXAMPLES[number], *points, scene.hyper)
    found = readout(scene)
    for side in ("printed", "true"):
        for mine, theirs in zip(found[side], getattr(expected, side), strict=True):
            assert mine == pytest.approx(theirs.tolist(), abs=1e-15)
    assert found["difference"] == pytest.approx(float(expected.difference))


def test_the_map_is_the_difference_at_its_nodes():
    request = {"scene": {"number": 4, "probe": "positive", "view": [0, 0, 1]}, "n": 20}
    found = unpack(answer(request))
    shade = found["arrays"]["shade"]
    for row, col in ((0, 0), (3, 17), (19, 19)):
        at = [-1 + (col + 0.5) * 0.1, -1 + (row + 0.5) * 0.1]
        difference = readout(Example.of({"number": 4, "positive": at}))["difference"]
        assert shade[row, col] == pytest.approx(255 * min(difference / found["scale"], 1), abs=0.51)


def test_where_the_printed_form_divides_by_zero_the_answer_says_so():
    found = unpack(answer({"scene": {"number": 5, "negative": [0, 1]}, "n": 40}))
    assert found["printed_energy"] is None
    assert [None, None] in found["printed"]
    assert np.isfinite(found["true_energy"])
    assert found["difference"] is None


@in_one_case(number=COUNTEREXAMPLES)
def test_the_fields_link_shows_the_same_triplet_active(number):
    example = Example.of({"number": number})
    scene = Scene.from_query(example.fields().to_query())
    assert (scene.anchor, scene.positive, scene.negative) == (example.anchor, example.positive, example.negative)
    assert scene.loss == COUNTEREXAMPLES[number].loss
    raw = float(scene.module().raw(*as_tensors(scene)))
    assert raw > 0 or number == 2  # the ratio loss has no additive margin to increase


numbers = st.one_of(st.floats(), st.integers(-(10**400), 10**400), st.text(max_size=8), st.none(), st.booleans())
junk = st.recursive(numbers, lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=6), x, max_size=4))
scenes = st.fixed_dictionaries(
    {},
    optional={
        "number": junk | st.integers(0, 50),
        "hyper": junk | st.dictionaries(st.sampled_from(["rho", "m", "variant"]), numbers),
        "anchor": junk | st.lists(numbers, min_size=2, max_size=2),
        "negative": junk | st.lists(st.floats(-3, 3), min_size=2, max_size=2),
        "probe": junk,
        "view": junk | st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    },
)


@settings(max_examples=25)
@given(scene=scenes | junk, n=numbers, scale=numbers)
def test_any_message_gets_a_finite_answer(scene, n, scale):
    found = unpack(answer({"scene": scene, "n": n, "scale": scale, "id": n}))  # pack refuses NaN
    assert found["n"] <= 161
    assert found["scale"] > 0
