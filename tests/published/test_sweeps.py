"""Sweeps contain the rows of the tables that differ in one hyper-parameter only."""

from __future__ import annotations

from dmlcore.published import karaman
from dmlcore.published.sweeps import sweeps

SWEEPS = {sweep.key: sweep for sweep in sweeps()}


def test_series_differ_in_the_swept_value_alone():
    for sweep in sweeps():
        for series in sweep.series:
            values = [row.hyper[sweep.axis] for row in series.rows]
            assert values == sorted(values)
            assert len(set(values)) >= 3
            assert len({row.unhinged for row in series.rows}) == 1
            for row in series.rows:
                assert not row.quoted_from
                assert {k: v for k, v in row.hyper.items() if k != sweep.axis} == dict(series.hyper)
        assert len({series.fixed for series in sweep.series}) == len(sweep.series), "legend entries must differ"


def test_the_margins_of_ranking():
    (series,) = SWEEPS["cub-ranking-m"].series
    assert [(row.hyper["m"], row.scores["R@1"]) for row in series.rows][3] == (0.01, 52.8)
    assert SWEEPS["cub-ranking-m"].tables == ["4.2"]
    assert SWEEPS["cub-ranking-m"].best("R@1") == 52.8


def test_every_row_with_a_margin_is_in_a_sweep_or_alone():
    swept = {
        id(row) for sweep in sweeps() if sweep.axis in ("m", "m1") for series in sweep.series for row in series.rows
    }
    left = [r for r in karaman.rows() if not r.quoted_from and {"m", "m1"} & set(r.hyper) and id(r) not in swept]
    assert {(r.loss, r.hyper.get("m1")) for r in left} == {
        ("distance_sensitive", 40.0),  # Table 4.8 disables the clamp
        ("distance_sensitive", -2.5),  # Table 4.10 varies rho at this margin
    }


def test_the_repeated_setting_stands_twice():
    values = [
        (series.fixed, row.hyper["m1"], row.table)
        for series in SWEEPS["cub-distance-sensitive-m1"].series
        for row in series.rows
    ]
    assert ("m2 = 5", -2.5, "4.10") in values
    assert ("m2 = 5", -2.5, "4.11") in values
