from __future__ import annotations

import math

import numpy as np
import pytest

from dmlcore.catalogue import Choice, Slider


def test_a_slider_accepts_values_outside_its_range_but_above_its_bound():
    slider = Slider(0.1, 4.0, r"\rho", "ratio", above=0.0)
    assert slider.check("rho", 40) == 40.0
    with pytest.raises(ValueError, match="rho must be greater than 0"):
        slider.check("rho", 0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_an_optional_slider_may_be_open(value):
    with pytest.raises(ValueError, match="m2"):
        Slider(0.1, 50, "m_2", "clamp").check("m2", value)


def test_off_is_infinity():
    slider = Slider(0.1, 50, "m_2", "clamp", optional=True)
    assert slider.check("m2", None) == slider.check("m2", math.inf) == math.inf


@pytest.mark.parametrize("value", ["1", True, None, [1.0]])
def test_a_slider_wants_a_number(value):
    with pytest.raises(TypeError, match="m must be a number"):
        Slider(0, 1, "m", "margin").check("m", value)


@pytest.mark.parametrize("bad", [{"low": 2.0}, {"step": 0.0}, {"log": True, "low": 0.0}, {"above": 0.5}])
def test_a_slider_validates_itself(bad):
    with pytest.raises(ValueError, match="slider"):
        Slider(**({"low": 0.0, "high": 1.0, "symbol": "m", "help": "margin"} | bad))


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(1)])
def test_numpy_numbers_are_numbers(value):
    checked = Slider(0, 1, "m", "margin").check("m", value)
    assert type(checked) is float
    assert checked == value


def test_a_choice_lists_its_options():
    with pytest.raises(ValueError, match="variant must be one of printed, rule"):
        Choice(("printed", "rule"), "c", "variant").check("variant", "other")


@pytest.mark.parametrize("value", [1e300, -1e39, 10**40])
def test_what_float32_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"loss\.beta must lie within 3\.4e\+38 of 0"):
        Slider(0.0, 2.0, "b", "").check("loss.beta", value)
    assert Slider(0.0, 2.0, "b", "", optional=True).check("m2", float("inf")) == float("inf")
