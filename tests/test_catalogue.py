from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import pytest

from dmlcore.catalogue import Catalogue, Choice, Entry, Slider, declared
from tests.members import in_one_case


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


@in_one_case(value=["1", True, None, [1.0]])
def test_a_slider_wants_a_number(value):
    with pytest.raises(TypeError, match="m must be a number"):
        Slider(0, 1, "m", "margin").check("m", value)


@in_one_case(
    bad=[{"low": 2.0}, {"step": 0.0}, {"log": True, "low": 0.0}, {"above": 0.5}, {"least": 0.5}, {"most": 0.5}]
)
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


def test_least_and_most_belong_to_what_is_valid() -> None:
    slider = Slider(0.1, 0.9, "p", "share", least=0.0, most=1.0)
    assert [slider.check("p", end) for end in (0, 1)] == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"p must be at least 0, got -0\.01"):
        slider.check("p", -0.01)
    with pytest.raises(ValueError, match=r"p must be 1 at most, got 1\.01"):
        slider.check("p", 1.01)


def made(
    size: float,
    count: Annotated[int, Slider(1, 16, "K", "how many", step=1, above=0)] = 2,
    width: Annotated[float, Slider(0.1, 1, "w", "how wide")] = 0.5,
    form: Annotated[str, Choice(("round", "square"), "f", "which form")] = "round",
) -> float:
    return size * count * width


ENTRY = Entry(
    name="made",
    title="Made",
    source="A test, 2026",
    rule=lambda v: "" if v["count"] * v["width"] <= v.get("room", 4) else "count x width must fit the room",
    **declared(made),
)


def test_what_a_function_declares_is_read_from_its_annotations() -> None:
    assert list(ENTRY.parameters) == ["count", "width", "form"]
    assert ENTRY.resolve({}) == ENTRY.defaults == {"count": 2, "width": 0.5, "form": "round"}
    assert ENTRY.resolve({"count": 3.0})["count"] == 3
    assert isinstance(ENTRY.resolve({"count": 3.0})["count"], int)
    with pytest.raises(ValueError, match=r"made: count must be a whole number, got 2\.5"):
        ENTRY.resolve({"count": 2.5})
    with pytest.raises(ValueError, match="made: count must be 65,536 at most"):
        ENTRY.resolve({"count": 65_537})
    with pytest.raises(TypeError, match="made has no hyper-parameter size; it has: count, width, form"):
        ENTRY.resolve({"size": 1})


def test_a_default_is_checked_where_it_is_declared() -> None:
    def without(x: Annotated[float, Slider(0, 1, "x", "")]) -> None: ...

    def outside(x: Annotated[float, Slider(0, 1, "x", "", most=1)] = 2.0) -> None: ...

    with pytest.raises(TypeError, match="without: x must be a number"):
        declared(without)
    with pytest.raises(ValueError, match="outside: x must be 1 at most"):
        declared(outside)


def test_values_that_do_not_go_together_are_resolved_but_not_complete() -> None:
    together = {"count": 5, "width": 1}
    assert ENTRY.resolve(together)["count"] == 5
    with pytest.raises(ValueError, match="made: count x width must fit the room"):
        ENTRY.complete(together)
    assert ENTRY.complete(together, room=5)["width"] == 1


def test_a_name_is_entered_once_and_an_unknown_one_lists_the_known() -> None:
    catalogue: Catalogue[int] = Catalogue("thing")
    catalogue.enter("one", 1)
    with pytest.raises(ValueError, match="there is a thing named one already"):
        catalogue.enter("one", 2)
    with catalogue.isolated():
        catalogue.enter("two", 2)
        assert list(catalogue) == ["one", "two"]
    assert catalogue == {"one": 1}
    with pytest.raises(KeyError, match="unknown thing 'two'; known: one"):
        catalogue["two"]
