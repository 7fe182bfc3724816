"""Row 30 of the fault matrix in its central function: accepted values of numbers in links and messages."""

import math

import pytest

from pages.shared.plane.state import Scene
from pages.shared.state import untrusted

NUMBERS = (math.nan, math.inf, -math.inf, 10**400, "nan", "inf", "1e999", "-1e999", "9" * 33, "0." + "1" * 5000)
OTHERS = ("", "1,5", "0x10", "\0", "../", [1.0], {}, True, None)


@pytest.mark.parametrize("value", [*NUMBERS, *OTHERS], ids=lambda value: str(value)[:8] or "empty")
def test_row_30_what_is_no_finite_number_of_a_sensible_length_is_none(value):
    assert untrusted.finite(value) is None
    assert untrusted.bounded(value, -1.0, 1.0, 0.25) == 0.25
    assert untrusted.numbers([value, 0.5], (1.0, 2.0)) == (1.0, 2.0)


@pytest.mark.parametrize(("value", "found"), [("0.5", 0.5), (" -3e2 ", -300.0), (7, 7.0), (-0.25, -0.25)])
def test_row_30_numbers_come_as_they_are(value, found):
    assert untrusted.finite(value) == found


def test_row_30_coordinates_are_brought_within_reach():
    assert untrusted.numbers([1e9, -1e9], (0.0, 0.0)) == (untrusted.REACH, -untrusted.REACH)
    assert Scene.from_query({"a": "1e9,-1e9"}).anchor == (untrusted.REACH, -untrusted.REACH)
    assert Scene.of({"anchor": [math.nan, 0.0]}).anchor == Scene.anchor
