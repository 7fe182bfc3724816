"""Curves: thinning keeps extremes, rows are aligned across panels, and specifications are valid Vega-Lite."""

from __future__ import annotations

import altair as alt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.figures.curves import (
    COLOURS,
    DASHES,
    MOST,
    CurvePanel,
    RunCurve,
    averaged,
    interval,
    linked,
    smoothed,
    table,
    thin,
)
from tests.members import in_one_case


def curve(steps, run="a", start=1):
    numbers = np.arange(start, steps + 1)
    return RunCurve(run, numbers, np.sin(numbers * 0.7) + numbers / 100)


@given(st.integers(1, 10_000_000))
def test_the_interval_is_the_smallest_power_of_two_that_is_enough(steps):
    width = interval(steps)
    assert width & (width - 1) == 0
    assert -(-steps // width) <= MOST
    assert width == 1 or -(-steps // (width // 2)) > MOST


@in_one_case(steps=[1, 7, MOST, MOST + 1, 5 * MOST + 3])
def test_thinning_keeps_mean_range_and_end(steps):
    whole = curve(steps)
    width = interval(steps)
    rows = thin(whole, width)
    assert len(rows["step"]) <= MOST
    assert rows["step"][-1] == steps
    for i, tick in enumerate(rows["tick"]):
        inside = whole.values[(tick - 1) * width : tick * width]
        assert rows["value"][i] == pytest.approx(inside.mean())
        assert (rows["low"][i], rows["high"][i]) == (inside.min(), inside.max())


def test_a_group_is_drawn_by_its_mean_in_a_band_from_lowest_to_highest():
    short = RunCurve("a", np.array([1, 2]), np.array([1.0, 3.0]))
    long = RunCurve("b", np.array([1, 2, 4]), np.array([5.0, 4.0, 7.0]))
    mean = averaged("group", [short, long])
    assert mean.run == "group"
    assert mean.steps.tolist() == [1, 2, 4]
    assert mean.values.tolist() == [3, 3.5, 7]
    rows = thin(mean, 2)
    assert rows["value"].tolist() == [3.25, 7]
    assert (rows["low"].tolist(), rows["high"].tolist()) == ([1, 7], [5, 7])
    nothing = averaged("none", [RunCurve("a", np.empty(0, np.int64), np.empty(0))] * 2)
    assert len(nothing.steps) == len(nothing.values) == 0


def test_step_zero_is_not_averaged_with_training():
    rows = thin(curve(1000, start=0), interval(1000))
    assert rows["step"][0] == 0
    assert rows["value"][0] == 0


def test_ticks_are_shared_by_panels_and_by_runs_of_different_length():
    validation = RunCurve("long", np.arange(0, 1001, 50), np.linspace(0, 1, 21))
    rows = table([CurvePanel("loss", [curve(1000, "long"), curve(90, "short")]), CurvePanel("MAP@R", [validation])])
    width = interval(1000)
    assert (rows["tick"] == -(-rows["step"] // width)).all()
    of_validation = set(rows["tick"][rows["panel"] == "MAP@R"]) - {0}
    assert of_validation <= set(rows["tick"][(rows["panel"] == "loss") & (rows["run"] == "long")])


def test_no_curve_gives_no_rows():
    rows = table([CurvePanel("loss", []), CurvePanel("MAP@R", [RunCurve("a", np.empty(0, np.int64), np.empty(0))])])
    assert {name: len(column) for name, column in rows.items()} == dict.fromkeys(
        ("panel", "run", "tick", "step", "value", "low", "high"), 0
    )


def test_the_specification_is_valid_and_one_hover_listens_on_every_panel():
    panels = [CurvePanel("loss", [curve(50), curve(50, "b")]), CurvePanel("MAP@R", [curve(50)], unit=".0%")]
    spec, _ = linked(panels, steps=50)
    alt.VConcatChart.from_dict(spec)  # raises an error unless it matches the schema
    names = [layer.get("name") for panel in spec["vconcat"] for layer in panel["layer"]]
    assert [param["views"] for param in spec["params"]] == [[name for name in names if name]]


def test_a_line_stands_in_every_panel_where_runs_part():
    panels = [CurvePanel("loss", [curve(50), curve(50, "b")]), CurvePanel("MAP@R", [curve(50)])]
    spec, _ = linked(panels, steps=50, forks=[20])
    alt.VConcatChart.from_dict(spec)
    lines = [[layer["data"]["values"] for layer in panel["layer"] if "data" in layer] for panel in spec["vconcat"]]
    assert lines == [[[{"step": 20}]]] * 2


def test_the_specification_does_not_change_while_a_run_goes_on():
    young, _ = linked([CurvePanel("loss", [curve(5)])], steps=900)
    old, _ = linked([CurvePanel("loss", [curve(800)])], steps=900)
    assert young == old
    young["vconcat"].clear()
    assert len(linked([CurvePanel("loss", [curve(5)])], steps=900)[0]["vconcat"]) == 1, (
        "cached arrays must be read-only"
    )


def test_several_runs_differ_in_colour_and_dashes_and_have_a_legend():
    def encoding(runs):
        spec, _ = linked([CurvePanel("loss", [curve(5, run) for run in runs])], steps=5)
        return next(x["encoding"] for x in spec["vconcat"][0]["layer"] if x["mark"]["type"] == "line")

    shown = encoding(["a", "b", "c"])
    assert shown["color"]["scale"] == {"domain": ["a", "b", "c"], "range": list(COLOURS[:3])}
    assert shown["strokeDash"]["scale"]["range"] == list(DASHES[:3])
    assert shown["color"]["legend"] == shown["strokeDash"]["legend"] is not None
    assert encoding(["a"])["color"]["legend"] is None


@in_one_case(weight=[0.0, 0.3, 0.6, 0.99])
def test_smoothing_is_that_of_tensorboard(weight):
    values = curve(200).values
    last, expected = 0.0, []
    for count, value in enumerate(values, 1):  # as in TensorBoard's TypeScript
        last = last * weight + (1 - weight) * value
        expected.append(last / (1 - weight**count if weight else 1.0))
    assert smoothed(values, weight) == pytest.approx(expected)
    assert smoothed(np.full(50, 0.7), weight) == pytest.approx(0.7)
    assert len(smoothed(np.empty(0), weight)) == 0


def test_what_is_smoothed_stays_behind_the_line():
    panel = CurvePanel("loss", [curve(50)])
    specification, rows = linked([panel], steps=50, smoothing=0.8)
    assert rows["raw"] == pytest.approx(panel.curves[0].values)
    assert rows["value"] == pytest.approx(smoothed(panel.curves[0].values, 0.8))
    assert (rows["low"] <= rows["raw"]).all()
    fields = [
        layer["encoding"]["y"]["field"] for layer in specification["vconcat"][0]["layer"] if "y" in layer["encoding"]
    ]
    assert fields == ["low", "raw", "value", "value"]
    alt.VConcatChart.from_dict(specification | {"data": {"name": "rows"}})
    plain, rows = linked([panel], steps=50)
    assert "raw" not in rows
    assert "raw" not in str(plain)
