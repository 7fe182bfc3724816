"""Charts of a study: means over the available seeds, the ceiling, and bars from best to worst."""

import json
import re

import altair
import numpy as np
import pytest

from dmlcore.figures.studies import Bar, SeedCurve, bars, ceiling_of, curves, mean_curve

FOUND = [
    SeedCurve("GAP", 0, [0, 2, 4], [0.1, 0.2, 0.4]),
    SeedCurve("GAP", 1, [0, 2], [0.3, 0.4]),
    SeedCurve("distilled", 0, [0, 2], [0.2, 0.9]),
    SeedCurve("distilled", 1, [0, 2, 4], [0.2, 0.8, 0.7]),
]


def plain(columns):
    return json.loads(json.dumps({key: values.tolist() for key, values in columns.items()}))


def rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain(columns).values(), strict=True)]


def test_the_mean_is_over_steps_that_every_seed_has():
    assert mean_curve(FOUND[:2]) == ([0, 2], [pytest.approx(0.2), pytest.approx(0.3)])
    assert mean_curve([]) == ([], [])
    assert ceiling_of(FOUND, "distilled") == pytest.approx(0.85)
    assert ceiling_of(FOUND, "none") is None


def test_curves_hold_seeds_means_and_the_level():
    spec, columns = curves(FOUND, ceiling="distilled")
    means = {(r["variant"], r["step"]): r["value"] for r in rows(columns) if r["kind"] == "mean"}
    assert means[("GAP", 2)] == pytest.approx(0.3)
    assert len([r for r in rows(columns) if r["kind"] == "seed"]) == 10
    assert "distilled: best validation 85.0 %" in json.dumps(spec)
    assert "best validation" not in json.dumps(curves(FOUND[:2], ceiling="distilled")[0])


def test_bars_go_from_best_to_worst_with_sample_deviations():
    spec, columns = bars([Bar("low", [0.1]), Bar("none", []), Bar("high", [0.2, 0.4])])
    assert columns["variant"].tolist() == ["high", "low"]
    assert columns["label"].tolist() == ["30.0 ± 14.1", "10.0"]
    assert columns["high"] - columns["mean"] == pytest.approx([np.sqrt(0.02), 0])
    assert columns["end"].tolist() == [pytest.approx(0.3 + np.sqrt(0.02)), 0.1]
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["high", "low"]


@pytest.mark.parametrize(("level", "most"), [(0.3, 0.4), (0.6, 0.6)])
def test_the_numbers_at_the_ends_of_the_bars_have_room(level, most):
    spec, _ = bars([Bar("a", [0.4])], against={"inputs": {"a": level}})
    end = spec["layer"][0]["encoding"]["x"]["scale"]["domainMax"]["expr"]
    phone, narrow, wide, longest = map(float, re.findall(r"\d+\.\d+", end))
    assert longest == most
    assert phone > narrow > wide > 1
    axis = spec["layer"][0]["encoding"]["x"]["axis"]
    assert axis["gridOpacity"]["condition"]["test"] == f"datum.value <= {most}"
    assert axis["labelExpr"].startswith(f"datum.value <= {most} ?")


def test_the_ceiling_is_found_among_the_bars_whatever_its_name():
    spec, _ = bars([Bar("it's", [0.2]), Bar("low", [0.1])], ceiling="it's")
    (shown,) = spec["layer"][0]["encoding"]["color"]["condition"]
    assert shown["test"] == {"field": "variant", "equal": "it's"}


def test_baselines_stand_in_every_chart_with_their_scores():
    levels = {"inputs": {"high": 0.5, "low": 0.5}, "untrained": {"high": 0.02, "low": 0.05}}
    spec, columns = bars([Bar("low", [0.1]), Bar("high", [0.2, 0.4])], against=levels)
    drawn = spec["layer"][-1]["data"]["values"]
    assert [(row["variant"], row["value"]) for row in drawn if row["baseline"] == "raw inputs 50.0 %"] == [
        ("high", 0.5),
        ("low", 0.5),
    ]
    assert {row["baseline"] for row in drawn} == {"raw inputs 50.0 %", "untrained network 2.00 to 5.00 %"}
    title = spec["layer"][0]["encoding"]["x"]["title"]
    assert title == "test MAP@R · mean ± deviation of 1 to 2 seeds"
    assert columns["label"].tolist() == ["30.0 ± 14.1", "10.0"]
    halo, _, text = curves(FOUND, against={"inputs": 0.05})[0]["layer"][-3:]
    assert halo["data"] == text["data"]
    assert text["data"]["values"] == [{"value": 0.05, "words": "raw inputs 5.00 %"}]
    assert halo["mark"]["stroke"] == {"expr": "background"}


AGAINST = {"inputs": {"it's": 0.3}, "chance": {"it's": 0.01}}


@pytest.mark.parametrize(
    "made",
    [
        curves(FOUND, ceiling="distilled", against={"inputs": 0.3}),
        bars([Bar("it's", [0.2, 0.4])], ceiling="it's", against=AGAINST),
    ],
)
def test_the_charts_are_valid_vega_lite(made):
    spec, columns = made
    spec = {k: v for k, v in spec.items() if k != "autosize"}
    altair.Chart.from_dict(spec | {"data": {"values": rows(columns)}}, validate=True)


def test_legends_fit_a_phone():
    """Multiple columns, or long names, are cut off in narrow charts."""
    of_curves, _ = curves([SeedCurve(name, 0, [0, 1], [0.1, 0.2]) for name in ("a", "b", "c", "d")])
    of_bars, _ = bars([Bar("a", [0.1])], against={"untrained": {"a": 0.03}})
    text = json.dumps(of_curves)
    assert '"columns": {"expr": "windowSize()[0] < ' in text
    assert "replace(datum.label, ' network', '')" in json.dumps(of_bars)
