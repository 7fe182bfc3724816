"""Initial placements of the charges, one function each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from dmlcore.typing import Floats, Ints

Place = Callable[[np.random.Generator, int, int], Floats]


@dataclass(frozen=True)
class Placement:
    """Initial placement of the points, with its title and description in the settings panel.

    `place(random, classes, per_class)` returns an array (classes, per_class, 2).
    """

    name: str
    title: str
    sentence: str
    place: Place


STARTS: dict[str, Placement] = {}


def start_points(name: str, classes: int, per_class: int, seed: int) -> tuple[Floats, Ints]:
    """Return the points (N, 2) and labels (N,) of a placement, sorted by class.

    Raises KeyError, which lists the known placements.
    """
    if name not in STARTS:
        raise KeyError(f"unknown start {name!r}; known: {', '.join(STARTS)}")
    placed = STARTS[name].place(np.random.default_rng(seed), classes, per_class)
    return placed.reshape(-1, 2), np.repeat(np.arange(classes), per_class)


def _start(title: str) -> Callable[[Place], Place]:
    """Register a placement function under its name; its docstring is the description in the panel."""

    def enter(place: Place) -> Place:
        name = place.__name__
        STARTS[name] = Placement(name, title, cast(str, inspect.getdoc(place)), place)
        return place

    return enter


def _noise(random: np.random.Generator, classes: int, per_class: int, spread: float) -> Floats:
    return spread * random.standard_normal((classes, per_class, 2))


def _around(classes: int, radius: float) -> Floats:
    """Return class centres evenly spaced on a circle, shape (classes, 1, 2)."""
    angle = 2 * np.pi * np.arange(classes) / classes + np.pi / 2
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)[:, None]


@_start("Random")
def random(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """All classes are spread over the same disc."""
    return _noise(random, classes, per_class, 0.5)


@_start("Two moons")
def moons(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """Interlocking half circles, one per class, in a chain."""
    angle = np.linspace(0, np.pi, per_class)
    number = np.arange(classes)[:, None]
    up = np.where(number % 2 == 0, 1.0, -1.0)
    x = number - (classes - 1) / 2 + np.cos(angle)
    y = up * (np.sin(angle) - 0.25)
    scale = 3.0 / (classes + 1)  # scale to the width of the other placements
    return scale * np.stack([x, y], axis=-1) + _noise(random, classes, per_class, 0.04)


@_start("Rings")
def rings(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """Concentric circles, one per class."""
    angle = 2 * np.pi * np.arange(per_class) / per_class
    radius = 1.2 * np.linspace(0.3, 1.0, classes)[:, None]
    circle = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return circle + _noise(random, classes, per_class, 0.03)


@_start("Collapsed")
def collapsed(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """All points are almost at one position."""
    return _noise(random, classes, per_class, 0.01)


@_start("An outlier")
def outlier(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """Separated classes, but one point is inside another class."""
    placed = separated(random, classes, per_class)
    placed[0, 0] = _around(classes, 1.0)[classes // 2, 0]
    return placed


@_start("A divided class")
def divided(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """The first class is in two halves, and all other classes form a wall between them."""
    placed = _noise(random, classes, per_class, 0.04)
    placed[0, :, 0] += np.where(np.arange(per_class) % 2, 0.6, -0.6)
    placed[1:, :, 1] += np.linspace(-1, 1, (classes - 1) * per_class).reshape(classes - 1, per_class)
    return placed


@_start("Separated")
def separated(random: np.random.Generator, classes: int, per_class: int) -> Floats:
    """Each class forms a separate cluster."""
    return _around(classes, 1.0) + _noise(random, classes, per_class, 0.12)
