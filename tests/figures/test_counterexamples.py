"""Counterexamples along a parameter: existing values are drawn, missing ones are not; Vega-Lite accepts the chart."""

from __future__ import annotations

from types import SimpleNamespace

import altair as alt
import numpy as np
import pytest

from dmlcore.figures.counterexamples import COLOURS, PRINTED, TRUE, two_sides

X = np.array([0.0, 0.5, 1.0])


def sides(printed: list[float]) -> SimpleNamespace:
    return SimpleNamespace(x=X, printed=np.array(printed), true=X**2, dots=X[::2], referee=X[::2] ** 2)


@pytest.mark.parametrize("dark", [False, True])
def test_both_sides_and_the_rings_are_drawn_as_they_are(dark):
    spec, rows = two_sides(sides([1.0, 2.0, np.nan]), 0.25, axis="mass", quantity="loss", by="autograd", dark=dark)
    alt.Chart.from_dict(spec | {"data": {"values": [{"x": 1}]}}, validate=True)
    by_side = {name: [(r["x"], r["y"]) for r in rows if r["side"] == name] for name in (PRINTED, TRUE, "autograd")}
    assert by_side == {
        PRINTED: [(0.0, 1.0), (0.5, 2.0)],
        TRUE: [(0.0, 0.0), (0.5, 0.25), (1.0, 1.0)],
        "autograd": [(0.0, 0.0), (1.0, 1.0)],
    }
    assert [r["x"] for r in rows if r["y"] is None] == [0.25], "the horizontal line"
    scale = spec["layer"][1]["encoding"]["color"]["scale"]
    assert scale["domain"] == [PRINTED, TRUE, "autograd"]
    assert scale["range"] == list(COLOURS[dark])


def test_a_side_that_is_not_printed_is_not_in_the_legend():
    spec, rows = two_sides(sides([np.nan] * 3), 0.25, axis="mass", quantity="loss", by="autograd")
    assert spec["layer"][1]["encoding"]["color"]["scale"]["domain"] == [TRUE, "autograd"]
    assert not any(r["side"] == PRINTED for r in rows)


def test_an_axis_that_counts_has_whole_numbers():
    spec, _ = two_sides(sides([1.0, 2.0, 3.0]), 1, axis="blocks", quantity="most", by="ascent", whole=True)
    alt.Chart.from_dict(spec | {"data": {"values": [{"x": 1}]}}, validate=True)
    assert spec["layer"][1]["encoding"]["x"]["axis"] == {"format": "d", "grid": False, "tickMinStep": 1}


def test_only_the_rows_change_as_the_number_moves():
    first, second = (
        two_sides(sides([1.0, 2.0, 3.0]), at, axis="mass", quantity="loss", by="autograd") for at in (0.2, 0.7)
    )
    assert first[0] == second[0]
    assert first[1] != second[1]
