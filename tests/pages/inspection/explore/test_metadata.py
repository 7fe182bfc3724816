"""Metadata columns as attributes of a map: categories and scales of one byte per point."""

from __future__ import annotations

import json

import numpy as np

from pages.inspection.explore.colourings import NOWHERE
from pages.inspection.explore.metadata import MOST_NAMES, column
from tests.members import in_one_case


def test_texts_are_categories_by_name() -> None:
    found = column(np.array(["b", "a", "", "b"]))
    assert found.facts["names"] == ["a", "b"]
    assert found.values.tolist() == [1, 0, NOWHERE, 1]
    assert len(set(found.facts["colours"])) == 2


def test_the_most_frequent_texts_have_names_and_the_rest_are_other_values() -> None:
    texts = [f"shop {k:02}" for k in range(30) for _ in range(40 - k)]
    found = column(np.array(texts))
    assert found.facts["names"] == [f"shop {k:02}" for k in range(MOST_NAMES)] + ["10 other values"]
    assert found.values[0] == 0
    assert found.values[-1] == MOST_NAMES
    assert len(found.facts["colours"]) == MOST_NAMES


def test_numbers_in_names_are_ordered_by_value() -> None:
    assert column(np.array(["shop 10", "Shop 9", "shop 2"])).facts["names"] == ["shop 2", "Shop 9", "shop 10"]


def test_texts_that_all_differ_are_one_category() -> None:
    found = column(np.array([f"note {k}" for k in range(100)]))
    assert found.facts["names"] == ["100 different values"]
    assert not found.values.any()


def test_few_different_numbers_are_categories_by_value() -> None:
    assert column(np.array([10, 9, 10, 100])).facts["names"] == ["9", "10", "100"]
    found = column(np.array([0.5, np.nan, -1.0]))
    assert (found.facts["names"], found.values.tolist()) == (["-1", "0.5"], [1, NOWHERE, 0])


def test_numbers_are_on_a_scale() -> None:
    found = column(np.append(np.linspace(-2, 3, 101), np.nan))
    assert found.facts == {"range": [-2.0, 3.0], "outside": [False, False]}
    assert (found.values[0], found.values[50], found.values[100], found.values[101]) == (0, 127, 254, NOWHERE)


def test_outliers_do_not_compress_the_scale() -> None:
    numbers = np.append(np.linspace(0, 1, 999), 1e9)
    found = column(numbers)
    assert found.facts["range"][1] < 1.1
    assert found.facts["outside"] == [True, True]
    assert found.values[-1] == 254


def test_dates_are_on_a_scale_of_seconds() -> None:
    days = [f"2025-01-{day:02}" for day in range(1, 31)]
    found = column(np.array([*days, ""]))
    assert found.facts["dates"]
    assert found.facts["range"] == [1735689600.0, 1735689600.0 + 29 * 86400]
    assert (found.values[0], found.values[29], found.values[30]) == (0, 254, NOWHERE)
    assert "names" in column(np.array([*days, "2025-02-30"])).facts, "such a day does not exist"


@in_one_case(
    values=[
        np.array(["", ""]),
        np.array([np.nan, np.nan]),
        np.array([np.inf, -np.inf, np.nan]),
        np.append(np.full(30, np.inf), np.arange(30.0)),
        np.array([-1.7e308, 1.7e308, *np.arange(30)]),
        np.array([2**62, *range(30)]),
        np.array([True, False]),
        np.array(["\x00\x1b<b>", "x" * 5000, "NaT", "now"]),
        np.full(40, "today"),
    ]
)
def test_unusual_values_do_no_harm(values: np.ndarray) -> None:
    found = column(values)
    assert found.values.shape == values.shape
    assert found.values.dtype == np.uint8
    json.dumps(found.facts, allow_nan=False)
    assert all(name.isprintable() and len(name) <= 80 for name in found.facts.get("names", []))
