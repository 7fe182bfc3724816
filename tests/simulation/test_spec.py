"""Specs name invalid fields and are written as Python that recreates them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dmlcore.simulation import STARTS, Change, Dynamics, Simulation, Spec, start_points
from tests.members import in_one_case


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"start": "moon"}, "start"),
        ({"classes": 1}, "classes"),
        ({"classes": 8, "per_class": 50}, "300 points"),
        ({"per_class": 1}, "per_class"),
        ({"seed": -1}, "seed"),
        ({"changes": (Change(5), Change(3))}, "in order"),
        ({"changes": (Change(0),) * 30}, "changes"),
        ({"changes": (Change(0, None, ((999, 0.0, 0.0),)),)}, "moved"),
        ({"changes": (Change(0, None, ((0, math.nan, 0.0),)),)}, "moved"),
    ],
)
def test_a_bad_spec_names_its_field(bad, match):
    with pytest.raises(ValueError, match=match):
        Spec(**bad)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"loss": "no"}, KeyError),
        ({"hyper": {"q": 1.0}}, TypeError),
        ({"optimiser": "lbfgs"}, ValueError),
        ({"miner": "none"}, ValueError),
        ({"side": "left"}, ValueError),
        ({"normalise": "yes"}, ValueError),
        ({"step_size": 0.0}, ValueError),
        ({"step_size": math.inf}, ValueError),
    ],
)
def test_a_bad_law_is_refused(bad, error):
    with pytest.raises(error):
        Dynamics(**bad)


def test_the_script_repeats_the_history(capsys):
    spec = Spec(
        start="moons",
        classes=2,
        per_class=5,
        seed=3,
        law=Dynamics(hyper={"m2": math.inf, "s": 0.5}),
        changes=(Change(2, Dynamics(loss="ranking", hyper={"m": 0.7}, optimiser="adam"), ((1, 0.25, -0.5),)),),
    )
    scope: dict = {}
    exec(spec.to_python(6), scope)
    assert scope["spec"] == spec
    frame = Simulation(spec).frame(6)
    assert np.array_equal(scope["frame"].positions, frame.positions)
    assert str(frame.loss) in capsys.readouterr().out
    assert Spec().to_python(0).splitlines()[2] == "spec = Spec()"


def test_the_law_in_force():
    first, then = Dynamics(), Dynamics(loss="ranking")
    spec = Spec(law=first, changes=(Change(3, None, ((0, 0.0, 0.0),)), Change(5, then)))
    assert [spec.law_at(k) == then for k in (0, 4, 5, 9)] == [False, False, True, True]


@in_one_case(name=STARTS)
def test_starts_are_pure_and_sorted_by_class(name):
    points, labels = start_points(name, 4, 7, seed=5)
    again, _ = start_points(name, 4, 7, seed=5)
    assert points.shape == (28, 2)
    assert np.isfinite(points).all()
    assert np.array_equal(points, again)
    assert labels.tolist() == sorted(labels.tolist())
    assert np.bincount(labels).tolist() == [7] * 4


def test_unknown_starts_are_named():
    with pytest.raises(KeyError, match="known"):
        start_points("nowhere", 2, 2, 0)
