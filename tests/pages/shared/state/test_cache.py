"""Cached answers for all visitors: computed once, bounded in number and age; errors are not cached."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.shared.state.cache import cached, derived


def counting(most: int = 2, **options: float):
    asked = []

    @cached(most, **options)
    def double(x: int, _unhashable: list[int] | None = None, by: int = 2) -> list[int]:
        asked.append(x)
        if x < 0:
            raise ValueError(x)
        return [by * x]

    return double, asked


def test_an_answer_is_computed_once_however_it_is_asked_for():
    double, asked = counting()
    assert double(3) is double(x=3) is double(3, [1]) is double(3, by=2)
    assert (double(3, by=5), asked) == ([15], [3, 3])


def test_the_answer_that_was_asked_for_longest_ago_goes():
    double, asked = counting(most=2)
    for x in (1, 2, 1, 3, 1, 2):
        double(x)
    assert asked == [1, 2, 3, 2]


def test_an_error_is_raised_each_time():
    double, asked = counting()
    for _ in range(2):
        with pytest.raises(ValueError, match="-1"):
            double(-1)
    assert asked == [-1, -1]


def test_an_answer_is_forgotten_after_its_time_and_when_told(monkeypatch):
    double, asked = counting(lifetime=10.0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    double(1)
    now += 9.9
    double(1)
    assert asked == [1]
    now += 0.2
    double(1)
    assert asked == [1, 1]
    double.clear()
    double(1)
    assert asked == [1, 1, 1]


def test_who_asks_meanwhile_waits_for_the_one_who_computes():
    begun, go_on, asked = threading.Event(), threading.Event(), []

    @cached(2)
    def slow(x: int) -> list[int]:
        asked.append(x)
        begun.set()
        assert go_on.wait(10)
        return [x]

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(slow, 1)
        assert begun.wait(10)
        others = [pool.submit(slow, 1) for _ in range(3)]
        go_on.set()
        assert all(other.result(10) is first.result(10) for other in others)
    assert asked == [1]


def test_what_is_derived_from_the_very_same_objects_is_computed_once_whatever_list_they_stand_in():
    one, two, asked = {"of": 1}, {"of": 2}, []

    def total(numbers: list[dict[str, int]], factor: float, name: str) -> float:
        asked.append(name)
        return factor * sum(number["of"] for number in numbers)

    assert [derived(total, [one, two], 2.0, "a"), derived(total, [one, two], 2.0, "a")] == [6.0, 6.0]
    assert asked == ["a"]
    for others in (([two, one], 2.0, "b"), ([one], 2.0, "c"), ([one, two], 3.0, "a"), ([{"of": 1}, two], 2.0, "a")):
        derived(total, *others)
    assert asked == ["a", "b", "c", "a", "a"]
